//===- NumberTable.h - a hash table of numbers ------------------*- C++ -*-===//

#ifndef TOKENIZER_NUMBERTABLE_H
#define TOKENIZER_NUMBERTABLE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokenizer {

/// Values by 64-bit keys, all in one array: a lookup of a merge's pair takes one memory access. A
/// key is never `kNone`.
template <typename Value> class NumberTable {
public:
  static constexpr std::uint64_t kNone = ~std::uint64_t(0);

  explicit NumberTable(std::size_t expected = 0) { grow(expected); }

  std::size_t size() const { return count; }

  const Value *find(std::uint64_t key) const {
    for (std::size_t at = indexOf(key);; at = (at + 1) & mask) {
      if (slots[at].key == key)
        return &slots[at].value;
      if (slots[at].key == kNone)
        return nullptr;
    }
  }

  /// The value of `key`, a new one if there is none.
  Value &operator[](std::uint64_t key) {
    if (2 * (count + 1) > slots.size())
      grow(slots.size());
    std::size_t at = indexOf(key);
    while (slots[at].key != kNone && slots[at].key != key)
      at = (at + 1) & mask;
    if (slots[at].key == kNone) {
      slots[at].key = key;
      ++count;
    }
    return slots[at].value;
  }

private:
  struct Slot {
    std::uint64_t key = kNone;
    Value value{};
  };

  std::size_t indexOf(std::uint64_t key) const {
    key *= 0x9e3779b97f4a7c15u; // of high bits all depend on all of the key
    return (key ^ key >> 32) & mask;
  }

  void grow(std::size_t expected) {
    std::size_t size = 16;
    while (size < 2 * expected + 2)
      size *= 2;
    std::vector<Slot> old(size);
    old.swap(slots);
    mask = size - 1;
    count = 0;
    for (Slot &slot : old)
      if (slot.key != kNone)
        (*this)[slot.key] = std::move(slot.value);
  }

  std::vector<Slot> slots;
  std::size_t mask = 0, count = 0;
};

} // namespace tokenizer

#endif // TOKENIZER_NUMBERTABLE_H
