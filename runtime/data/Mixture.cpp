#include "runtime/data/Mixture.h"

#include "runtime/numerics/Random.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fsdp::rt {

/// floor(count * part / whole), for part <= whole < 2^63.
static std::uint64_t share(std::uint64_t count, std::uint64_t part, std::uint64_t whole) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide(count) * part / whole);
}

Mixture::Mixture(const std::vector<double> &weights, std::uint64_t seed)
    : units(weights.size()), tails(weights.size()), seed(seed) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  std::uint64_t tail = 0;
  for (std::size_t i = weights.size(); i-- > 0;) {
    const double rounded = std::round(weights[i] / largest * 0x1p40);
    units[i] = std::max<std::uint64_t>(static_cast<std::uint64_t>(rounded), 1);
    tails[i] = tail += units[i];
  }
}

Mixture::Draw Mixture::at(std::int64_t position, Block &block) const {
  constexpr auto size = static_cast<std::int64_t>(kBlock);
  if (block.number != position / size) {
    block.number = position / size;
    fill(block);
  }
  return block.draws[position % size];
}

void Mixture::fill(Block &block) const {
  // The sources that the block draws from, at most one for each position, and the next index of
  // each.
  std::size_t sources[kBlock], used = 0;
  std::int64_t next[kBlock];
  std::uint8_t order[kBlock]; // which of them is drawn
  std::size_t filled = 0;
  std::uint64_t begin = kBlock * static_cast<std::uint64_t>(block.number), end = begin + kBlock;
  for (std::size_t i = 0; filled < kBlock; ++i) {
    const std::uint64_t before = share(begin, units[i], tails[i]),
                        after = share(end, units[i], tails[i]);
    begin -= before, end -= after;
    if (after == before)
      continue;
    std::fill_n(order + filled, after - before, static_cast<std::uint8_t>(used));
    filled += after - before;
    sources[used] = i;
    next[used++] = static_cast<std::int64_t>(before);
  }
  static constexpr std::uint64_t kName = hashName("mixture");
  const Random random(seed, kName, static_cast<std::uint64_t>(block.number));
  for (std::size_t i = kBlock; i-- > 1;) { // Fisher and Yates
    const std::uint64_t word = random.words(i / 4)[i % 4];
    std::swap(order[i], order[word * (i + 1) >> 32]);
  }
  for (std::size_t i = 0; i < kBlock; ++i)
    block.draws[i] = {sources[order[i]], next[order[i]]++};
}

std::vector<std::int64_t> Mixture::drawsBefore(std::int64_t position) const {
  constexpr auto size = static_cast<std::int64_t>(kBlock);
  std::vector<std::int64_t> draws;
  std::uint64_t left = static_cast<std::uint64_t>(position / size * size);
  for (std::size_t i = 0; i < units.size(); ++i) {
    const std::uint64_t own = share(left, units[i], tails[i]);
    draws.push_back(static_cast<std::int64_t>(own));
    left -= own;
  }
  Block block;
  for (std::int64_t at = position / size * size; at < position; ++at)
    ++draws[this->at(at, block).source];
  return draws;
}

} // namespace fsdp::rt
