//===- TensorSize.h - what a tensor takes, in 64 bits -----------*- C++ -*-===//

#ifndef DIALECT_NN_TENSORSIZE_H
#define DIALECT_NN_TENSORSIZE_H

#include "mlir/IR/BuiltinTypes.h"
#include <optional>
#include <string>

namespace mlir::nn {

/// The product of `factors`, which are at least 0; nothing where it does not fit 64 bits.
std::optional<int64_t> checkedProduct(ArrayRef<int64_t> factors);

/// The bytes of a tensor of static shape, a bit taking a byte; nothing where they do not fit.
std::optional<int64_t> countBytes(RankedTensorType type);

/// What a diagnostic says after the name and the shape of a tensor for which `countBytes` has no
/// answer.
extern const char *const tooLargeMessage;

} // namespace mlir::nn

#endif // DIALECT_NN_TENSORSIZE_H
