//===- TokenSource.h - inputs taken from a row of tokens --------*- C++ -*-===//
//
//   %t = fsdp.input "tokens" sample_dim 0 {fsdp.tokens = 61 : i64} : tensor<6x16xi32>
//   %y = fsdp.input "targets" sample_dim 0 {fsdp.targets = 61 : i64} : tensor<6x16xi32>
//
// Without these attributes, a sample is a row of the data set's tensor of the input's name. With
// one of them, the data set is one long row of tokens, all below the attribute's value (the size of
// the vocabulary); sample i is the T tokens from i*T on (`fsdp.tokens`) or the T tokens from i*T +
// 1 on, the successors of these (`fsdp.targets`). The input then is samples by T integers,
// sample dimension 0. The verifier of `fsdp.input` checks this.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_TOKENSOURCE_H
#define DIALECT_FSDP_TOKENSOURCE_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

inline constexpr llvm::StringLiteral tokensAttrName = "fsdp.tokens";
inline constexpr llvm::StringLiteral targetsAttrName = "fsdp.targets";

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_TOKENSOURCE_H
