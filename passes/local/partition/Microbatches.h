//===- Microbatches.h - a step in parts that follow one another -*- C++ -*-===//

#ifndef PASSES_LOCAL_PARTITION_MICROBATCHES_H
#define PASSES_LOCAL_PARTITION_MICROBATCHES_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The name of the segment with which a step called `step` begins, and of the part `part` of a step
/// in microbatches: "train.first".
std::string getMicrobatchSegment(StringRef step, StringRef part = "first");

/// Replaces `whole`, a segment that computes one of `count` (at least 2) microbatches and in which
/// all_reduces over `kMicrobatchAxis` denote sums over all of them, by
///
///   first  -> middle* -> last -> update (of an evaluation: end) -> `next`
/// and a walk of these. Ops that depend on samples run in each of the first three; reductions of
/// sums of gradients only in `last`, where the sums are complete; everything else in `update`. Sums
/// are `fsdp.carried` tensors, declared at the module's beginning. Fails, with a
/// diagnostic, where a microbatch needs a sum over all of them.
LogicalResult cutIntoMicrobatches(SegmentOp whole, int64_t count, ArrayAttr next,
                                  SymbolTable &symbols);

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_PARTITION_MICROBATCHES_H
