//===- JoinReaders.h - kernels that read what another computes --*- C++ -*-===//

#ifndef PASSES_LOCAL_JOINREADERS_H
#define PASSES_LOCAL_JOINREADERS_H

#include "mlir/IR/Block.h"

namespace mlir::fsdp {

/// Makes an elementwise kernel that is the only reader of a product one kernel with the one that
/// begins with that product and computes something else of it, as the two gradients of a gated
/// activation: what both read is then read once, and the product is in no memory. The reader moves
/// past no collective. Kernels whose loops a library computes with the product are left alone.
void joinReaders(Block &block);

} // namespace mlir::fsdp

#endif // PASSES_LOCAL_JOINREADERS_H
