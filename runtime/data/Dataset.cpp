#include "runtime/data/Dataset.h"

#include "runtime/numerics/Random.h"

#include <algorithm>
#include <cstring>

namespace fsdp::rt {

SampleOrder::SampleOrder(bool shuffle, std::uint64_t seed,
                         const std::vector<WeightedSamples> &parts)
    : shuffle(shuffle), seed(seed) {
  if (parts.size() < 2)
    return;
  std::vector<double> weights;
  std::int64_t first = 0;
  for (const WeightedSamples &part : parts) {
    const auto words = Random(seed, hashName("source"), sources.size()).words(0);
    sources.push_back({first, part.count, std::uint64_t(words[1]) << 32 | words[0]});
    weights.push_back(part.weight);
    first += part.count;
  }
  mixture.emplace(weights, seed);
}

std::int64_t SampleOrder::sampleAt(std::int64_t position, std::int64_t samples,
                                   Mixture::Block &block) const {
  if (!mixture)
    return inOrder(position, samples, seed);
  const Mixture::Draw draw = mixture->at(position, block);
  const Source &source = sources[draw.source];
  return source.first + inOrder(draw.index, source.count, source.seed);
}

std::int64_t SampleOrder::inOrder(std::int64_t position, std::int64_t samples,
                                  std::uint64_t seed) const {
  const std::int64_t epoch = position / samples, place = position % samples;
  if (!shuffle || samples < 2)
    return place;
  // A Feistel network permutes the numbers of 2 h bits; walking its cycle until a number is below
  // `samples` permutes those (the power of four is at most four times as large, so few steps do).
  int half = 1;
  while ((std::int64_t(1) << (2 * half)) < samples)
    ++half;
  const std::uint64_t mask = (std::uint64_t(1) << half) - 1;
  const Random random(seed, hashName("shuffle"), static_cast<std::uint64_t>(epoch));
  auto number = static_cast<std::uint64_t>(place);
  do {
    std::uint64_t left = number >> half, right = number & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t mixed = left ^ (random.words(round << 32 | right)[0] & mask);
      left = right, right = mixed;
    }
    number = left << half | right;
  } while (number >= static_cast<std::uint64_t>(samples));
  return static_cast<std::int64_t>(number);
}

BatchRows rowsOf(const Input &input, int ranks, int coordinate, std::int64_t part) {
  const std::int64_t each = (input.batch + ranks - 1) / ranks;
  return {coordinate * each + part * input.rows, std::min((coordinate + 1) * each, input.batch)};
}

std::uint64_t digestOfSample(std::int64_t position, std::int64_t sample) {
  constexpr std::uint64_t kName = hashName("sample");
  const auto words =
      Random(static_cast<std::uint64_t>(sample), kName).words(static_cast<std::uint64_t>(position));
  return (std::uint64_t(words[1]) << 32 | words[0]) & kSampleDigestMask;
}

void readAhead(const Dataset &data, const SampleOrder &order, std::size_t index, std::int64_t first,
               BatchRows taken, std::int64_t count) {
  if (!order.isRandom())
    return;
  Mixture::Block block;
  for (std::int64_t at = taken.begin; at < std::min(taken.begin + count, taken.end); ++at)
    data.readAhead(index, order.sampleAt(first + at, data.samples(), block));
}

std::uint64_t readBatch(const Dataset &data, const SampleOrder &order, const Input &input,
                        std::size_t index, std::int64_t first, BatchRows taken, void *row,
                        void *slice) {
  const std::size_t item = sizeInBytes(input.slice.dtype);
  std::size_t outer = 1; // elements of a sample before the sample dimension
  for (int d = 0; d < input.sampleDim; ++d)
    outer *= static_cast<std::size_t>(input.sample[static_cast<std::size_t>(d)]);
  const std::size_t inner =
      static_cast<std::size_t>(elements(input.sample)) / std::max<std::size_t>(outer, 1) * item;
  const auto rows = static_cast<std::size_t>(input.rows);
  char *to = static_cast<char *>(slice);
  Mixture::Block block;
  std::uint64_t digest = 0;

  for (std::size_t r = 0; r < rows; ++r) {
    const std::int64_t asked = taken.begin + static_cast<std::int64_t>(r),
                       inBatch = std::min(asked, taken.end - 1);
    const std::int64_t sample = order.sampleAt(first + inBatch, data.samples(), block);
    if (asked < taken.end)
      digest += digestOfSample(first + inBatch, sample);
    if (outer == 1) {
      data.read(index, sample, to + r * inner);
      continue;
    }
    data.read(index, sample, row);
    for (std::size_t o = 0; o < outer; ++o)
      std::memcpy(to + (o * rows + r) * inner, static_cast<char *>(row) + o * inner, inner);
  }
  return digest;
}

} // namespace fsdp::rt
