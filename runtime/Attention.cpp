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
void transposeFour(const T *rows, std::size_t stride, float factor, float *packed) {
  using Vector = float __attribute__((vector_size(16)));
  const auto row = [&](std::size_t r) {
    const T *at = rows + r * stride;
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
void transpose(const T *rows, std::size_t stride, std::size_t count, std::size_t lanes,
               std::size_t width, float factor, float *packed) {
  const std::size_t evenRows = count / 4 * 4, evenWidth = width / 4 * 4;
  for (std::size_t r = 0; r < evenRows; r += 4)
    for (std::size_t i = 0; i < evenWidth; i += 4)
      transposeFour(rows + r * stride + i, stride, factor, packed + i * kQueries + r);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t r = i < evenWidth ? evenRows : 0; r < count; ++r)
      packed[i * kQueries + r] = factor * float(rows[r * stride + i]);
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

/// Rows of floats, `stride` numbers apart.
template <class T> struct Rows {
  T *at;
  std::size_t stride;

  T *operator[](std::size_t row) const { return at + row * stride; }
};

/// The rows themselves, or where `to` holds them as floats.
template <class T>
Rows<const float> widened(const T *from, std::size_t stride, std::size_t count, std::size_t width,
                          float *to) {
  if constexpr (std::is_same_v<T, float>)
    return {from, stride};
  for (std::size_t r = 0; r < count; ++r)
    convert(from + r * stride, width, to + r * width);
  return {to, width};
}

/// Where a kernel may leave floats that become T: at their place, or in `scratch` until `narrow`.
template <class T>
Rows<float> wide(T *place, std::size_t stride, std::size_t width, float *scratch) {
  if constexpr (std::is_same_v<T, float>)
    return {place, stride};
  return {scratch, width};
}
template <class T>
void narrow(Rows<float> rows, std::size_t count, std::size_t width, T *place, std::size_t stride) {
  if constexpr (!std::is_same_v<T, float>)
    for (std::size_t r = 0; r < count; ++r)
      convert(rows[r], width, place + r * stride);
}
void clear(Rows<float> rows, std::size_t count, std::size_t width) {
  for (std::size_t r = 0; r < count; ++r)
    std::fill_n(rows[r], width, 0.0f);
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
  const std::size_t width = shape.width, stride = shape.k.row;
  const Rows<float> out = wide(result, shape.out.row, width, blocks.first);
  transpose(q, shape.q.row, block.count, block.lanes, width, shape.scale, packed);
  clear(out, block.count, width);
  Softmax softmax;
  for (std::size_t first = 0; first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first);
    const auto keys = widened(k + first * stride, stride, count, width, blocks.keys);
    multiply({count, block.lanes, width, keys.stride, 1, kQueries, kQueries}, keys.at, packed,
             scores, false);
    if (softmax.advance(block, first, count, scores))
      for (std::size_t r = 0; r < block.count; ++r)
        multiplyRow(out[r], width, softmax.correction[r]);
    const auto values = widened(v + first * stride, stride, count, width, blocks.values);
    multiply({block.count, width, count, 1, kQueries, values.stride, out.stride}, scores, values.at,
             out.at, true);
  }
  for (std::size_t r = 0; r < block.count; ++r)
    if (softmax.sum[r] != 0)
      multiplyRow(out[r], width, static_cast<float>(1 / softmax.sum[r]));
#pragma omp simd
  for (std::size_t r = 0; r < block.count; ++r)
    logSumExp[r] = vectorLog(static_cast<float>(softmax.sum[r])) + softmax.top[r];
  narrow(out, block.count, width, result, shape.out.row);
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
                     const GradientBlock<T> &at, const T *k, const T *v, Rows<float> dK,
                     Rows<float> dV, const GradientScratch &scratch) {
  const std::size_t width = shape.width, stride = shape.k.row;
  const WideBlocks blocks(scratch.wide, width);
  const Rows<float> dQ =
      wide(at.dQ, shape.q.row, width, scratch.wide + WideBlocks::count(width));
  const auto q = widened(at.q, shape.q.row, block.count, width, blocks.first);
  const auto dOutWide = widened(at.dOut, shape.out.row, block.count, width, blocks.second);
  transpose(at.q, shape.q.row, block.count, block.lanes, width, shape.scale, scratch.packedQ);
  transpose(at.dOut, shape.out.row, block.count, block.lanes, width, 1, scratch.packedOut);
  float logSumExp[kQueries] = {}, along[kQueries] = {};
  for (std::size_t r = 0; r < block.count; ++r) {
    const T *out = at.out + r * shape.out.row;
    const float *dOut = dOutWide[r];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < width; ++i)
      sum += double(float(out[i])) * double(dOut[i]);
    along[r] = static_cast<float>(sum);
    // A query that sees nothing has -infinity, from which nothing may be subtracted.
    logSumExp[r] = at.logSumExp[r] == -kInfinity ? 0.0f : at.logSumExp[r] * kLog2e;
  }
  clear(dQ, block.count, width);
  for (std::size_t first = 0; first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first), offset = first * stride;
    const auto keys = widened(k + offset, stride, count, width, blocks.keys);
    const auto values = widened(v + offset, stride, count, width, blocks.values);
    const TileProduct scores{count, block.lanes, width, keys.stride, 1, kQueries, kQueries};
    multiply(scores, keys.at, scratch.packedQ, scratch.probabilities, false);
    multiply(scores, values.at, scratch.packedOut, scratch.scoreGradient, false);
    scoreGradients(block, first, count, shape.scale, logSumExp, along, scratch.probabilities,
                   scratch.scoreGradient);
    multiply({count, width, block.count, kQueries, 1, dOutWide.stride, dV.stride},
             scratch.probabilities, dOutWide.at, dV[first], true);
    multiply({count, width, block.count, kQueries, 1, q.stride, dK.stride}, scratch.scoreGradient,
             q.at, dK[first], true);
    multiply({block.count, width, count, 1, kQueries, keys.stride, dQ.stride},
             scratch.scoreGradient, keys.at, dQ.at, true);
  }
  narrow(dQ, block.count, width, at.dQ, shape.q.row);
}

