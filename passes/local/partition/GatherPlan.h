//===- GatherPlan.h - which reads share a gather ----------------*- C++ -*-===//

#ifndef PASSES_LOCAL_PARTITION_GATHERPLAN_H
#define PASSES_LOCAL_PARTITION_GATHERPLAN_H

#include "passes/local/partition/StorageLayout.h"

namespace mlir::fsdp {

/// Which reads of a step are served by one gather. Reads count where they are first used. A maximal
/// run of reads of one unit, with no read of another sharded unit in between, is one group: so a
/// unit is gathered once for all its parameters, again in backward, and the last unit of
/// forward is kept across the turn. Units whose placement never reshards are one group. A cast of
/// replicated parameters takes the place of a gather.
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
