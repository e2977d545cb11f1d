//===- GroupCasts.h - casts of several units as one launch ------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_GROUPCASTS_H
#define PASSES_SCHEDULED_GROUPCASTS_H

#include "passes/schedule/Problem.h"
#include "passes/scheduled/SegmentPlan.h"

namespace mlir::fsdp {

/// True if a segment of local IR has a cast of a unit that no collective follows.
bool hasLoneCasts(ModuleOp module);

/// Joins casts of units that no collective follows, of equal size in one direction, into one kernel
/// in the place of the first of them, up to the number of addresses that a kernel may have. A cast
/// joins only if the bytes in use until its own place, and its own, are at most three quarters of
/// the most that the segment uses: the arena is then rarely larger, but the caller has to compare.
/// Casts before which another launch changes the parameter remain separate. False if there is none
/// to join.
///
/// `order`: indices in `plan.launches` in issue order; `segment`: the same launches, with the waits
/// that keep budgets. Launches that became part of another one are removed from both, and have no
/// body in `plan`. `persistent`: the number of buffers that outlive the segment.
bool groupCasts(SegmentPlan &plan, size_t persistent, schedule::Segment &segment,
                std::vector<int> &order);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_GROUPCASTS_H
