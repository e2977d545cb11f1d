//===- Attention.cpp ------------------------------------------------------===//
//
// Queries are taken in blocks, and for each block keys in blocks. Scores of a block pair lie
// transposed, scores[key][query]: then only the block of queries needs packing, keys and values are
// used where they stand, and maxima and sums over keys run over whole vectors of queries.
//
//===----------------------------------------------------------------------===//

#include "runtime/Attention.h"

#include "runtime/AttentionPairs.h"
#include "runtime/Lanes.h"
#include "runtime/TileProduct.h"
#include "runtime/VectorMath.h"
#include "runtime/Workspace.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace fsdp::rt::kernels {

namespace {

constexpr std::size_t kQueries = 32, kKeys = 128; // of a block
constexpr float kInfinity = __builtin_inff(), kLog2e = 1.44269504f;

/// Consecutive queries of one head.
struct QueryBlock {
  std::size_t count;         ///< of queries
  std::size_t lanes;         ///< count, rounded up to whole vectors
  std::ptrdiff_t seenOfLast; ///< how many keys the last query sees
  bool causal;

  QueryBlock(const AttentionShape &shape, std::size_t first)
      : count(std::min<std::size_t>(kQueries, shape.queries - first)),
        lanes((count + 15) / 16 * 16), causal(shape.causal) {
    const std::ptrdiff_t all = shape.keys;
    seenOfLast = causal ? static_cast<std::ptrdiff_t>(first + count) + all - shape.queries : all;
  }

  /// How many keys any of the queries sees.
  std::size_t keys() const {
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(seenOfLast, 0));
  }

  /// The first of the queries that sees key `key`, which is one of `keys()`.
  std::size_t firstThatSees(std::size_t key) const {
    if (!causal)
      return 0;
    const std::ptrdiff_t seenOfFirst = seenOfLast - static_cast<std::ptrdiff_t>(count) + 1;
    return static_cast<std::size_t>(
        std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(key) + 1 - seenOfFirst, 0));
  }
};

/// Four by four numbers, transposed.
template <class T>
void transposeFour(const T *rows, std::size_t width, float factor, float *packed) {
  using Vector = float __attribute__((vector_size(16)));
  const auto row = [&](std::size_t r) {
    const T *at = rows + r * width;
    return Vector{float(at[0]), float(at[1]), float(at[2]), float(at[3])} * factor;
  };
  const Vector a = row(0), b = row(1), c = row(2), d = row(3);
  const Vector ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Vector abHigh = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Vector cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Vector cdHigh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Vector columns[] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                            __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                            __builtin_shufflevector(abHigh, cdHigh, 0, 1, 4, 5),
                            __builtin_shufflevector(abHigh, cdHigh, 2, 3, 6, 7)};
  for (std::size_t i = 0; i < 4; ++i)
    std::memcpy(packed + i * kQueries, &columns[i], sizeof(Vector));
}

/// packed[i][r] = factor * rows[r][i]; lanes past the last row are zero.
template <class T>
void transpose(const T *rows, std::size_t count, std::size_t lanes, std::size_t width, float factor,
               float *packed) {
  const std::size_t evenRows = count / 4 * 4, evenWidth = width / 4 * 4;
  for (std::size_t r = 0; r < evenRows; r += 4)
    for (std::size_t i = 0; i < evenWidth; i += 4)
      transposeFour(rows + r * width + i, width, factor, packed + i * kQueries + r);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t r = i < evenWidth ? evenRows : 0; r < count; ++r)
      packed[i * kQueries + r] = factor * float(rows[r * width + i]);
    std::fill(packed + i * kQueries + count, packed + i * kQueries + lanes, 0.0f);
  }
}

/// Running maximum and sum of each query of a block.
struct Softmax {
  float top[kQueries];
  float correction[kQueries];
  double sum[kQueries];

  Softmax() {
    std::fill_n(top, kQueries, -kInfinity);
    std::fill_n(sum, kQueries, 0.0);
  }

