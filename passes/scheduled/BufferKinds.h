//===- BufferKinds.h - what the buffers of a rank are for -------*- C++ -*-===//
//
// Memory is reported by what it is spent on. Each buffer has exactly one kind, which follows from
// the structure that ops carry, from the storage that it holds, and from what its launches do:
// never from names.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULED_BUFFERKINDS_H
#define PASSES_SCHEDULED_BUFFERKINDS_H

#include "passes/scheduled/ScheduleProblem.h"

namespace mlir::fsdp {

/// What a buffer is for. Where several are true, the first in this order counts.
enum class BufferKind {
  parameters,   ///< shards of parameters
  optimizer,    ///< shards of the optimizer's states
  accumulators, ///< sums of gradients over microbatches
  stepState,    ///< the number of the step, the learning rate's factors
  gathered,     ///< unsharded parameters
  gradients,    ///< of parameters: whole before their reduction, shards after it
  inputs,       ///< samples of the data set
  logits,       ///< what the loss is computed from, and its cotangent
  recomputed,   ///< computed again in backward
  saved,        ///< computed in forward and used in backward
  temporaries,  ///< all others
};
constexpr int kBufferKinds = static_cast<int>(BufferKind::temporaries) + 1;

/// "step_state": as in the JSON report.
StringRef stringifyBufferKind(BufferKind kind);

/// The kind of each buffer of role `index`.
std::vector<BufferKind> classifyBuffers(const ScheduleProblem &schedule, int index);

/// The launch that first writes each buffer of role `index`; null for those that no launch writes.
std::vector<LaunchOp> findFirstWriters(const ScheduleProblem &schedule, int index);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_BUFFERKINDS_H
