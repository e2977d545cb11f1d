//===- Generation.h - names of the steps that generate text --*- C++ -*-===//
//
// fsdp-derive-generation adds steps of the kinds `prefill` and `decode`. Their inputs, which have
// the attribute `fsdp.generated`, are not part of a data set: the token ids of one sample, and
// their positions, both (1, number of tokens) and the same on every rank. A decode stores the
// scores of the next token in a carried tensor.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_GENERATION_H
#define DIALECT_FSDP_GENERATION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace mlir::fsdp {

inline constexpr llvm::StringLiteral generatedAttrName = "fsdp.generated";
inline constexpr llvm::StringLiteral generatedLogitsName = "decode.logits";
inline constexpr llvm::StringLiteral generatedTokens = "tokens";

/// The name of an input of a step: "decode.tokens". The positions follow the tokens.
inline std::string generatedInputName(llvm::StringRef step, llvm::StringRef input) {
  return (step + "." + input).str();
}

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_GENERATION_H