  /// Turns the scores of keys [first, first + count) into exp(score - top), 0 where the key is not
  /// seen. Returns whether earlier results must be multiplied by `correction`.
  bool advance(const QueryBlock &block, std::size_t first, std::size_t count, float *scores) {
    for (std::size_t s = 0; s < count; ++s)
      std::fill_n(scores + s * kQueries, std::min(block.firstThatSees(first + s), block.lanes),
                  -kInfinity);
    bool moved = false;
    for (std::size_t r = 0; r < block.lanes; r += lanes::kLanes)
      moved |= advance(r, count, scores + r);
    return moved && first > 0;
  }

private:
  /// The same for the queries of one vector, from `query` on.
  bool advance(std::size_t query, std::size_t count, float *scores) {
    using namespace lanes;
    const auto at = [&](std::size_t key) { return scores + key * kQueries; };
    // Several at once, so that none waits for the one before.
    Vector tops[4], sums[4] = {};
    std::fill_n(tops, 4, lanes::load(top + query));
    std::size_t s = 0;
    for (; s + 4 <= count; s += 4)
      for (std::size_t i = 0; i < 4; ++i)
        tops[i] = larger(load(at(s + i)), tops[i]);
    for (; s < count; ++s)
      tops[0] = larger(load(at(s)), tops[0]);
    const Vector last = load(top + query);
    const Vector now = larger(larger(tops[0], tops[1]), larger(tops[2], tops[3]));
    store(top + query, now);
    // A query that has seen nothing keeps -infinity, from which nothing may be subtracted.
    const Vector log2e = broadcast(kLog2e);
    const Vector shift = (now == broadcast(-kInfinity) ? Vector{} : now) * -log2e;
    const auto step = [&](std::size_t key, Vector &sum) {
      const Vector value = exp2(multiplyAdd(load(at(key)), log2e, shift));
      store(at(key), value);
      sum += value;
    };
    for (s = 0; s + 4 <= count; s += 4)
      for (std::size_t i = 0; i < 4; ++i)
        step(s + i, sums[i]);
    for (; s < count; ++s)
      step(s, sums[0]);
    float added[kLanes], factors[kLanes];
    store(added, (sums[0] + sums[1]) + (sums[2] + sums[3]));
    const Vector ratio = exp2((last - now) * log2e);
    store(factors, last == now ? broadcast(1) : ratio);
    bool moved = false;
    for (std::size_t i = 0; i < kLanes; ++i) {
      moved |= factors[i] != 1;
      correction[query + i] = factors[i];
      sum[query + i] = sum[query + i] * double(factors[i]) + double(added[i]);
    }
    return moved;
  }
};

void multiplyRow(float *row, std::size_t width, float factor) {
#pragma omp simd
  for (std::size_t i = 0; i < width; ++i)
    row[i] *= factor;
}

/// The numbers themselves, or where `to` holds them as floats.
template <class T> const float *widened(const T *from, std::size_t count, float *to) {
  if constexpr (std::is_same_v<T, float>)
    return from;
  convert(from, count, to);
  return to;
}

/// Where a kernel may leave floats that become T: at their place, or in `scratch` until `narrow`.
template <class T> float *wide(T *place, float *scratch) {
  if constexpr (std::is_same_v<T, float>)
    return place;
  return scratch;
}
template <class T> void narrow(const float *scratch, std::size_t count, T *place) {
  if constexpr (!std::is_same_v<T, float>)
    convert(scratch, count, place);
}

/// Blocks as floats, for types that are narrower: two of queries and two of keys.
struct WideBlocks {
  float *first, *second, *keys, *values;

  static std::size_t count(std::size_t width) { return 2 * (kQueries + kKeys) * width; }
  WideBlocks(float *memory, std::size_t width)
      : first(memory), second(first + kQueries * width), keys(second + kQueries * width),
        values(keys + kKeys * width) {}
};

/// One block of queries of one head. `packed` holds width * kQueries numbers, `scores` kKeys *
/// kQueries.
template <class T>
void attendBlock(const AttentionShape &shape, const QueryBlock &block, const T *q, const T *k,
                 const T *v, T *result, float *logSumExp, float *packed, float *scores,
                 const WideBlocks &blocks) {
  const std::size_t width = shape.width;
  float *out = wide(result, blocks.first);
  transpose(q, block.count, block.lanes, width, shape.scale, packed);
  std::fill_n(out, block.count * width, 0.0f);
  Softmax softmax;
  for (std::size_t first = 0; first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first);
    const float *keys = widened(k + first * width, count * width, blocks.keys);
    multiply({count, block.lanes, width, width, 1, kQueries, kQueries}, keys, packed, scores,
             false);
    if (softmax.advance(block, first, count, scores))
      for (std::size_t r = 0; r < block.count; ++r)
        multiplyRow(out + r * width, width, softmax.correction[r]);
    const float *values = widened(v + first * width, count * width, blocks.values);
    multiply({block.count, width, count, 1, kQueries, width, width}, scores, values, out, true);
  }
  for (std::size_t r = 0; r < block.count; ++r)
    if (softmax.sum[r] != 0)
      multiplyRow(out + r * width, width, static_cast<float>(1 / softmax.sum[r]));
#pragma omp simd
  for (std::size_t r = 0; r < block.count; ++r)
    logSumExp[r] = vectorLog(static_cast<float>(softmax.sum[r])) + softmax.top[r];
  narrow(out, block.count * width, result);
}