/// Where a head's rows begin.
std::size_t startOf(const HeadStrides &strides, std::size_t batch, std::size_t head) {
  return batch * strides.batch + head * strides.head;
}

/// The rows of a head.
template <class T>
pairs::RowsOf<T> rowsOf(const HeadStrides &strides, T *operand, std::size_t batch,
                        std::size_t head) {
  return {operand + startOf(strides, batch, head), static_cast<std::ptrdiff_t>(strides.row)};
}

/// Attention on bf16 by the processor's instructions for it.
void attentionByPairs(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                      bf16 *out, float *logSumExp) {
  const PairMultiplier multiply;
  const std::size_t shared = shape.heads / shape.groups;
  for (std::size_t batch = 0; batch < shape.batch; ++batch)
    for (std::size_t head = 0; head < shape.heads; ++head)
      pairs::attendHead(shape, multiply, rowsOf(shape.q, q, batch, head),
                        rowsOf(shape.k, k, batch, head / shared),
                        rowsOf(shape.k, v, batch, head / shared),
                        rowsOf(shape.out, out, batch, head),
                        logSumExp + (batch * shape.heads + head) * shape.queries);
}

void attentionGradByPairs(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                          const bf16 *out, const float *logSumExp, const bf16 *dOut, bf16 *dQ,
                          bf16 *dK, bf16 *dV) {
  const PairMultiplier multiply;
  const std::size_t shared = shape.heads / shape.groups;
  pairs::GroupGradient gradient(shape, multiply);
  for (std::size_t batch = 0; batch < shape.batch; ++batch)
    for (std::size_t group = 0; group < shape.groups; ++group) {
      gradient.begin(rowsOf(shape.k, k, batch, group), rowsOf(shape.k, v, batch, group));
      for (std::size_t head = group * shared; head < (group + 1) * shared; ++head)
        gradient.add({rowsOf(shape.q, q, batch, head), rowsOf(shape.out, out, batch, head),
                      rowsOf(shape.out, dOut, batch, head),
                      logSumExp + (batch * shape.heads + head) * shape.queries,
                      rowsOf(shape.q, dQ, batch, head)});
      gradient.finish(rowsOf(shape.k, dK, batch, group), rowsOf(shape.k, dV, batch, group));
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
  for (std::size_t batch = 0; batch < shape.batch; ++batch)
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t group = startOf(shape.k, batch, head / shared);
      const T *headQ = q + startOf(shape.q, batch, head);
      T *headOut = out + startOf(shape.out, batch, head);
      float *sums = logSumExp + (batch * shape.heads + head) * shape.queries;
      for (std::size_t first = 0; first < shape.queries; first += kQueries)
        attendBlock(shape, QueryBlock(shape, first), headQ + first * shape.q.row, k + group,
                    v + group, headOut + first * shape.out.row, sums + first, packed,
                    packed + width * kQueries, blocks);
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
  for (std::size_t batch = 0; batch < shape.batch; ++batch)
    for (std::size_t group = 0; group < shape.groups; ++group) {
      const std::size_t at = startOf(shape.k, batch, group);
      const Rows<float> keySums = wide(dK + at, shape.k.row, width, scratch.sums);
      const Rows<float> valueSums = wide(dV + at, shape.k.row, width, scratch.sums + numbers);
      clear(keySums, shape.keys, width);
      clear(valueSums, shape.keys, width);
      for (std::size_t head = group * shared; head < (group + 1) * shared; ++head) {
        const std::size_t atQ = startOf(shape.q, batch, head);
        const std::size_t atOut = startOf(shape.out, batch, head);
        const float *sums = logSumExp + (batch * shape.heads + head) * shape.queries;
        for (std::size_t first = 0; first < shape.queries; first += kQueries) {
          const std::size_t rowQ = atQ + first * shape.q.row;
          const std::size_t rowOut = atOut + first * shape.out.row;
          attendBlockGrad<T>(
              shape, QueryBlock(shape, first),
              {q + rowQ, out + rowOut, sums + first, dOut + rowOut, dQ + rowQ}, k + at, v + at,
              keySums, valueSums, scratch);
        }
      }
      narrow(keySums, shape.keys, width, dK + at, shape.k.row);
      narrow(valueSums, shape.keys, width, dV + at, shape.k.row);
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
