//===- GatherPlan.h - groups of reads that share a gather -------*- C++ -*-===//

#ifndef PASSES_LOCAL_PARTITION_GATHERPLAN_H
#define PASSES_LOCAL_PARTITION_GATHERPLAN_H

#include "passes/local/partition/StorageLayout.h"

namespace mlir::fsdp {

/// Groups the reads of a step that share one gather. The position of a read is its first use. A
/// maximal run of reads of one unit, with no read of another sharded unit in between, is one group:
/// so a unit is gathered once in forward and once in backward for all its parameters, and the last
/// unit of forward is kept for the start of backward. Units whose placement never reshards are one
/// group. For replicated parameters a cast replaces the gather.
class GatherPlan {
public:
  GatherPlan(StepOp step, const StorageLayout &layout);

  /// The number of the group of `read`; reads of one storage with one number share a gather.
  unsigned getGroup(ReadOp read) const { return groups.lookup(read); }

private:
  DenseMap<Operation *, unsigned> groups;
};

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_PARTITION_GATHERPLAN_H
