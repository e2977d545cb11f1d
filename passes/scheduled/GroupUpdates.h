//===- GroupUpdates.h - updates of several storages as one launch -*- C++ -*-===//

#ifndef PASSES_SCHEDULED_GROUPUPDATES_H
#define PASSES_SCHEDULED_GROUPUPDATES_H

#include "passes/scheduled/SegmentPlan.h"

namespace mlir::fsdp {

/// Joins updates by one rule, rate, scale and condition into one launch, in the place of the last
/// of them, up to the number of updates that a launch may have. Updates between which another
/// launch needs or changes bytes that the first of them accesses remain separate, as where a copy
/// is gathered after each.
void groupUpdates(SegmentPlan &plan);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_GROUPUPDATES_H
