//===- BalancedCut.h - consecutive parts of about equal cost ----*- C++ -*-===//

#ifndef PASSES_SCHEDULE_BALANCEDCUT_H
#define PASSES_SCHEDULE_BALANCEDCUT_H

#include <cstdint>
#include <vector>

namespace mlir::fsdp::schedule {

/// The lengths of `parts` consecutive, non-empty parts of `costs` of which the dearest costs least;
/// among these, those whose squared costs add up to the least. At least as many costs as parts.
std::vector<int64_t> cutBalanced(const std::vector<double> &costs, int64_t parts);

/// The same of costs in several resources that are used at the same time, [item][resource], as many
/// of each item: the cost of a part is its largest sum over the resources.
std::vector<int64_t> cutBalanced(const std::vector<std::vector<double>> &costs, int64_t parts);

/// The cost of each part of these `lengths`.
std::vector<double> costsOfParts(const std::vector<std::vector<double>> &costs,
                                 const std::vector<int64_t> &lengths);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_BALANCEDCUT_H
