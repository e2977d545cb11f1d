//===- MemoryPlanner.h - an offset for every buffer -------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_MEMORYPLANNER_H
#define PASSES_SCHEDULE_MEMORYPLANNER_H

#include "passes/schedule/Interference.h"

namespace mlir::fsdp::schedule {

/// Offsets for the buffers of a role.
struct MemoryPlan {
  std::vector<int64_t> offsets; ///< bytes, one per buffer, multiples of kAlignment
  int64_t persistent = 0;       ///< bytes at the start of the arena kept for persistent buffers
  int64_t arena = 0;            ///< bytes: the end of the last buffer
  /// A lower bound on the bytes of every plan: the persistent ones, and the largest sum of
  /// transient buffers of one segment that are pairwise live together.
  int64_t lowerBound = 0;
};

/// Plans the memory of `role`: persistent buffers first, in their order; those of each segment
/// above them. Two transient buffers share bytes only if all accesses of one are complete before
/// any of the other starts, or one takes the other's place in a launch that may work in
/// place. Starts from best fit by decreasing size and improves the order while that helps.
/// Deterministic. Requires a role that the checker accepts before planning.
MemoryPlan planMemory(const Role &role);

/// Writes offsets and arena of `plan` into `role`.
void applyPlan(const MemoryPlan &plan, Role &role);

/// For each of `sets`, which mark buffers, the most bytes of them that are live together in the
/// segment of `touches`.
std::vector<int64_t> peaksOf(const Role &role, const SegmentTouches &touches,
                             const std::vector<std::vector<bool>> &sets);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_MEMORYPLANNER_H
