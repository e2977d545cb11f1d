//===- TensorSize.h - the maximum size of a tensor --------------*- C++ -*-===//

#ifndef DIALECT_NN_TENSORSIZE_H
#define DIALECT_NN_TENSORSIZE_H

#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace mlir::nn {

/// Bytes that no tensor, and no offset into one, exceeds. Larger than any machine's memory, but
/// small enough that the sizes of thousands of tensors, times the ranks of a mesh, add up in 64
/// bits.
constexpr int64_t kMaxTensorBytes = int64_t(1) << 48;

/// The product of `sizes`; nothing where one is negative or the product exceeds
/// `kMaxTensorBytes`.
std::optional<int64_t> countElements(ArrayRef<int64_t> sizes);

/// True for a tensor of static shape of at most `kMaxTensorBytes` bytes.
bool isSized(Type type);

/// The bytes of a tensor of static shape, elements of less than a byte taking one; nothing if it is
/// not a shape or they exceed `kMaxTensorBytes`.
std::optional<int64_t> countBytes(RankedTensorType type);

/// The text of a diagnostic after the name and the shape of a tensor that `countBytes` rejects.
extern const char *const tooLargeMessage;

} // namespace mlir::nn

#endif // DIALECT_NN_TENSORSIZE_H
