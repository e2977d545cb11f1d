//===- TensorSizes.h - sizes of tensors fit 64 bits -------------*- C++ -*-===//

#ifndef DIALECT_FSDP_TENSORSIZES_H
#define DIALECT_FSDP_TENSORSIZES_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// Fails, at the op, for a value below `root` whose bytes do not fit 64 bits: a tensor or a buffer.
/// For verifiers of ops that hold a program, before anything else counts elements there.
LogicalResult verifyTensorSizes(Operation *root);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_TENSORSIZES_H
