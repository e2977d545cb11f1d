//===- LibraryEpilogue.h - loops that come with a product -------*- C++ -*-===//

#ifndef DIALECT_NN_LIBRARYEPILOGUE_H
#define DIALECT_NN_LIBRARYEPILOGUE_H

#include "dialect/nn/NNDialect.h"
#include <optional>

namespace mlir::nn {

/// The functions that a GPU's library of products (cuBLASLt) computes behind a product in the same
/// kernel: sum = product + bias + residual, GELU(sum) in its form with tanh, or
/// product * GELU'(argument). All tensors have the type of the product.
struct LibraryEpilogue {
  enum Function { none, gelu, geluGradient };

  Value bias;     ///< an argument of the body, one element for each column; null for none
  Value residual; ///< an argument of the body, of the product's shape; null for none
  Function function = none;
  Value argument; ///< of geluGradient: an argument of the body, of the product's shape
  /// The first results of the kernel, which the library computes: with `gelu` two where the sum is
  /// one. A kernel computes the others, which are sums of the result of the library.
  unsigned results = 1;
};

/// The epilogue of `op`, a kernel that begins with a product; none where it computes anything else
/// behind it.
std::optional<LibraryEpilogue> getLibraryEpilogue(Operation *op);

} // namespace mlir::nn

#endif // DIALECT_NN_LIBRARYEPILOGUE_H
