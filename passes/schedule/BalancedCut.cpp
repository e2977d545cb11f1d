//===- BalancedCut.cpp - consecutive parts of about equal cost ------------===//

#include "passes/schedule/BalancedCut.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

using Costs = std::vector<std::vector<double>>;

namespace {

/// Costs of consecutive items.
class Sums {
public:
  explicit Sums(const Costs &costs) {
    before.emplace_back(costs.empty() ? 0 : costs.front().size(), 0);
    for (const std::vector<double> &item : costs) {
      before.push_back(before.back());
      for (size_t resource = 0; resource < item.size(); ++resource)
        before.back()[resource] += item[resource];
    }
  }
  /// Of the items [begin, end).
  double of(int64_t begin, int64_t end) const {
    double most = 0;
    for (size_t resource = 0; resource < before.front().size(); ++resource)
      most = std::max(most, before[end][resource] - before[begin][resource]);
    return most;
  }

private:
  Costs before; ///< [i][resource]: of the first i items
};

} // namespace

std::vector<double> mlir::fsdp::schedule::costsOfParts(const Costs &costs,
                                                       const std::vector<int64_t> &lengths) {
  const Sums sums(costs);
  std::vector<double> ofParts;
  int64_t begin = 0;
  for (int64_t length : lengths) {
    ofParts.push_back(sums.of(begin, begin + length));
    begin += length;
  }
  return ofParts;
}

std::vector<int64_t> mlir::fsdp::schedule::cutBalanced(const std::vector<double> &costs,
                                                       int64_t parts) {
  Costs apart;
  for (double cost : costs)
    apart.push_back({cost});
  return cutBalanced(apart, parts);
}

std::vector<int64_t> mlir::fsdp::schedule::cutBalanced(const Costs &costs, int64_t parts) {
  const auto count = static_cast<int64_t>(costs.size());
  assert(parts >= 1 && count >= parts && "each part has something");
  const Sums sums(costs);
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
        const double cost = sums.of(begin, end);
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
