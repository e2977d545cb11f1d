//===- FusedProduct.h - kernels in one launch with a product ----*- C++ -*-===//

#ifndef CODEGEN_FUSEDPRODUCT_H
#define CODEGEN_FUSEDPRODUCT_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// A launch whose one op is an nn.fused with a matrix product in it: a product in the buffer of the
/// first result, and an epilogue kernel on its rows.
struct FusedProduct {
  nn::EinsumOp product;
  unsigned rowDims;        ///< outer dimensions of the product that are its rows
  Value lhs, rhs;          ///< buffers of the launch
  bool addsUpRows = false; ///< a result is a sum, mean or maximum that all rows go into
  SmallVector<Value> ins;  ///< buffers that the kernel reads besides the product, in their order

  /// None if the launch contains anything else, does not yield all results in their order, or the
  /// kernel does not iterate over rows.
  static std::optional<FusedProduct> of(LaunchOp launch);
};

/// A launch whose one op is a product with the sum over the rows of one of its operands
/// (dialect/nn/OperandSum.h), which a kernel computes before it.
struct ProductWithSum {
  nn::EinsumOp product;
  Value lhs, rhs; ///< buffers of the launch, whose results are the product and the sum
  bool ofRight;   ///< the kernel reads `rhs` alone

  Value summed() const { return ofRight ? rhs : lhs; }
  static std::optional<ProductWithSum> of(LaunchOp launch);
};

/// Looks through nn.fused: maps a result to the yielded value, an argument to the operand.
Value resolveFused(Value value);

} // namespace mlir::fsdp

#endif // CODEGEN_FUSEDPRODUCT_H
