//===- Propagate.cpp - shardings to a fixed point -------------------------===//

#include "passes/propagation/FactorStep.h"
#include <algorithm>
#include <map>
#include <set>

namespace mlir::fsdp::propagation {

/// Rounds of op priorities; each allows the ops of the previous rounds and more.
enum OpPriority {
  singleUse,             ///< ops that pass dimensions through, as only users of their operands
  anyUse,                ///< ops that pass dimensions through
  passFactors,           ///< factors that pass through any op; broadcasts backward
  allBroadcastsBackward, ///< all factors; broadcasts backward
  everything,
};

namespace {
class Solver {
public:
  Solver(const Problem &problem, const Options &options)
      : problem(problem), options(options), uses(problem.values.size()),
        usersOf(problem.values.size()), definerOf(problem.values.size(), -1) {
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      for (int operand : problem.ops[op].operands) {
        ++uses[operand];
        usersOf[operand].push_back(op);
      }
      for (int result : problem.ops[op].results)
        definerOf[result] = op;
    }
    for (std::vector<Settled> &ofStrategy : settled)
      ofStrategy.resize(problem.ops.size());
    changedAt.resize(problem.values.size());
    for (size_t value = 0; value < problem.values.size(); ++value) {
      uses[value] += problem.values[value].otherUses;
      Sharding sharding = problem.values[value].sharding;
      if (sharding.dims.empty())
        sharding.dims.resize(problem.values[value].sizes.size());
      given.push_back(std::move(sharding));
    }
  }

  Solution solve();

private:
  /// A visit that changed nothing: another one changes nothing either, as long as the directions
  /// and the shardings of the op's tensors are the same.
  struct Settled {
    int64_t at = -1; ///< by `clock`; -1 if there was no change
    std::vector<Direction> directions;
  };

  void enterGiven(int64_t after, int64_t upTo);
  void runOpPriorities();
  void runStrategy(bool aggressive);
  Direction directionOf(const Op &op, size_t factor) const;
  bool hasSharedOperand(const Op &op) const;
  bool visit(int op, bool aggressive);
  bool update(int value, int opIndex, const std::vector<AxisList> &axes, bool aggressive);
  int sourceOf(const Op &op, int value, int dim, const AxisPart &axis) const;
  bool isSettled(int op, bool aggressive) const;
  void push(int op) {
    if (!queued[op]) {
      queued[op] = true;
      worklist.push_back(op);
    }
  }

  const Problem &problem;
  const Options &options;
  std::vector<int> uses;
  std::vector<std::vector<int>> usersOf;
  std::vector<int> definerOf;
  std::vector<Sharding> given;
  Solution solution;
  std::vector<Sharding> before;      ///< of the op at hand, in the order of its tensors
  std::vector<Direction> directions; ///< of the op at hand
  std::vector<Settled> settled[2];   ///< [aggressive][op]
  int64_t clock = 0;                 ///< counts changes of shardings
  std::vector<int64_t> changedAt;    ///< when each value changed
  std::vector<int> worklist;
  std::vector<bool> queued;
  int64_t priority = 0;
  int opPriority = 0;
};
} // namespace

/// Gives each value the axes of the priorities in (after, upTo], and keeps those of later ones free
/// for it: its dimension closed, its axes not to be used for another dimension.
void Solver::enterGiven(int64_t after, int64_t upTo) {
  for (size_t value = 0; value < given.size(); ++value)
    for (size_t dim = 0; dim < given[value].dims.size(); ++dim) {
      const DimSharding &wanted = given[value].dims[dim];
      Sharding &current = solution.shardings[value];
      if (wanted.priority > after && wanted.priority <= upTo) {
        current.dims[dim] = wanted;
        changedAt[value] = ++clock;
        AxisList &kept = current.replicated;
        kept.erase(std::remove_if(kept.begin(), kept.end(),
                                  [&](const AxisPart &axis) {
                                    return std::find(wanted.axes.begin(), wanted.axes.end(),
                                                     axis) != wanted.axes.end();
                                  }),
                   kept.end());
        for (const AxisPart &axis : wanted.axes)
          solution.origins.push_back({static_cast<int>(value), static_cast<int>(dim), axis, -1, -1,
                                      wanted.priority, 0, false});
      }
    }
}

bool Solver::hasSharedOperand(const Op &op) const {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](int operand) {
    return !problem.values[operand].sizes.empty() && uses[operand] != 1;
  });
}

