//===- WordCache.cpp ------------------------------------------------------===//

#include "tokenizer/WordCache.h"

#include <cstring>

namespace tokenizer {

WordCache::WordCache() : slots(1024) {}

std::uint64_t WordCache::hashOf(std::string_view word) {
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
  return mix(hash, part) | 1;
}

bool WordCache::take(std::string_view word, std::vector<std::uint32_t> &ids) const {
  if (word.size() > kMaxWordBytes)
    return false;
  const std::uint64_t hash = hashOf(word);
  for (std::size_t at = hash >> 32;; ++at) {
    const Slot &slot = slots[at & (slots.size() - 1)];
    if (slot.hash == 0)
      return false;
    if (slot.hash == hash && slot.textBytes == word.size() &&
        std::memcmp(texts.data() + slot.text, word.data(), word.size()) == 0) {
      const std::uint32_t *const first = allIds.data() + slot.ids;
      ids.insert(ids.end(), first, first + slot.count);
      return true;
    }
  }
}

void WordCache::add(std::string_view word, const std::uint32_t *first, std::size_t count) {
  if (word.size() > kMaxWordBytes)
    return;
  if (words == kMaxWords)
    clear();
  if (2 * (words + 1) > slots.size())
    grow();
  Slot added{hashOf(word), static_cast<std::uint32_t>(texts.size()),
             static_cast<std::uint32_t>(allIds.size()), static_cast<std::uint16_t>(word.size()),
             static_cast<std::uint16_t>(count)};
  texts += word;
  allIds.insert(allIds.end(), first, first + count);
  std::size_t at = added.hash >> 32;
  while (slots[at & (slots.size() - 1)].hash != 0)
    ++at;
  slots[at & (slots.size() - 1)] = added;
  ++words;
}

void WordCache::clear() {
  slots.assign(1024, Slot());
  texts.clear();
  allIds.clear();
  words = 0;
}

void WordCache::grow() {
  std::vector<Slot> old(slots.size() * 2);
  old.swap(slots);
  for (const Slot &slot : old) {
    if (slot.hash == 0)
      continue;
    std::size_t at = slot.hash >> 32;
    while (slots[at & (slots.size() - 1)].hash != 0)
      ++at;
    slots[at & (slots.size() - 1)] = slot;
  }
}

} // namespace tokenizer
