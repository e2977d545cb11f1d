//===- AttentionSoftmax.h - scores of a block of queries --------*- C++ -*-===//
//
// Operations of attention on a block of float scores, scores[key][query]: maxima and sums over keys
// run over whole vectors of queries.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_ATTENTIONSOFTMAX_H
#define FSDP_RUNTIME_KERNELS_ATTENTIONSOFTMAX_H

#include "runtime/kernels/AttentionVisibility.h"
#include "runtime/numerics/Lanes.h"
#include "runtime/numerics/VectorMath.h"
#include "runtime/program/KernelArguments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fsdp::rt::blocks {

constexpr std::size_t kQueries = 32, kKeys = 128; // of a block
constexpr float kInfinity = __builtin_inff(), kLog2e = 1.44269504f;

/// Consecutive queries of one head.
struct QueryBlock {
  std::size_t count;  ///< of queries
  std::size_t lanes;  ///< count, rounded up to whole vectors
  std::ptrdiff_t all; ///< keys
  /// How many keys the last query sees, or has before its end, if there were more of them.
  std::ptrdiff_t seenOfLast;
  bool causal;
  std::ptrdiff_t window;   ///< 0 without
  std::ptrdiff_t position; ///< of the first query: the key that it is at
  float softcap;           ///< 0 without
  /// The bias of the scores of the first query, one number a key, and of the others after it; or
  /// null.
  const float *bias;
  std::size_t biasStride;     ///< from one query to the next
  float biasShifts[kQueries]; ///< subtracted from each query's bias first
  /// Of the batch's keys; null where all are of one document.
  const std::int32_t *documents;
  std::int32_t ids[kQueries];   ///< of the queries' documents
  std::int32_t leastId, mostId; ///< of those

  /// `headBias`: of the head's queries, or null.
  QueryBlock(const AttentionShape &shape, std::size_t first, const float *headBias,
             const std::int32_t *documents)
      : count(std::min<std::size_t>(kQueries, shape.queries - first)),
        lanes((count + 15) / 16 * 16), all(shape.keys), causal(shape.causal), window(shape.window),
        position(shape.positionOf(static_cast<std::int64_t>(first))), softcap(shape.softcap),
        bias(headBias ? headBias + first * shape.keys : nullptr), biasStride(shape.keys),
        documents(documents) {
    seenOfLast = causal ? position + static_cast<std::ptrdiff_t>(count) : all;
    if (bias) {
      const Visibility sees(shape, documents, 0);
      for (std::size_t r = 0; r < count; ++r)
        biasShifts[r] = sees.shiftOf(bias + r * biasStride, first + r);
    }
    if (!documents)
      return;
    for (std::size_t r = 0; r < lanes; ++r)
      ids[r] = documents[std::clamp<std::ptrdiff_t>(
          position + static_cast<std::ptrdiff_t>(std::min(r, count - 1)), 0, all - 1)];
    leastId = *std::min_element(ids, ids + lanes);
    mostId = *std::max_element(ids, ids + lanes);
  }

  /// How many keys any of the queries sees, or has before it in the window of another.
  std::size_t keys() const {
    return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(seenOfLast, 0, all));
  }

  /// The first key that any of the queries attends to.
  std::size_t firstKey() const {
    return window ? static_cast<std::size_t>(std::max<std::ptrdiff_t>(position - window + 1, 0))
                  : 0;
  }

  /// The first query that attends to key `key`, which is one of `keys()`.
  std::size_t firstThatSees(std::size_t key) const {
    if (!causal)
      return 0;
    const std::ptrdiff_t seenOfFirst = seenOfLast - static_cast<std::ptrdiff_t>(count) + 1;
    return static_cast<std::size_t>(
        std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(key) + 1 - seenOfFirst, 0));
  }

  /// The first lane from which on the window has passed `key`.
  std::size_t endOfWindow(std::size_t key) const {
    if (!window)
      return lanes;
    return static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(key) + window - position, 0,
                                   static_cast<std::ptrdiff_t>(lanes)));
  }

  /// False only if none of the keys [first, first + number) is of a document of the queries.
  bool mayAttend(std::size_t first, std::size_t number) const {
    if (!documents)
      return true;
    bool may = false;
    for (std::size_t s = first; s < first + number; ++s)
      may |= documents[s] >= leastId && documents[s] <= mostId;
    return may;
  }

  /// Whether keys are hidden by more than their position behind the query.
  bool hasOptions() const { return window || documents; }

  /// Puts `value` in the lanes of `row` whose window has passed `key`, or whose document is
  /// another.
  void hideMore(std::size_t key, float value, float *row) const {
    if (window)
      std::fill(row + endOfWindow(key), row + lanes, value);
    if (documents)
      for (std::size_t r = 0; r < lanes; ++r)
        row[r] = ids[r] == documents[key] ? row[r] : value;
  }
};

/// The scores of `count` keys, capped.
inline void cap(const QueryBlock &block, std::size_t count, float *scores) {
  const float softcap = block.softcap, inverse = 1 / softcap;
  for (std::size_t s = 0; s < count; ++s)
#pragma omp simd
    for (std::size_t r = 0; r < kQueries; ++r)
      scores[s * kQueries + r] = softcap * vectorTanh(scores[s * kQueries + r] * inverse);
}

using Four = float __attribute__((vector_size(16)));

/// Four by four numbers, transposed.
struct FourByFour {
  Four columns[4];

