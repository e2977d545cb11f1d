//===- ChoiceSearch.h - the best values of several decisions ----*- C++ -*-===//
// On plain data: a function returns the cost of a plan. If there are few plans, all are evaluated.
// Otherwise one decision is changed at a time, or several where the limit excludes a faster plan,
// until no change is better.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_CHOICESEARCH_H
#define TOOLS_FSDPC_CHOICESEARCH_H

#include "tools/fsdpc/PlanCompiler.h"

namespace fsdpc {

/// For each decision, the index of its value.
using Point = std::vector<size_t>;

struct ChoiceProblem {
  std::vector<size_t> sizes; ///< of each decision, the number of its values; at least one
  Point defaults;
  /// A decision of whose values each begins a search of the others, as it decides which of these
  /// are good: whether a gather is of one unit or of several.
  std::optional<size_t> leading = std::nullopt;
  int64_t limit = 0;      ///< bytes of a rank
  int64_t operations = 1; ///< of the model that is compiled for a plan: the work of evaluating it
  /// The costs of a plan; nothing where it is refused.
  std::function<std::optional<PlanCosts>(const Point &)> evaluate;

  int64_t countPlans() const;
};

/// Calls `visit` with `base` and all values of the decisions `varied`, the last of which varies
/// fastest.
void visitPoints(const Point &base, llvm::ArrayRef<size_t> varied, llvm::ArrayRef<size_t> sizes,
                 llvm::function_ref<void(const Point &)> visit);

class ChoiceSearch {
public:
  ChoiceSearch(ChoiceProblem problem, int64_t exhaustiveWork = kExhaustiveWork);
  /// The best plan; that of the defaults if all are refused.
  Point run();

  /// The costs of a plan, evaluated once.
  const std::optional<PlanCosts> &evaluate(const Point &point);
  /// Whether `one` is to be preferred; among equals, that with the first values.
  bool precedes(const Point &one, const Point &other);
  /// All plans that were evaluated and not refused, the best first.
  std::vector<Point> rank();
  size_t countEvaluated() const { return evaluated.size(); }

private:
  bool improve(llvm::ArrayRef<size_t> varied);
  void descend(std::optional<size_t> held = std::nullopt);
  bool makeFit();
  void searchFrom(Point start, std::optional<size_t> held = std::nullopt);

  ChoiceProblem problem;
  bool exhaustive;
  std::map<Point, std::optional<PlanCosts>> evaluated;
  Point best;
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_CHOICESEARCH_H
