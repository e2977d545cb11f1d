//===- SegmentStages.h - the stage of each op of a segment ------*- C++ -*-===//

#ifndef PASSES_LOCAL_STAGES_SEGMENTSTAGES_H
#define PASSES_LOCAL_STAGES_SEGMENTSTAGES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "passes/StagelessOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {

/// The part of a microbatch that a stage computes in one go: its forward, or its backward.
struct StagePart {
  int64_t stage = 0;
  bool backward = false;
  bool operator==(const StagePart &other) const {
    return stage == other.stage && backward == other.backward;
  }
};

/// Where an op of a step is computed.
struct StagePlace {
  enum Kind {
    anywhere, ///< in each part that uses it (StagelessOps)
    part,     ///< by one stage
    update    ///< behind all microbatches, by the ranks that need it
  };
  Kind kind = anywhere;
  StagePart of = {}; ///< for `part`
};

/// The stages of carried tensors, by name.
using CarriedStages = llvm::StringMap<StagePart>;

/// Where the ops of one segment are computed. Ops know their stage and direction by their
/// structure; those without one follow their operands. A value passes from a stage to later ones in
/// forward, and to earlier ones in backward.
class SegmentStages {
public:
  /// Adds the tensors that `segment` carries to `carried`, where other segments may find them.
  static FailureOr<SegmentStages> get(SegmentOp segment, CarriedStages &carried);

  StagePlace of(Operation *op) const { return places.lookup(op); }
  /// The ops of a part, in order.
  ArrayRef<Operation *> opsOf(StagePart part) const;
  /// The ops of kind `update`, in order.
  ArrayRef<Operation *> getUpdates() const { return updates; }
  /// The number of stages: one more than the last one that computes something.
  int64_t getNumStages() const { return numStages; }

private:
  LogicalResult place(Operation *op, CarriedStages &carried);

  DenseMap<Operation *, StagePlace> places;
  StagelessOps stageless;
  SmallVector<SmallVector<Operation *>> forward, backward; ///< by stage
  SmallVector<Operation *> updates;
  DenseSet<StringRef> stored; ///< tensors that the segment carries
  int64_t numStages = 0;
};

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_STAGES_SEGMENTSTAGES_H
