//===- AttentionPlaces.h - operands of attention in odd places --*- C++ -*-===//

#ifndef FSDP_TEST_UNIT_RUNTIME_ATTENTIONPLACES_H
#define FSDP_TEST_UNIT_RUNTIME_ATTENTIONPLACES_H

#include "runtime/program/KernelArguments.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

namespace fsdp::rt {

/// Where an operand's numbers lie: dimensions in any order, now and then with gaps between them.
class AttentionPlace {
public:
  /// Strides are multiples of `unit`.
  AttentionPlace(std::size_t batch, std::size_t heads, std::size_t rows, std::size_t width,
                 std::size_t unit, std::mt19937 &random)
      : sizes{batch, heads, rows}, width(width) {
    std::size_t dims[] = {0, 1, 2}, stride = width;
    std::shuffle(std::begin(dims), std::end(dims), random);
    std::size_t *strideOf[] = {&strides.batch, &strides.head, &strides.row};
    for (std::size_t dim : dims) {
      stride = (stride + random() % 2 * unit + unit - 1) / unit * unit;
      *strideOf[dim] = stride;
      stride *= std::max<std::size_t>(sizes[dim], 1);
    }
    count = stride;
  }

  /// The numbers of a row-major operand in their places; NaN in between.
  std::vector<float> scattered(const std::vector<float> &values) const {
    std::vector<float> places(count, NAN);
    forEach([&](std::size_t from, std::size_t to) { places[to] = values[from]; });
    return places;
  }
  /// And back, in row-major order.
  std::vector<float> gathered(const std::vector<float> &places) const {
    std::vector<float> values(sizes[0] * sizes[1] * sizes[2] * width);
    forEach([&](std::size_t to, std::size_t from) { values[to] = places[from]; });
    return values;
  }
  /// How many numbers in between are no NaN any more.
  std::size_t overwritten(const std::vector<float> &places) const {
    std::vector<float> rest = places;
    forEach([&](std::size_t, std::size_t at) { rest[at] = NAN; });
    return static_cast<std::size_t>(
        std::count_if(rest.begin(), rest.end(), [](float value) { return !std::isnan(value); }));
  }

  HeadStrides strides;
  std::size_t count; ///< of numbers, gaps included

private:
  /// Calls fn(index in row-major order, place).
  template <class Fn> void forEach(Fn fn) const {
    std::size_t index = 0;
    for (std::size_t b = 0; b < sizes[0]; ++b)
      for (std::size_t h = 0; h < sizes[1]; ++h)
        for (std::size_t r = 0; r < sizes[2]; ++r)
          for (std::size_t i = 0; i < width; ++i)
            fn(index++, b * strides.batch + h * strides.head + r * strides.row + i);
  }

  std::size_t sizes[3], width;
};

enum class Documents {
  None,
  InRow, ///< one behind the other, with growing ids, as in a row of packed documents
  Mixed, ///< few ids, each in many places
};

/// The ids of a batch; none for Documents::None.
inline std::vector<std::int32_t> randomDocuments(const AttentionShape &s, Documents documents,
                                                 std::mt19937 &random) {
  std::vector<std::int32_t> ids;
  if (documents == Documents::None)
    return ids;
  for (std::size_t batch = 0; batch < s.batch; ++batch)
    for (std::int32_t key = 0, id = -5; key < static_cast<std::int32_t>(s.keys); ++key) {
      id += random() % 50 == 0 ? 1 + static_cast<std::int32_t>(random() % 3) : 0;
      ids.push_back(documents == Documents::InRow ? id : static_cast<std::int32_t>(random() % 3));
    }
  return ids;
}

enum class Bias { None, OfHeads, Shared, LargeOfHeads, LargeShared };

/// A bias, none for Bias::None; the shape is told of it. Some keys are hidden by it, of every
/// eighth query all. Large: most queries have numbers next to which a float loses their scores: all
/// of their keys that are not hidden, or some of them, or all but the last ones, so that blocks of
/// keys have nothing else.
inline std::vector<float> randomBias(AttentionShape &s, Bias bias, std::mt19937 &random) {
  std::vector<float> values;
  if (bias == Bias::None)
    return values;
  const bool large = bias == Bias::LargeOfHeads || bias == Bias::LargeShared,
             ofHeads = bias == Bias::OfHeads || bias == Bias::LargeOfHeads;
  const std::size_t ofHead = std::size_t(s.queries) * s.keys;
  s.bias = ofHeads ? ofHead : 0;
  values.resize(ofHeads ? s.heads * ofHead : ofHead);
  const float levels[] = {-1e6f, -1e9f, 1e9f, -1e20f, 3e38f, 0, -1e8f, -3e38f, 1e8f, 1e20f, 1e6f};
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / s.keys;
    const float level = large ? levels[row % std::size(levels)] : 0;
    float part[] = {level, level * (float(random() % 3) - 1), -std::abs(level)};
    if (i % s.keys >= s.keys - s.keys / 10)
      part[2] = 0;
    values[i] = part[row / std::size(levels) % std::size(part)] + normal(random);
    if (row % 8 == 5 || random() % 8 == 0)
      values[i] = -INFINITY;
  }
  return values;
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_ATTENTIONPLACES_H
