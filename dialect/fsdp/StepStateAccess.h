//===- StepStateAccess.h - accesses of ops to the step state ----*- C++ -*-===//
//
// The buffer of the step state holds the state itself, which launches read and the end of a step
// writes, followed by the notes of skipped updates (runtime/program/StepState.h).
// Normal and deferred updates have an entry each, because they run on different streams: no update
// waits for the note of another stream, and those of one stream are in order
// anyway. The checker sees each part.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_STEPSTATEACCESS_H
#define DIALECT_FSDP_STEPSTATEACCESS_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The bytes [begin, end) of the step state's buffer.
struct StepStateBytes {
  int64_t begin, end;

  bool operator==(const StepStateBytes &other) const {
    return begin == other.begin && end == other.end;
  }
  bool overlaps(const StepStateBytes &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// The parts of the step state's buffer that ops read and write, each once. Parts written in place
/// are also read.
struct StepStateAccess {
  SmallVector<StepStateBytes, 2> reads, writes;

  bool isNone() const { return reads.empty() && writes.empty(); }
  /// Whether it writes the state itself, apart from the notes of updates.
  bool writesState() const;
  /// Whether one writes memory that the other reads or writes.
  bool conflictsWith(const StepStateAccess &other) const;
};

/// The accesses of `ops`, by their effects on the step state and on the notes of updates.
StepStateAccess getStepStateAccess(ArrayRef<Operation *> ops);
/// Of the body of `launch`.
StepStateAccess getStepStateAccess(LaunchOp launch);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_STEPSTATEACCESS_H
