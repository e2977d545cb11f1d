//===- BufferKinds.h - purposes of buffers ----------------------*- C++ -*-===//
// Memory is reported by purpose. Each buffer has exactly one kind, which follows from the structure
// of its ops, from the storage that it holds, and from its launches: never from names.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULED_BUFFERKINDS_H
#define PASSES_SCHEDULED_BUFFERKINDS_H

#include "passes/scheduled/ScheduleProblem.h"

namespace mlir::fsdp {

/// The purpose of a buffer. If several apply, the first in this order is chosen.
enum class BufferKind {
  parameters,   ///< shards of parameters
  optimizer,    ///< shards of the optimizer's states
  accumulators, ///< sums of gradients over microbatches
  stepState,    ///< the number of the step, the learning rate's factors
  gathered,     ///< unsharded parameters
  gradients,    ///< of parameters: whole before their reduction, shards after it
  inputs,       ///< samples of the data set
  logits,       ///< the input of the loss, and its cotangent
  recomputed,   ///< recomputed in backward
  saved,        ///< computed in forward and used in backward
  messages,     ///< sent to a rank that runs another program, or received from one
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
