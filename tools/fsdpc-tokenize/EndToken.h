//===- EndToken.h - the token between documents -----------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_TOKENIZE_ENDTOKEN_H
#define TOOLS_FSDPC_TOKENIZE_ENDTOKEN_H

#include "tokenizer/Tokenizer.h"

#include <optional>
#include <string>

namespace fsdpc {

struct EndToken {
  tokenizer::TokenId id;
  std::string text;
};

/// The token that ends a document: `asked`, a token's text; nothing for "none". Without `asked`,
/// the `eos_token` of the tokenizer_config.json next to the tokenizer (a file or a folder), or the
/// known end token that the vocabulary has. Throws an error if there is no such token.
std::optional<EndToken> chooseEndToken(const tokenizer::Tokenizer &tokenizer,
                                       const std::string &path, const std::string &asked);

} // namespace fsdpc

#endif // TOOLS_FSDPC_TOKENIZE_ENDTOKEN_H
