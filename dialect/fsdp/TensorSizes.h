//===- TensorSizes.h - sizes of tensors fit 64 bits -------------*- C++ -*-===//

#ifndef DIALECT_FSDP_TENSORSIZES_H
#define DIALECT_FSDP_TENSORSIZES_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// Fails, at the op, for a tensor or buffer below `root` whose size in bytes does not fit in 64
/// bits. Verifiers of ops that hold a program call it before any code counts elements there.
LogicalResult verifyTensorSizes(Operation *root);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_TENSORSIZES_H