Direction Solver::directionOf(const Op &op, size_t factor) const {
  if (op.factors[factor].blocked)
    return Direction::none;
  if (op.kind == OpKind::boundary || !options.opPriorities || opPriority == everything)
    return Direction::both;
  bool passes = op.kind == OpKind::elementwise || op.kind == OpKind::passThrough ||
                op.kind == OpKind::constraint;
  if (passes && (opPriority >= anyUse || !hasSharedOperand(op)))
    return Direction::both;
  if (opPriority < passFactors || (opPriority == passFactors && !op.factors[factor].passThrough))
    return Direction::none;
  return op.kind == OpKind::broadcast ? Direction::backward : Direction::both;
}

/// The value of `op` other than `value` that has `axis`, from which it came.
int Solver::sourceOf(const Op &op, int value, int dim, const AxisPart &axis) const {
  std::vector<int> tensors = op.operands;
  tensors.insert(tensors.end(), op.results.begin(), op.results.end());
  size_t self = std::find(tensors.begin(), tensors.end(), value) - tensors.begin();
  auto dimsOf = [&](size_t index) -> const Mapping & {
    return index < op.operands.size() ? op.operandDims[index]
                                      : op.resultDims[index - op.operands.size()];
  };
  for (size_t index = 0; index < tensors.size(); ++index) {
    if (tensors[index] == value)
      continue;
    for (size_t there = 0; there < dimsOf(index).size(); ++there) {
      bool shares = false;
      for (int factor : dimsOf(index)[there])
        shares |= std::find(dimsOf(self)[dim].begin(), dimsOf(self)[dim].end(), factor) !=
                  dimsOf(self)[dim].end();
      if (shares && overlaps(before[index].dims[there].axes, axis))
        return tensors[index];
    }
  }
  return -1;
}

bool Solver::update(int value, int opIndex, const std::vector<AxisList> &axes, bool aggressive) {
  Sharding &current = solution.shardings[value];
  auto isRefused = [&](size_t dim, const AxisList &now) {
    return (!options.subAxes &&
            !std::all_of(now.begin(), now.end(),
                         [&](const AxisPart &axis) { return isWhole(problem.mesh, axis); })) ||
           (problem.admits && !problem.admits(value, dim, now, current));
  };
  auto extend = [&](size_t dim) {
    AxisList &old = current.dims[dim].axes, now = axes[dim];
    while (isStrictPrefix(old, now) && isRefused(dim, now))
      now.pop_back();
    // Axes only ever grow, which guarantees termination.
    if (!isStrictPrefix(old, now))
      return false;
    // Only new axes originate here; a part that grew is new as a whole.
    size_t same = 0;
    while (same < old.size() && same < now.size() && old[same] == now[same])
      ++same;
    for (size_t i = same; i < now.size(); ++i)
      solution.origins.push_back({value, static_cast<int>(dim), now[i], opIndex,
                                  sourceOf(problem.ops[opIndex], value, dim, now[i]), priority,
                                  opPriority, aggressive});
    old = now;
    changedAt[value] = ++clock;
    return true;
  };
  // The axes that one dimension may have depend on those of the others.
  bool changed = false;
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t dim = 0; dim < axes.size(); ++dim)
      grows |= extend(dim);
    changed |= grows;
  }
  if (!changed)
    return false;
  if (int definer = definerOf[value]; definer >= 0 && definer != opIndex)
    push(definer);
  const std::vector<int> &users = usersOf[value];
  for (auto user = users.rbegin(); user != users.rend(); ++user)
    if (*user != opIndex)
      push(*user);
  return true;
}

bool Solver::isSettled(int opIndex, bool aggressive) const {
  const Op &op = problem.ops[opIndex];
  const Settled &last = settled[aggressive][opIndex];
  auto isAsThen = [&](int value) { return changedAt[value] <= last.at; };
  return last.at >= 0 && last.directions == directions &&
         std::all_of(op.operands.begin(), op.operands.end(), isAsThen) &&
         std::all_of(op.results.begin(), op.results.end(), isAsThen);
}

