//===- FusedProduct.h - kernels that begin with a product -------*- C++ -*-===//

#ifndef CODEGEN_FUSEDPRODUCT_H
#define CODEGEN_FUSEDPRODUCT_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// A launch whose one op is an nn.fused with a matrix product in it: a product in the place of the
/// first result, and a kernel that goes on with its rows.
struct FusedProduct {
  nn::EinsumOp product;
  unsigned rowDims;       ///< outer dimensions of the product that are its rows
  Value lhs, rhs;         ///< buffers of the launch
  SmallVector<Value> ins; ///< buffers that the kernel reads beside the product, in their order

  /// None where the launch holds anything else, yields other than all results in their order, and
  /// where the kernel does not go by rows.
  static std::optional<FusedProduct> of(LaunchOp launch);
};

/// Sees through nn.fused: a result is what it yields, an argument what it is given.
Value resolveFused(Value value);

} // namespace mlir::fsdp

#endif // CODEGEN_FUSEDPRODUCT_H
