//===- Problem.h - a program whose values want shardings --------*- C++ -*-===//
// The problem of propagation: values with sizes and their known shardings, and ops as rules over
// factors. No IR, so that it can be fuzzed; passes/global/ShardingProblem.cpp
// translates. docs/sharding.md states the rules of propagation.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_PROPAGATION_PROBLEM_H
#define PASSES_PROPAGATION_PROBLEM_H

#include "passes/propagation/Axes.h"
#include <functional>

namespace mlir::fsdp::propagation {

/// How one dimension is split.
struct DimSharding {
  AxisList axes;
  /// Propagation may append axes.
  bool open = true;
  /// The round in which `axes` (and with them the dimension) take part: lower numbers first.
  int64_t priority = 0;
};

/// How a value is split: no axis (and no part of one) is named twice.
struct Sharding {
  std::vector<DimSharding> dims;
  /// Axes that may not split the value.
  AxisList replicated = {};
  /// Axes over which the value is a partial sum, and which may not split it either.
  AxisList unreduced = {};
};

/// A value. An empty `sharding.dims` means that all dimensions are open.
struct Value {
  std::vector<int64_t> sizes;
  Sharding sharding = {};
  /// The number of uses outside the ops of the problem.
  int otherUses = 0;
};

/// One dimension of the iteration space of an op.
struct Factor {
  int64_t size = 1;
  /// Each instance reads and writes separate elements: neither reduced nor needed as a whole.
  bool passThrough = true;
  /// Nothing is carried along it.
  bool blocked = false;
};

/// For each dimension of a tensor its factors, major to minor.
using Mapping = std::vector<std::vector<int>>;

/// The round in which an op takes part, and its direction.
enum class OpKind {
  elementwise, ///< early; to another operand only axes that the result also has
  passThrough, ///< early: reorders or regroups dimensions
  broadcast,   ///< backward before forward
  contraction, ///< everything else: after those above
  constraint,  ///< the identity; its result was given a sharding
  boundary,    ///< ties a result of the program to its value, before and after all others
};

struct Op {
  OpKind kind = OpKind::contraction;
  std::vector<Factor> factors;
  std::vector<Mapping> operandDims, resultDims;
  std::vector<int> operands, results; ///< indices of values
};

/// A program; ops are in its order.
struct Problem {
  Mesh mesh;
  std::vector<Value> values;
  std::vector<Op> ops;
  /// True where dimension `dim` of `value` may be split over `axes` while its other dimensions are
  /// as in `current`; all may if it is not set. Refused axes are shortened from the end until they
  /// are accepted.
  std::function<bool(int value, int dim, const AxisList &axes, const Sharding &current)> admits =
      {};
};

/// How conflicts between the tensors of one op are resolved.
enum class Strategy {
  basic,               ///< only axes on which all of them agree: the longest common prefix
  aggressive,          ///< the larger tensor wins
  basicThenAggressive, ///< one to its end, then the other
};

struct Options {
  Strategy strategy = Strategy::basicThenAggressive;
  bool opPriorities = true;
  bool userPriorities = true;
  /// Split axes into parts where a factor has room for only a part.
  bool subAxes = true;
};

/// The origin of the axes of a value.
struct Origin {
  int value = 0, dim = 0;
  AxisPart axis;
  int op = -1;          ///< -1 if specified
  int from = -1;        ///< the value whose axis it was
  int64_t priority = 0; ///< of the round of user priorities
  int opPriority = 0;   ///< of the round of op priorities
  bool aggressive = false;
};

struct Solution {
  /// For each value its sharding: dims of the value's rank, priorities as given.
  std::vector<Sharding> shardings;
  std::vector<Origin> origins;
  /// The number of visits of ops.
  int64_t visits = 0;
};

/// Gives each value of unknown sharding with exactly one requested sharding by constraints that
/// requested sharding, if it is closed in all dimensions: the value is produced in it instead of
/// being resharded.
void applyConstraints(Problem &problem);

/// Propagates to the fixed point. User-specified shardings are fixed: the specified axes of each
/// value stay the first of their dimension, and closed dimensions do not change. The result depends
/// on the order of ops only where ops contradict each other.
Solution propagate(const Problem &problem, const Options &options = {});

/// The first defect of `problem` or, with `solution`, of that: axes outside the mesh or used twice,
/// ranks, rules that do not multiply to sizes, lost given axes, an extended closed dimension. Empty
/// if there is none.
std::string check(const Problem &problem, const Solution *solution = nullptr);

/// `[a+b:(1)2, ?, _]`: for each dimension its axes, `?` at the end of an open dimension.
std::string print(const Mesh &mesh, const Sharding &sharding);

} // namespace mlir::fsdp::propagation

#endif // PASSES_PROPAGATION_PROBLEM_H