bool Solver::visit(int opIndex, bool aggressive) {
  ++solution.visits;
  const Op &op = problem.ops[opIndex];
  directions.resize(op.factors.size());
  bool any = false;
  for (size_t factor = 0; factor < op.factors.size(); ++factor) {
    directions[factor] = directionOf(op, factor);
    any |= directions[factor] != Direction::none;
  }
  if (!any || isSettled(opIndex, aggressive))
    return false;
  auto isSplit = [&](int value) {
    const std::vector<DimSharding> &dims = solution.shardings[value].dims;
    return std::any_of(dims.begin(), dims.end(),
                       [](const DimSharding &dim) { return !dim.axes.empty(); });
  };
  if (std::none_of(op.operands.begin(), op.operands.end(), isSplit) &&
      std::none_of(op.results.begin(), op.results.end(), isSplit))
    return false;
  std::vector<TensorProjection> tensors;
  tensors.reserve(op.operands.size() + op.results.size());
  for (size_t i = 0; i < op.operands.size(); ++i)
    tensors.push_back(project(op, op.operandDims[i], solution.shardings[op.operands[i]]));
  for (size_t i = 0; i < op.results.size(); ++i)
    tensors.push_back(project(op, op.resultDims[i], solution.shardings[op.results[i]]));
  FactorStep step(op, options.subAxes, std::move(tensors));
  std::vector<bool> changed =
      aggressive ? step.carryAggressively(directions) : step.carryCompatible(directions);
  if (std::find(changed.begin(), changed.end(), true) == changed.end()) {
    settled[aggressive][opIndex] = {clock, directions};
    return false;
  }
  before.clear();
  for (const std::vector<int> *values : {&op.operands, &op.results})
    for (int value : *values)
      before.push_back(solution.shardings[value]);
  bool updated = false;
  for (size_t index = 0; index < changed.size(); ++index) {
    if (!changed[index])
      continue;
    bool operand = index < op.operands.size();
    size_t there = operand ? index : index - op.operands.size();
    updated |= update(
        operand ? op.operands[there] : op.results[there], opIndex,
        unproject(op, operand ? op.operandDims[there] : op.resultDims[there], step.tensor(index)),
        aggressive);
  }
  return updated;
}

void Solver::runStrategy(bool aggressive) {
  queued.assign(problem.ops.size(), false);
  auto visitBoundaries = [&] {
    for (size_t op = 0; op < problem.ops.size(); ++op)
      if (problem.ops[op].kind == OpKind::boundary)
        visit(op, aggressive);
  };
  visitBoundaries();
  worklist.clear();
  queued.assign(problem.ops.size(), false);
  for (size_t op = problem.ops.size(); op-- > 0;)
    push(op);
  while (!worklist.empty()) {
    int op = worklist.back();
    worklist.pop_back();
    queued[op] = false;
    if (problem.ops[op].kind != OpKind::boundary)
      visit(op, aggressive);
  }
  visitBoundaries();
}

void Solver::runOpPriorities() {
  for (opPriority = options.opPriorities ? singleUse : everything; opPriority <= everything;
       ++opPriority) {
    if (options.strategy != Strategy::aggressive)
      runStrategy(/*aggressive=*/false);
    if (options.strategy != Strategy::basic)
      runStrategy(/*aggressive=*/true);
  }
}

Solution Solver::solve() {
  std::set<int64_t> priorities = {0};
  for (Sharding &sharding : given)
    for (DimSharding &dim : sharding.dims) {
      if (!options.userPriorities)
        dim.priority = 0;
      priorities.insert(dim.priority);
    }
  for (const Sharding &sharding : given) {
    Sharding initial = sharding;
    for (DimSharding &dim : initial.dims)
      if (dim.priority > 0) {
        initial.replicated.insert(initial.replicated.end(), dim.axes.begin(), dim.axes.end());
        dim.axes.clear();
        dim.open = false;
      }
    solution.shardings.push_back(std::move(initial));
  }
  int64_t last = -1;
  for (int64_t round : priorities) {
    priority = round;
    enterGiven(last, round);
    runOpPriorities();
    last = round;
  }
  return std::move(solution);
}

static bool areEqual(const Sharding &a, const Sharding &b) {
  return a.replicated == b.replicated && a.unreduced == b.unreduced &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](const DimSharding &x, const DimSharding &y) {
                      return x.axes == y.axes && x.open == y.open && x.priority == y.priority;
                    });
}

void applyConstraints(Problem &problem) {
  std::map<int, std::vector<int>> resultsOf; // of the constraints on each value
  for (const Op &op : problem.ops)
    if (op.kind == OpKind::constraint)
      resultsOf[op.operands[0]].push_back(op.results[0]);
  for (const auto &[input, results] : resultsOf) {
    const Sharding &wanted = problem.values[results.front()].sharding;
    bool closed = std::none_of(wanted.dims.begin(), wanted.dims.end(),
                               [](const DimSharding &dim) { return dim.open; });
    bool unanimous = std::all_of(results.begin(), results.end(), [&](int other) {
      return areEqual(problem.values[other].sharding, wanted);
    });
    if (closed && unanimous && problem.values[input].sharding.dims.empty())
      problem.values[input].sharding = wanted;
  }
}

Solution propagate(const Problem &problem, const Options &options) {
  return Solver(problem, options).solve();
}

} // namespace mlir::fsdp::propagation
