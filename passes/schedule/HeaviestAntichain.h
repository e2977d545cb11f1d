//===- HeaviestAntichain.h - antichain of maximum weight ---------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_HEAVIESTANTICHAIN_H
#define PASSES_SCHEDULE_HEAVIESTANTICHAIN_H

#include <cstdint>
#include <vector>

namespace mlir::fsdp::schedule {

/// Nodes of a partial order of which none is before another, with the largest sum of `weights`: of
/// several such sets always the same one, whatever the order of the computation. `successors`: of
/// each node those directly behind it, from which the order follows. `order`: all nodes, each
/// behind those that are before it.
///
/// By Dilworth's theorem for weights, the sum is that of all weights minus a maximum flow from
/// nodes to later ones; the cut next to the source determines which. In an interval order, as that
/// of lifetimes mostly is, each node may take the weight of any that has ended: a flow that is
/// found so, node by node, is mostly the largest already, and shortest paths complete it.
std::vector<int> findHeaviestAntichain(const std::vector<std::vector<int>> &successors,
                                       const std::vector<int> &order,
                                       const std::vector<int64_t> &weights);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_HEAVIESTANTICHAIN_H
