//===- BalancedCut.cpp - consecutive parts of about equal cost ------------===//

#include "passes/schedule/BalancedCut.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

std::vector<int64_t> mlir::fsdp::schedule::cutBalanced(const std::vector<double> &costs,
                                                       int64_t parts) {
  const auto count = static_cast<int64_t>(costs.size());
  assert(parts >= 1 && count >= parts && "each part has something");
  std::vector<double> before(count + 1, 0); // sums of the first costs
  for (int64_t i = 0; i < count; ++i)
    before[i + 1] = before[i] + costs[i];
  // best[i]: of the first i costs in the number of parts so far, the dearest part and the sum of
  // squares; from[part][i]: where the last of the parts begins.
  using Quality = std::pair<double, double>;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<Quality> best(count + 1, {infinity, infinity});
  best[0] = {0, 0};
  std::vector<std::vector<int64_t>> from(parts, std::vector<int64_t>(count + 1, 0));
  for (int64_t part = 0; part < parts; ++part) {
    std::vector<Quality> next(count + 1, {infinity, infinity});
    for (int64_t end = part + 1; end <= count; ++end)
      for (int64_t begin = part; begin < end; ++begin) {
        const double cost = before[end] - before[begin];
        const Quality quality{std::max(best[begin].first, cost), best[begin].second + cost * cost};
        if (quality < next[end]) {
          next[end] = quality;
          from[part][end] = begin;
        }
      }
    best = std::move(next);
  }
  std::vector<int64_t> lengths(parts);
  for (int64_t part = parts, end = count; part-- > 0;) {
    lengths[part] = end - from[part][end];
    end = from[part][end];
  }
  return lengths;
}
