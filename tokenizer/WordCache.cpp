//===- WordCache.cpp ------------------------------------------------------===//

#include "tokenizer/WordCache.h"

#include <cstring>

namespace tokenizer {

/// The key of `word`; words with equal keys are so rare that only the first is kept.
static std::uint64_t keyOf(std::string_view word) {
  // Eight bytes a round, each mixed by a multiplication whose halves are added.
  const auto mix = [](std::uint64_t a, std::uint64_t b) {
    const auto product =
        static_cast<unsigned __int128>(a ^ 0xa0761d6478bd642fu) * (b ^ 0xe7037ed1a0b428dbu);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::uint64_t hash = word.size(), part = 0;
  while (word.size() >= sizeof part) {
    std::memcpy(&part, word.data(), sizeof part);
    hash = mix(hash, part);
    word.remove_prefix(sizeof part);
  }
  part = 0;
  std::memcpy(&part, word.data(), word.size());
  return mix(hash, part) >> 1; // another one than NumberTable::kNone
}

bool WordCache::take(std::string_view word, std::vector<std::uint32_t> &ids) const {
  if (word.size() > kMaxWordBytes)
    return false;
  const Slot *const slot = slots.find(keyOf(word));
  if (!slot || std::string_view(texts).substr(slot->text, slot->textBytes) != word)
    return false;
  const std::uint32_t *const first = allIds.data() + slot->ids;
  ids.insert(ids.end(), first, first + slot->count);
  return true;
}

void WordCache::add(std::string_view word, const std::uint32_t *first, std::size_t count) {
  if (word.size() > kMaxWordBytes)
    return;
  if (slots.size() == kMaxWords)
    *this = WordCache();
  Slot &slot = slots[keyOf(word)];
  if (slot.textBytes != 0)
    return; // of another word
  slot = {static_cast<std::uint32_t>(texts.size()), static_cast<std::uint32_t>(allIds.size()),
          static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(count)};
  texts += word;
  allIds.insert(allIds.end(), first, first + count);
}

} // namespace tokenizer
