//===- MatrixProduct.h - contractions that are matrix products --*- C++ -*-===//

#ifndef CODEGEN_MATRIXPRODUCT_H
#define CODEGEN_MATRIXPRODUCT_H

#include "dialect/nn/NNDialect.h"
#include <array>

namespace mlir::fsdp {

/// The arguments of the runtime's `gemm` (runtime/kernels/Gemm.h), strides in elements.
struct MatrixProduct {
  struct Strides {
    int64_t row = 0, column = 0;
    std::array<int64_t, 3> batch = {0, 0, 0};
  };
  int64_t m = 1, n = 1, k = 1;
  std::array<int64_t, 3> batch = {1, 1, 1};
  Strides a, b, c;

  /// The names of `op` as rows, columns, contraction and up to three batch dimensions. Fails if
  /// names of one kind are not nested in memory, no stride is 1, types are not f32, or nothing is
  /// contracted by a matrix (then loops are as fast).
  static FailureOr<MatrixProduct> of(nn::EinsumOp op);
};

} // namespace mlir::fsdp

#endif // CODEGEN_MATRIXPRODUCT_H
