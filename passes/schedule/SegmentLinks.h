//===- SegmentLinks.h - waits across the ends of segments -------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_SEGMENTLINKS_H
#define PASSES_SCHEDULE_SEGMENTLINKS_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// Removes the joins at the ends of the segments that `async` holds, and makes launches of later
/// segments await the launches that they conflict with: accesses to the same bytes of the arena, of
/// which one writes, and collectives on one communicator. Memory must be planned.
///
/// Launches of different segments with one name and stream record one event. Its latest recording
/// is the last of them, and implies those before it, which are on the same stream.
void linkSegments(Role &role, const std::vector<bool> &async);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_SEGMENTLINKS_H
