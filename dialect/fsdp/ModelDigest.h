//===- ModelDigest.h - the digest of a model, on its module -----*- C++ -*-===//
//
//   module attributes {fsdp.model_digest = "v1:9d2f0c1e8a7b6543"} {}
// A digest of the forward pass, as the model was described
// (passes/global/ModelDigest.h): a version and 64 bits. The compiler sets it before the first pass,
// no pass reads or changes it, and the generated program compares it with that of a checkpoint.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_MODELDIGEST_H
#define DIALECT_FSDP_MODELDIGEST_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

inline constexpr llvm::StringLiteral modelDigestAttrName = "fsdp.model_digest";

namespace detail {
/// Verifies the attribute `fsdp.model_digest` of `op`.
llvm::LogicalResult verifyModelDigest(Operation *op, Attribute digest);
} // namespace detail

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_MODELDIGEST_H