  FourByFour(Four a, Four b, Four c, Four d) {
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four abHigh = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four cdHigh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    columns[0] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    columns[1] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    columns[2] = __builtin_shufflevector(abHigh, cdHigh, 0, 1, 4, 5);
    columns[3] = __builtin_shufflevector(abHigh, cdHigh, 2, 3, 6, 7);
  }
};
inline Four loadFour(const float *from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

/// sums[c][r] += rows[r][c] - shifts[r] of `count` rows of `width` numbers; without shifts if they
/// are null.
inline void addTransposed(const float *rows, std::size_t stride, std::size_t count,
                          std::size_t width, float *sums, std::size_t sumStride,
                          const float *shifts) {
  const std::size_t evenRows = count / 4 * 4, evenWidth = width / 4 * 4;
  for (std::size_t r = 0; r < evenRows; r += 4) {
    const Four shift = shifts ? loadFour(shifts + r) : Four{};
    for (std::size_t c = 0; c < evenWidth; c += 4) {
      const float *at = rows + r * stride + c;
      const FourByFour block(loadFour(at), loadFour(at + stride), loadFour(at + 2 * stride),
                             loadFour(at + 3 * stride));
      for (std::size_t i = 0; i < 4; ++i) {
        float *to = sums + (c + i) * sumStride + r;
        const Four sum = loadFour(to) + (block.columns[i] - shift);
        std::memcpy(to, &sum, sizeof sum);
      }
    }
  }
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t c = r < evenRows ? evenWidth : 0; c < width; ++c)
      sums[c * sumStride + r] += rows[r * stride + c] - (shifts ? shifts[r] : 0.0f);
}

/// Adds the shifted bias to the scores of keys [first, first + count).
inline void addBias(const QueryBlock &block, std::size_t first, std::size_t count, float *scores) {
  addTransposed(block.bias + first, block.biasStride, block.count, count, scores, kQueries,
                block.biasShifts);
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
    if (block.softcap != 0)
      cap(block, count, scores);
    if (block.bias)
      addBias(block, first, count, scores);
    for (std::size_t s = 0; s < count; ++s)
      std::fill_n(scores + s * kQueries, std::min(block.firstThatSees(first + s), block.lanes),
                  -kInfinity);
    if (block.hasOptions())
      for (std::size_t s = 0; s < count; ++s)
        block.hideMore(first + s, -kInfinity, scores + s * kQueries);
    bool moved = false;
    for (std::size_t r = 0; r < block.lanes; r += lanes::kLanes)
      moved |=
          block.bias ? advance<true>(r, count, scores + r) : advance<false>(r, count, scores + r);
    return moved && first > block.firstKey();
  }

private:
  /// The same for the queries of one vector, from `query` on. `Biased`: the top so far may be a
  /// masked key's, of any size, and is subtracted before the product with log2 e is rounded.
  template <bool Biased> bool advance(std::size_t query, std::size_t count, float *scores) {
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
    // A query without keys so far keeps -infinity, from which nothing may be subtracted.
    const Vector log2e = broadcast(kLog2e);
    const Vector base = now == broadcast(-kInfinity) ? Vector{} : now, shift = base * -log2e;
    const auto step = [&](std::size_t key, Vector &sum) {
      const Vector value =
          exp2(Biased ? (load(at(key)) - base) * log2e : multiplyAdd(load(at(key)), log2e, shift));
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

/// probabilities := exp(scores) / 2^logSumExp, scoreGradient := probabilities *
/// (scoreGradient - along), 0 where the key is not seen. Before, scoreGradient holds dOut . v, and
/// `along` each query's dOut . out, both of the same multiple of dOut.
inline void scoreGradients(const QueryBlock &block, std::size_t first, std::size_t count,
                           const float *logSumExp, const float *along,
                           float *__restrict probabilities, float *__restrict scoreGradient) {
  if (block.bias)
    addBias(block, first, count, probabilities);
  for (std::size_t s = 0; s < count; ++s) {
    float *p = probabilities + s * kQueries, *d = scoreGradient + s * kQueries;
    const std::size_t blind = std::min(block.firstThatSees(first + s), block.lanes);
    std::fill_n(p, blind, -kInfinity);
    if (block.hasOptions())
      block.hideMore(first + s, -kInfinity, p);
    for (std::size_t r = 0; r < block.lanes; r += lanes::kLanes) {
      const auto value = lanes::exp2(lanes::multiplyAdd(
          lanes::load(p + r), lanes::broadcast(kLog2e), -lanes::load(logSumExp + r)));
      lanes::store(p + r, value);
      lanes::store(d + r, value * (lanes::load(d + r) - lanes::load(along + r)));
    }
    std::fill_n(d, blind, 0.0f);
    if (block.hasOptions())
      block.hideMore(first + s, 0.0f, d);
  }
}

/// The same, of scores that are capped first: before the bias, whose gradient has no slopes.
inline void cappedScoreGradients(const QueryBlock &block, std::size_t first, std::size_t count,
                                 const float *logSumExp, const float *along, float *probabilities,
                                 float *scoreGradient) {
  // Those of a cap c are multiplied by 1 - (score / c)^2.
  float slopes[kKeys * kQueries];
  cap(block, count, probabilities);
  const float inverse = 1 / block.softcap;
#pragma omp simd
  for (std::size_t i = 0; i < count * kQueries; ++i)
    slopes[i] = 1 - (probabilities[i] * inverse) * (probabilities[i] * inverse);
  scoreGradients(block, first, count, logSumExp, along, probabilities, scoreGradient);
#pragma omp simd
  for (std::size_t i = 0; i < count * kQueries; ++i)
    scoreGradient[i] *= slopes[i];
}

} // namespace fsdp::rt::blocks

#endif // FSDP_RUNTIME_KERNELS_ATTENTIONSOFTMAX_H
