//===- HeadWidth.h - widths of heads that targets support ------*- C++ -*-===//

#ifndef DIALECT_NN_HEADWIDTH_H
#define DIALECT_NN_HEADWIDTH_H

#include "mlir/IR/Operation.h"

namespace mlir::nn {

/// Fails with a diagnostic on `op` if CUDA's attention kernels do not support heads of `width`.
LogicalResult verifyHeadWidth(Operation *op, int64_t width);

} // namespace mlir::nn

#endif // DIALECT_NN_HEADWIDTH_H
