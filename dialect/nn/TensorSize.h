//===- TensorSize.h - how large a tensor may be -----------------*- C++ -*-===//

#ifndef DIALECT_NN_TENSORSIZE_H
#define DIALECT_NN_TENSORSIZE_H

#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace mlir::nn {

/// Bytes that no tensor, and no offset into one, exceeds. Larger than any machine's memory, and so
/// small that the sizes of thousands of tensors, times the ranks of a mesh, can be added up in 64
/// bits.
constexpr int64_t kMostTensorBytes = int64_t(1) << 48;

/// The product of `sizes`; nothing where one is negative or the product exceeds
/// `kMostTensorBytes`.
std::optional<int64_t> countElements(ArrayRef<int64_t> sizes);

/// True for a tensor of static shape of at most `kMostTensorBytes` bytes.
bool isSized(Type type);

/// The bytes of a tensor of static shape, elements of less than a byte taking one; nothing where it
/// is no shape or they exceed `kMostTensorBytes`.
std::optional<int64_t> countBytes(RankedTensorType type);

/// What a diagnostic says after the name and the shape of a tensor for which `countBytes` has no
/// answer.
extern const char *const tooLargeMessage;

} // namespace mlir::nn

#endif // DIALECT_NN_TENSORSIZE_H
