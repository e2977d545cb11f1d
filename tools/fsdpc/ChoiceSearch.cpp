//===- ChoiceSearch.cpp ---------------------------------------------------===//

#include "tools/fsdpc/ChoiceSearch.h"

#include <algorithm>
#include <numeric>

namespace fsdpc {

int64_t ChoiceProblem::countPlans() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<int64_t>());
}

void visitPoints(const Point &base, llvm::ArrayRef<size_t> varied, llvm::ArrayRef<size_t> sizes,
                 llvm::function_ref<void(const Point &)> visit) {
  if (varied.empty())
    return visit(base);
  Point point = base;
  for (size_t value = 0; value < sizes[varied.front()]; ++value) {
    point[varied.front()] = value;
    visitPoints(point, varied.drop_front(), sizes, visit);
  }
}

ChoiceSearch::ChoiceSearch(ChoiceProblem problem, int64_t exhaustiveWork)
    : problem(std::move(problem)),
      exhaustive(this->problem.countPlans() * this->problem.operations <= exhaustiveWork) {}

const std::optional<PlanCosts> &ChoiceSearch::evaluate(const Point &point) {
  auto [entry, isNew] = evaluated.try_emplace(point);
  if (isNew)
    entry->second = problem.evaluate(point);
  return entry->second;
}

bool ChoiceSearch::precedes(const Point &one, const Point &other) {
  const std::optional<PlanCosts> &costs = evaluate(one), &others = evaluate(other);
  if (!costs || !others)
    return costs.has_value() && !others;
  if (isBetter(*costs, *others, problem.limit) || isBetter(*others, *costs, problem.limit))
    return isBetter(*costs, *others, problem.limit);
  return one < other;
}

std::vector<Point> ChoiceSearch::rank() {
  std::vector<Point> points;
  for (const auto &[point, costs] : evaluated)
    if (costs)
      points.push_back(point);
  llvm::stable_sort(points,
                    [&](const Point &one, const Point &other) { return precedes(one, other); });
  return points;
}

/// Takes the best values of the decisions `varied` with the others as they are.
bool ChoiceSearch::improve(llvm::ArrayRef<size_t> varied) {
  const Point before = best;
  visitPoints(before, varied, problem.sizes, [&](const Point &point) {
    if (precedes(point, best))
      best = point;
  });
  return best != before;
}

/// Changes one decision at a time, except `held`, until no change is better.
void ChoiceSearch::descend(std::optional<size_t> held) {
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t i = 0; i < problem.sizes.size(); ++i)
      changes |= held != i && improve(i);
  }
}

/// Applies a change that is faster but does not fit, together with changes that save memory at the
/// least cost in time.
bool ChoiceSearch::makeFit() {
  const Point before = best;
  if (!evaluate(before))
    return false;
  std::vector<std::pair<size_t, size_t>> savings, larger; // decisions and values
  for (size_t i = 0; i < problem.sizes.size(); ++i)
    visitPoints(before, i, problem.sizes, [&](const Point &point) {
      const std::optional<PlanCosts> &costs = evaluate(point), &old = evaluate(before);
      if (costs && costs->arena < old->arena)
        savings.emplace_back(i, point[i]);
      else if (costs && costs->arena > problem.limit && costs->step < old->step)
        larger.emplace_back(i, point[i]);
    });
  for (auto [decision, value] : larger) {
    Point point = before;
    point[decision] = value;
    while (evaluate(point)->arena > problem.limit && evaluate(point)->step < evaluate(best)->step) {
      std::optional<Point> next;
      double bytesPerSecond = 0; // saved by the next change, for each that it costs
      for (auto [other, smaller] : savings) {
        Point changed = point;
        changed[other] = smaller;
        const std::optional<PlanCosts> &costs = evaluate(changed), &old = evaluate(point);
        if (other == decision || !costs || costs->arena >= old->arena)
          continue;
        if (precedes(changed, best))
          best = changed;
        const double rate = static_cast<double>(old->arena - costs->arena) /
                            std::max(costs->step - old->step, 1e-6 * old->step);
        if (rate > bytesPerSecond) {
          bytesPerSecond = rate;
          next = changed;
        }
      }
      if (!next)
        break;
      point = *next;
    }
  }
  return best != before;
}

/// Searches from `start` for a plan that no change improves, at first without changes of `held`;
/// keeps it if it is better than the best plan so far.
void ChoiceSearch::searchFrom(Point start, std::optional<size_t> held) {
  const Point before = std::exchange(best, std::move(start));
  if (held)
    descend(held);
  do
    descend();
  while (makeFit());
  if (precedes(before, best))
    best = before;
}

Point ChoiceSearch::run() {
  best = problem.defaults;
  if (exhaustive) {
    std::vector<size_t> all(problem.sizes.size());
    std::iota(all.begin(), all.end(), size_t(0));
    improve(all);
    return best;
  }
  // Ensures that no single option, given alone, is better.
  for (size_t i = 0; i < problem.sizes.size(); ++i)
    visitPoints(problem.defaults, i, problem.sizes, [&](const Point &point) {
      if (precedes(point, best))
        best = point;
    });
  searchFrom(best);
  if (problem.leading)
    for (size_t value = 0; value < problem.sizes[*problem.leading]; ++value) {
      Point start = problem.defaults;
      start[*problem.leading] = value;
      searchFrom(start, problem.leading);
    }
  // From the other side: the plan that needs least memory.
  auto arena = [](const auto &entry) { return entry.second ? entry.second->arena : INT64_MAX; };
  searchFrom(llvm::min_element(evaluated, [&](const auto &one, const auto &other) {
               return arena(one) < arena(other);
             })->first);
  return best;
}

} // namespace fsdpc
