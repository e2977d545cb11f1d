//===- CachedAttention.cpp - attention to keys that are kept --------------===//
//
// Lower bound: with one query, its keys and values are read once per group. The scores of a head
// are computed first, then the sum of values in one pass. Many queries are an ordinary attention.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/numerics/BFloat16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fsdp::rt::kernels {

namespace {

constexpr std::uint32_t kFewQueries = 8; ///< below: a query at a time

template <class T> float dot(const T *a, const T *b, std::size_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < width; ++i)
    sum += float(a[i]) * float(b[i]);
  return sum;
}

/// The attention of one query of one head to the keys [begin, end).
template <class T>
void attendOne(const CachedAttentionShape &shape, const T *q, const T *keys, const T *values,
               std::size_t begin, std::size_t end, float *scores, float *sums, T *out) {
  const std::size_t width = shape.width;
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t s = begin; s < end; ++s) {
    float score = shape.scale * dot(q, keys + s * width, width);
    if (shape.softcap > 0)
      score = shape.softcap * std::tanh(score / shape.softcap);
    scores[s - begin] = score;
    largest = std::max(largest, score);
  }
  std::fill_n(sums, width, 0.0f);
  float total = 0;
  for (std::size_t s = begin; s < end; ++s) {
    const float p = std::exp(scores[s - begin] - largest);
    const T *value = values + s * width;
    total += p;
#pragma omp simd
    for (std::size_t i = 0; i < width; ++i)
      sums[i] += p * float(value[i]);
  }
  const float share = 1 / total; // a query attends at least to its own position
  for (std::size_t i = 0; i < width; ++i)
    out[i] = T(sums[i] * share);
}

} // namespace

template <class T>
void cachedAttention(CachedAttentionShape shape, const T *q, const T *k, const T *v,
                     const std::int32_t *positions, T *out) {
  if (shape.queries == 0)
    return; // without positions to read
  const std::size_t ofGroup = std::size_t(shape.keys) * shape.width;
  for (std::size_t b = 0; b < shape.batch; ++b) {
    const std::size_t at = b * shape.q.batch;
    const std::size_t first = shape.firstPosition(positions[b * shape.queries]);
    const T *keys = k + b * shape.groups * ofGroup, *values = v + b * shape.groups * ofGroup;
    if (shape.queries >= kFewQueries) {
      // Query t of n attends to the keys up to its position; the last query is at the last key.
      const HeadStrides strides{0, ofGroup, shape.width};
      AttentionShape whole{1,
                           shape.heads,
                           shape.groups,
                           shape.queries,
                           static_cast<std::uint32_t>(first) + shape.queries,
                           shape.width,
                           shape.scale,
                           /*causal=*/true};
      whole.q = whole.out = shape.q;
      whole.window = shape.window;
      whole.softcap = shape.softcap;
      whole.k = strides;
      static thread_local Workspace logarithms;
      attention(whole, q + at, keys, values, nullptr, nullptr, out + at,
                static_cast<float *>(
                    logarithms.reserve(std::size_t(shape.heads) * shape.queries * sizeof(float))));
      continue;
    }
    const std::size_t kept = (std::size_t(shape.keys) + shape.width + 15) / 16 * 16;
    const Parts parts(shape.heads, std::size_t(shape.queries) * ofGroup);
    auto *scratch = static_cast<float *>(
        Workspace::ofThread().reserve(slotsOfPieces(parts.number()) * kept * sizeof(float)));
    forEachPiece(parts.number(), [&](std::size_t part, std::size_t slot) {
      float *scores = scratch + slot * kept;
      const std::size_t last = std::min((part + 1) * parts.extent, parts.count);
      for (std::size_t h = part * parts.extent; h < last; ++h)
        for (std::size_t t = 0; t < shape.queries; ++t) {
          const std::size_t query = at + h * shape.q.head + t * shape.q.row, end = first + t + 1;
          const std::size_t begin = shape.window && end > shape.window ? end - shape.window : 0;
          const std::size_t group = h / (shape.heads / shape.groups) * ofGroup;
          attendOne(shape, q + query, keys + group, values + group, begin, end, scores,
                    scores + shape.keys, out + query);
        }
    });
  }
}

template <class T>
void writeRows(WriteShape shape, const T *table, const T *rows, const std::int32_t *positions,
               T *written) {
  const std::size_t blocks = shape.samples * shape.outer, block = shape.positions * shape.width;
  if (written != table)
    std::memcpy(written, table, blocks * block * sizeof(T));
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t row = 0; row < shape.rows; ++row) {
      const auto at = static_cast<std::size_t>(positions[b / shape.outer * shape.rows + row]);
      if (at < shape.positions)
        std::copy_n(rows + (b * shape.rows + row) * shape.width, shape.width,
                    written + b * block + at * shape.width);
    }
}

#define INSTANTIATE(T)                                                                             \
  template void cachedAttention(CachedAttentionShape, const T *, const T *, const T *,             \
                                const std::int32_t *, T *);                                        \
  template void writeRows(WriteShape, const T *, const T *, const std::int32_t *, T *);
INSTANTIATE(float)
INSTANTIATE(bf16)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
