//===- Waits.h - insert all waits, remove the implied ones ------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_WAITS_H
#define PASSES_SCHEDULE_WAITS_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// Makes each launch wait for every earlier one whose accesses conflict with its own (same bytes
/// of a buffer, at least one write). Existing waits stay.
void materializeWaits(Segment &segment);

/// Removes the waits that streams and other waits imply: the transitive reduction of the order,
/// which is unique. The order of launches does not change. Requires waits without a cycle.
void elideImpliedWaits(Segment &segment);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_WAITS_H