/// What a block of queries reads and writes in the gradient.
template <class T> struct GradientBlock {
  const T *q, *out;
  const float *logSumExp;
  const T *dOut;
  T *dQ;
};

/// Scratch memory of the gradient.
struct GradientScratch {
  float *packedQ, *packedOut;           ///< width * kQueries
  float *probabilities, *scoreGradient; ///< kKeys * kQueries
  float *wide;                          ///< WideBlocks, and a block of dQ
  float *sums;                          ///< dK and dV of a group, for narrower types

  GradientScratch(std::size_t width, std::size_t numbersOfGroup, bool isWide) {
    const std::size_t fixed = 2 * (width + kKeys) * kQueries;
    const std::size_t blocks = WideBlocks::count(width) + kQueries * width;
    packedQ = static_cast<float *>(Workspace::ofThread().reserve(
        (fixed + (isWide ? 0 : blocks + 2 * numbersOfGroup)) * sizeof(float)));
    packedOut = packedQ + width * kQueries;
    probabilities = packedOut + width * kQueries;
    scoreGradient = probabilities + kKeys * kQueries;
    wide = packedQ + fixed;
    sums = wide + blocks;
  }
};

/// probabilities := exp(scores) / 2^logSumExp, scoreGradient := scale * probabilities *
/// (scoreGradient - along), 0 where the key is not seen. `along` holds each query's dOut . out.
void scoreGradients(const QueryBlock &block, std::size_t first, std::size_t count, float scale,
                    const float *logSumExp, const float *along, float *__restrict probabilities,
                    float *__restrict scoreGradient) {
  for (std::size_t s = 0; s < count; ++s) {
    float *p = probabilities + s * kQueries, *d = scoreGradient + s * kQueries;
    const std::size_t blind = std::min(block.firstThatSees(first + s), block.lanes);
    std::fill_n(p, blind, -kInfinity);
    for (std::size_t r = 0; r < block.lanes; r += lanes::kLanes) {
      const auto value = lanes::exp2(lanes::multiplyAdd(lanes::load(p + r), lanes::broadcast(kLog2e),
                                                        -lanes::load(logSumExp + r)));
      lanes::store(p + r, value);
      lanes::store(d + r, value * scale * (lanes::load(d + r) - lanes::load(along + r)));
    }
    std::fill_n(d, blind, 0.0f);
  }
}

template <class T>
void attendBlockGrad(const AttentionShape &shape, const QueryBlock &block,
                     const GradientBlock<T> &at, const T *k, const T *v, float *dK, float *dV,
                     const GradientScratch &scratch) {
  const std::size_t width = shape.width, numbers = block.count * width;
  const WideBlocks blocks(scratch.wide, width);
  float *dQ = wide(at.dQ, scratch.wide + WideBlocks::count(width));
  const float *q = widened(at.q, numbers, blocks.first);
  const float *dOutWide = widened(at.dOut, numbers, blocks.second);
  transpose(at.q, block.count, block.lanes, width, shape.scale, scratch.packedQ);
  transpose(at.dOut, block.count, block.lanes, width, 1, scratch.packedOut);
  float logSumExp[kQueries] = {}, along[kQueries] = {};
  for (std::size_t r = 0; r < block.count; ++r) {
    const T *out = at.out + r * width;
    const float *dOut = dOutWide + r * width;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < width; ++i)
      sum += double(float(out[i])) * double(dOut[i]);
    along[r] = static_cast<float>(sum);
    // A query that sees nothing has -infinity, from which nothing may be subtracted.
    logSumExp[r] = at.logSumExp[r] == -kInfinity ? 0.0f : at.logSumExp[r] * kLog2e;
  }
  std::fill_n(dQ, numbers, 0.0f);
  for (std::size_t first = 0; first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first), offset = first * width;
    const TileProduct scores{count, block.lanes, width, width, 1, kQueries, kQueries};
    const float *keys = widened(k + offset, count * width, blocks.keys);
    const float *values = widened(v + offset, count * width, blocks.values);
    multiply(scores, keys, scratch.packedQ, scratch.probabilities, false);
    multiply(scores, values, scratch.packedOut, scratch.scoreGradient, false);
    scoreGradients(block, first, count, shape.scale, logSumExp, along, scratch.probabilities,
                   scratch.scoreGradient);
    const TileProduct overQueries{count, width, block.count, kQueries, 1, width, width};
    multiply(overQueries, scratch.probabilities, dOutWide, dV + offset, true);
    multiply(overQueries, scratch.scoreGradient, q, dK + offset, true);
    multiply({block.count, width, count, 1, kQueries, width, width}, scratch.scoreGradient, keys,
             dQ, true);
  }
  narrow(dQ, numbers, at.dQ);
}

} // namespace

