//===- Tokenization.h - documents to token files, and back ------*- C++ -*-===//

#ifndef TOOLS_FSDPC_TOKENIZE_TOKENIZATION_H
#define TOOLS_FSDPC_TOKENIZE_TOKENIZATION_H

#include "tokenizer/Tokenizer.h"
#include "tools/fsdpc-tokenize/Documents.h"
#include "tools/fsdpc-tokenize/TokenFile.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdpc {

/// The token that ends a document.
struct EndToken {
  tokenizer::TokenId id;
  std::string text;
};

struct TokenizeOptions {
  std::vector<std::string> inputs;
  std::string out;
  DocumentOptions documents;
  std::optional<EndToken> end;
  bool addSpecialTokens = false;
  std::int64_t shardTokens = 100'000'000;
  double validationShare = 0; ///< of the documents
  std::int64_t threads = 1;
};

struct TokenizeResult {
  std::int64_t documents = 0, emptyDocuments = 0, validationDocuments = 0;
  std::int64_t textBytes = 0, tokens = 0;
  double seconds = 0;
  std::vector<TokenFiles::Written> files;
};

/// The token that ends a document: `asked`, a token's text; nothing for "none". Without `asked`,
/// the `eos_token` of the tokenizer_config.json next to the tokenizer (a file or a folder), or the
/// known end token that the vocabulary has. Throws an error if there is no such token.
std::optional<EndToken> chooseEndToken(const tokenizer::Tokenizer &tokenizer,
                                       const std::string &path, const std::string &asked);

/// Whether document `index`, from 0, is of the validation split: a function of the two numbers.
bool isOfValidation(std::uint64_t index, double share);

/// Writes the token files, all or none. A signal handler sets `stopped` to end the run. Throws an
/// error for an invalid input, for output without tokens, for a file that cannot be written, and if
/// `stopped`.
TokenizeResult tokenizeFiles(const tokenizer::Tokenizer &tokenizer, const TokenizeOptions &options,
                             const std::atomic<bool> &stopped);

/// Writes the text of a token file to standard output, the end tokens as their texts. Error: a
/// token that the tokenizer does not have.
void printTokens(const tokenizer::Tokenizer &tokenizer, const std::string &path,
                 const std::optional<EndToken> &end);

} // namespace fsdpc

#endif // TOOLS_FSDPC_TOKENIZE_TOKENIZATION_H
