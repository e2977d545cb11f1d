//===- CaseFile.h - propagation cases as text -------------------*- C++ -*-===//
//
// A case per paragraph; `#` begins a comment:
//
//   case NAME STRATEGY            basic, aggressive, op, user or pipeline (CaseFile.cpp)
//   mesh a=2 b=2
//   value NAME SIZES [SPEC]       sizes as 8x4, `.` for a scalar
//   op KIND RULE SIZE... : OPERANDS -> RESULTS
//                                 elementwise, pass, broadcast, contraction or constraint;
//                                 the rule in einops' letters, "(ab)c,b->ac", with a size each
//   result NAME VALUE [SPEC]      what the program returns
//   expect NAME SPEC              the axes of the value or result
//
// A SPEC has an entry a dimension, parted by commas: axes joined by `+`, `_` for none, `?` behind
// those of an open dimension, `p1` for a priority; `a:(2)4` is a part of an axis; then `!a+b` for
// axes that may not split the value and `~a` for those it is a partial sum over.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_PASSES_PROPAGATION_CASEFILE_H
#define TEST_UNIT_PASSES_PROPAGATION_CASEFILE_H

#include "passes/propagation/Problem.h"
#include <map>

namespace mlir::fsdp::propagation {

struct Case {
  std::string name, strategy;
  Problem problem;
  std::map<std::string, int> values;
  /// The value and the axes of each dimension, as text.
  std::vector<std::pair<std::string, std::string>> expected;

  Options options() const;
};

/// Throws std::runtime_error with the line where the text is none.
std::vector<Case> readCases(const std::string &path);

/// The axes of `sharding` as in `expect`.
std::string axesOf(const Mesh &mesh, const Sharding &sharding);

} // namespace mlir::fsdp::propagation

#endif // TEST_UNIT_PASSES_PROPAGATION_CASEFILE_H
