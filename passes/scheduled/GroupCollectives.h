//===- GroupCollectives.h - collectives of a unit as one launch -*- C++ -*-===//

#ifndef PASSES_SCHEDULED_GROUPCOLLECTIVES_H
#define PASSES_SCHEDULED_GROUPCOLLECTIVES_H

#include "passes/scheduled/SegmentPlan.h"

namespace mlir::fsdp {

/// Makes the gathers of one unit that follow one another on the gather stream, over the same axes,
/// one launch, and so the reduce-scatters of its gradients: ranks meet once for all storages of a
/// unit. Gathers move to the first of them, reductions to the last. A launch that cannot be moved
/// there, as it depends on one in between, stays alone.
void groupCollectives(SegmentPlan &plan);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_GROUPCOLLECTIVES_H
