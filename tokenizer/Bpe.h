//===- Bpe.h - byte-pair encoding of words ----------------------*- C++ -*-===//

#ifndef TOKENIZER_BPE_H
#define TOKENIZER_BPE_H

#include "tokenizer/Entry.h"
#include "tokenizer/NumberTable.h"
#include "tokenizer/WordCache.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tokenizer {

using TokenId = std::uint32_t;
/// Ids of a file are below this number; no vocabulary has nearly as many tokens.
constexpr TokenId kMaxTokenId = (1u << 22) - 1;

/// The vocabulary and the merges of a file, and the encoding of words by them: a word starts as its
/// characters, and the pair with the lowest rank, the leftmost of equal ones, is merged until no
/// pair is left.
class Bpe {
public:
  /// Reads the entry `model`. `isByteLevel`: words are bytes (PreTokenizer.h). Throws an error for
  /// a model other than BPE, unsupported options, and an invalid vocabulary or merge.
  Bpe(const Entry &model, bool isByteLevel);

  /// The state of one thread between words.
  class Workspace {
    friend class Bpe;
    struct Symbol {
      TokenId id;
      std::int32_t before, next; ///< -1 for none
      bool alive;
    };
    struct Start {
      TokenId id;
      /// The character that it is, or 0 for the unknown token and for bytes of a character.
      char32_t character;
      /// The position of its character in the word.
      std::size_t begin;
    };
    WordCache cache;
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> queue;
    std::vector<Start> starts;
  };

  /// Appends the ids of `word`, which is not empty. Time: O(n log n) of its length.
  void encode(std::string_view word, Workspace &workspace, std::vector<TokenId> &ids) const;

  std::optional<TokenId> find(std::string_view token) const;
  /// The tokens and their ids, in no order.
  const std::unordered_map<std::string_view, TokenId> &vocabulary() const { return ids; }

private:
  struct Merge {
    std::uint32_t rank;
    TokenId result;
  };
  static constexpr TokenId kNoToken = ~TokenId(0);
  static constexpr std::uint32_t kNoRank = ~std::uint32_t(0);
  static constexpr std::size_t kShort = 20; ///< symbols

  void readVocabulary(const Entry &vocabulary);
  void readMerges(const Entry &merges);
  void addMerge(const Entry &merges, std::size_t index, std::string_view left,
                std::string_view right);
  void indexBytes();
  void start(std::string_view word, std::vector<Workspace::Start> &starts) const;
  void startBytes(std::string_view word, std::vector<Workspace::Start> &starts) const;
  void encodePart(std::string_view part, Workspace &workspace, std::size_t first, std::size_t last,
                  std::vector<TokenId> &result) const;
  void merge(Workspace &workspace, std::size_t first, std::size_t last,
             std::vector<TokenId> &result) const;
  void mergeShort(const Workspace &workspace, std::size_t first, std::size_t last,
                  std::vector<TokenId> &result) const;
  void enqueue(Workspace &workspace, std::int32_t at) const;

  bool isByteLevel;
  bool byteFallback = false, fuseUnknown = false, ignoreMerges = false;
  std::optional<TokenId> unknown;
  std::deque<std::string> texts; ///< that the keys of `ids` are views of
  std::unordered_map<std::string_view, TokenId> ids;
  NumberTable<Merge> merges;        ///< by left id << 32 | right id
  NumberTable<TokenId> characters;  ///< tokens of one character
  NumberTable<bool> joinable;       ///< last character << 32 | first one, of a merge's two sides
  std::array<TokenId, 256> bytes{}; ///< of byte-level vocabularies, and of byte fallback
  bool hasAllBytes = false;
};

} // namespace tokenizer

#endif // TOKENIZER_BPE_H
