//===- AddedTokens.h - tokens that are found in a text ----------*- C++ -*-===//

#ifndef TOKENIZER_ADDEDTOKENS_H
#define TOKENIZER_ADDEDTOKENS_H

#include "tokenizer/Bpe.h"
#include "tokenizer/Entry.h"
#include "tokenizer/Normalizer.h"
#include "tokenizer/NumberTable.h"

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

/// An entry of `added_tokens`.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  /// Its text form: the content, normalized if the token is normalized.
  std::string written;
  bool singleWord = false; ///< only between characters that are not letters, marks or digits
  bool takesSpaceBefore = false, takesSpaceBehind = false;
  bool normalized = false; ///< found in the normalized text
  bool special = false;    ///< left out when ids are decoded without special tokens
};

/// Finds tokens in a text: the leftmost, and of several the longest.
class TokenFinder {
public:
  TokenFinder() : isFirstByte{} {}

  /// An empty token is never found.
  void add(const AddedToken &token);

  /// Called with each part of a text that is not empty, and the token that it is, or null.
  using Visit = std::function<void(std::string_view part, const AddedToken *token)>;
  void split(std::string_view text, const Visit &visit) const;

private:
  /// The token of the longest pattern that begins at `at`, and its end; null if there is none.
  const AddedToken *longestAt(std::string_view text, std::size_t at, std::size_t &end) const;

  std::array<bool, 256> isFirstByte;
  std::vector<const AddedToken *> nodes{nullptr}; ///< the token that ends there
  NumberTable<std::uint32_t> children;            ///< by node << 8 | byte
};

/// The tokens that a file adds to its model's vocabulary. They are found first: those that are not
/// normalized in the original text, the others in the normalized rest.
class AddedTokens {
public:
  AddedTokens() = default;
  /// Reads the entry `added_tokens`. Error: a wrong entry, an id that is another token's.
  AddedTokens(const Entry &entry, const Bpe &model, const Normalizer &normalizer);
  AddedTokens(AddedTokens &&) = default;
  AddedTokens &operator=(AddedTokens &&) = default;

  const std::vector<AddedToken> &list() const { return tokens; }
  const TokenFinder &raw() const { return rawFinder; }
  const TokenFinder &normalized() const { return normalizedFinder; }

private:
  std::vector<AddedToken> tokens;
  TokenFinder rawFinder, normalizedFinder;
};

} // namespace tokenizer

#endif // TOKENIZER_ADDEDTOKENS_H