namespace {

/// Attention on bf16 by the processor's instructions for it.
void attentionByPairs(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                      bf16 *out, float *logSumExp) {
  const PairMultiplier multiply;
  const std::ptrdiff_t width = shape.width;
  const std::size_t shared = shape.heads / shape.groups;
  for (std::size_t head = 0; head < std::size_t(shape.batch) * shape.heads; ++head) {
    const std::size_t group = head / shared * shape.keys * shape.width;
    const std::size_t row = head * shape.queries, at = row * shape.width;
    pairs::attendHead(shape, multiply, {q + at, width}, {k + group, width}, {v + group, width},
                      {out + at, width}, logSumExp + row);
  }
}

void attentionGradByPairs(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                          const bf16 *out, const float *logSumExp, const bf16 *dOut, bf16 *dQ,
                          bf16 *dK, bf16 *dV) {
  const PairMultiplier multiply;
  const std::ptrdiff_t width = shape.width;
  const std::size_t shared = shape.heads / shape.groups;
  pairs::GroupGradient gradient(shape, multiply);
  for (std::size_t group = 0; group < std::size_t(shape.batch) * shape.groups; ++group) {
    const std::size_t offset = group * shape.keys * shape.width;
    gradient.begin({k + offset, width}, {v + offset, width});
    for (std::size_t head = group * shared; head < (group + 1) * shared; ++head) {
      const std::size_t row = head * shape.queries, at = row * shape.width;
      gradient.add({{q + at, width}, {out + at, width}, {dOut + at, width}, logSumExp + row,
                    {dQ + at, width}});
    }
    gradient.finish({dK + offset, width}, {dV + offset, width});
  }
}

} // namespace

template <class T>
void attention(AttentionShape shape, const T *q, const T *k, const T *v, T *out, float *logSumExp) {
  if constexpr (std::is_same_v<T, bf16>)
    if (pairInstructions() != PairInstructions::None)
      return attentionByPairs(shape, q, k, v, out, logSumExp);
  const std::size_t width = shape.width, shared = shape.heads / shape.groups;
  const std::size_t fixed = (width + kKeys) * kQueries;
  const std::size_t wide = std::is_same_v<T, float> ? 0 : WideBlocks::count(width);
  auto *packed =
      static_cast<float *>(Workspace::ofThread().reserve((fixed + wide) * sizeof(float)));
  const WideBlocks blocks(packed + fixed, width);
  for (std::size_t head = 0; head < std::size_t(shape.batch) * shape.heads; ++head) {
    const std::size_t group = head / shared * shape.keys * width;
    for (std::size_t first = 0; first < shape.queries; first += kQueries) {
      const std::size_t row = head * shape.queries + first;
      attendBlock(shape, QueryBlock(shape, first), q + row * width, k + group, v + group,
                  out + row * width, logSumExp + row, packed, packed + width * kQueries, blocks);
    }
  }
}

template <class T>
void attentionGrad(AttentionShape shape, const T *q, const T *k, const T *v, const T *out,
                   const float *logSumExp, const T *dOut, T *dQ, T *dK, T *dV) {
  if constexpr (std::is_same_v<T, bf16>)
    if (pairInstructions() != PairInstructions::None)
      return attentionGradByPairs(shape, q, k, v, out, logSumExp, dOut, dQ, dK, dV);
  const std::size_t width = shape.width, shared = shape.heads / shape.groups;
  const std::size_t numbers = shape.keys * width;
  const GradientScratch scratch(width, numbers, std::is_same_v<T, float>);
  for (std::size_t group = 0; group < std::size_t(shape.batch) * shape.groups; ++group) {
    const std::size_t offset = group * numbers;
    float *keySums = wide(dK + offset, scratch.sums);
    float *valueSums = wide(dV + offset, scratch.sums + numbers);
    std::fill_n(keySums, numbers, 0.0f);
    std::fill_n(valueSums, numbers, 0.0f);
    for (std::size_t head = group * shared; head < (group + 1) * shared; ++head)
      for (std::size_t first = 0; first < shape.queries; first += kQueries) {
        const std::size_t row = head * shape.queries + first, at = row * width;
        attendBlockGrad<T>(shape, QueryBlock(shape, first),
                           {q + at, out + at, logSumExp + row, dOut + at, dQ + at}, k + offset,
                           v + offset, keySums, valueSums, scratch);
      }
    narrow(keySums, numbers, dK + offset);
    narrow(valueSums, numbers, dV + offset);
  }
}

#define INSTANTIATE(T)                                                                             \
  template void attention(AttentionShape, const T *, const T *, const T *, T *, float *);          \
  template void attentionGrad(AttentionShape, const T *, const T *, const T *, const T *,          \
                              const float *, const T *, T *, T *, T *);
INSTANTIATE(float)
INSTANTIATE(bf16)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
