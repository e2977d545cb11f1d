//===- WordCache.h - ids of words that were encoded before ------*- C++ -*-===//

#ifndef TOKENIZER_WORDCACHE_H
#define TOKENIZER_WORDCACHE_H

#include "tokenizer/NumberTable.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

/// A cache of the ids of words. Its memory is bounded: when it is full it is emptied. For one
/// thread.
class WordCache {
public:
  static constexpr std::size_t kMaxWordBytes = 128;
  static constexpr std::size_t kMaxWords = 1 << 18;

  /// Appends the ids of `word`; false if it is not in the cache.
  bool take(std::string_view word, std::vector<std::uint32_t> &ids) const;
  /// Adds a word that `take` has not found, unless it is longer than kMaxWordBytes.
  void add(std::string_view word, const std::uint32_t *first, std::size_t count);

private:
  struct Slot {
    std::uint32_t text = 0, ids = 0;
    std::uint16_t textBytes = 0, count = 0;
  };

  NumberTable<Slot> slots{512};
  std::string texts;
  std::vector<std::uint32_t> allIds;
};

} // namespace tokenizer

#endif // TOKENIZER_WORDCACHE_H
