//===- AttentionBf16Grad.cpp - the gradient of attention on bf16 ---------===//
//
// Up to 256 queries of a head are processed together, packed once, and keys in blocks of strips of
// 32. Scores of a strip are stored transposed, a row for each key: then the strip of probabilities
// has the layout of the products for dK and dV, which are sums over queries, and as pairs of rows
// it has the layout of the product for dQ, which is a sum over keys.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/AttentionBf16.h"

#ifdef __AVX512BF16__

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/AttentionSoftmax.h"
#include "runtime/kernels/VnniPacking.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/numerics/VectorMath.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

namespace fsdp::rt::pairs {

namespace {

constexpr std::size_t kQueries = 256, kKeys = 128; // of a block
constexpr std::size_t kBlock = kVnniBlock;
constexpr float kInfinity = __builtin_inff();
constexpr float kLog2e = 1.44269504f;

/// The sum of the products of two rows.
float dot(const bf16 *a, const bf16 *b, std::size_t width) {
  __m512 sum = _mm512_setzero_ps();
  for (std::size_t i = 0; i < width; i += 32) {
    const __mmask32 mask = firstWords(width - i);
    sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_maskz_loadu_epi16(mask, a + i),
                           (__m512bh)_mm512_maskz_loadu_epi16(mask, b + i));
  }
  return _mm512_reduce_add_ps(sum);
}

/// 32 keys by 32 queries: scores and the gradients of probabilities, and their destinations: rows
/// of kQueries, and pairs of rows.
struct Square {
  const float *scores, *gradients;
  const float *logSumExp, *along; ///< of the queries, the former in powers of 2
  bf16 *probabilities, *scoreGradients, *pairs;
};

/// The masks between a square's keys and queries besides causality, and the derivatives of a cap of
/// scores; null if there are none.
struct SquareOptions {
  std::ptrdiff_t endOfWindow = kBlock; ///< no query from endOfWindow + i on attends to key i
  const std::int32_t *keyIds = nullptr, *queryIds = nullptr;
  const float *slopes = nullptr; ///< laid out as scores
};

/// The queries, a bit each, that attend to key `i` of a square.
inline std::uint32_t seeing(const SquareOptions &options, std::size_t i) {
  const std::ptrdiff_t end = options.endOfWindow + static_cast<std::ptrdiff_t>(i);
  std::uint32_t seen = end >= 32 ? ~0u : end <= 0 ? 0 : (1u << end) - 1;
  if (options.keyIds) {
    const __m512i id = _mm512_set1_epi32(options.keyIds[i]);
    const std::uint32_t low = _mm512_cmpeq_epi32_mask(id, _mm512_loadu_si512(options.queryIds)),
                        high =
                            _mm512_cmpeq_epi32_mask(id, _mm512_loadu_si512(options.queryIds + 16));
    seen &= low | high << 16;
  }
  return seen;
}

/// Caps the scores of a square; leaves the derivatives in `slopes`.
inline void capSquare(float scale, float softcap, float *scores, float *slopes) {
  const float factor = scale / softcap;
#pragma omp simd
  for (std::size_t i = 0; i < kBlock * kBlock; ++i) {
    const float t = vectorTanh(scores[i] * factor);
    scores[i] = softcap * t;
    slopes[i] = 1 - t * t;
  }
}

/// Turns the scores of a square of `keys` keys and `queries` queries into those of a bias whose
/// first number is `bias`, rows of which are `stride` apart: factor * score + (bias - shift).
inline void addBias(float factor, const float *bias, const float *shifts, std::size_t stride,
                    std::size_t keys, std::size_t queries, float *scores) {
#pragma omp simd
  for (std::size_t i = 0; i < kBlock * kBlock; ++i)
    scores[i] *= factor;
  blocks::addTransposed(bias, stride, queries, keys, scores, kBlock, shifts);
}

/// probability := 2^(factor * score - logSumExp), score gradient := probability * (gradient -
/// along), both 0 where the key is masked: the queries from firstThatSees + i on attend to key i,
/// and no query to keys from `keys` on. The queries of the pairs are in the order of `queryOfPair`.
template <bool Masked, bool Options = false>
void computeScoreGradients(const Square &at, float factor, std::ptrdiff_t firstThatSees,
                           std::size_t keys, const SquareOptions &options = {}) {
  const __m512 factors = _mm512_set1_ps(factor);
  const __m512 logs[] = {_mm512_loadu_ps(at.logSumExp), _mm512_loadu_ps(at.logSumExp + 16)};
  const __m512 along[] = {_mm512_loadu_ps(at.along), _mm512_loadu_ps(at.along + 16)};
  for (std::size_t key = 0; key < kBlock; key += 2) {
    __m512i row[2];
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) {
      __m512 p[2], d[2];
      std::uint32_t seen = ~0u;
      if (Masked) {
        const std::ptrdiff_t blind = firstThatSees + static_cast<std::ptrdiff_t>(key + i);
        seen = blind >= 32 || key + i >= keys ? 0 : blind <= 0 ? ~0u : ~0u << blind;
        if (Options && seen)
          seen &= seeing(options, key + i);
      }
#pragma GCC unroll 2
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t from = (key + i) * kBlock + 16 * half;
        p[half] = exp2(_mm512_fmsub_ps(_mm512_loadu_ps(at.scores + from), factors, logs[half]));
        d[half] = _mm512_mul_ps(p[half],
                                _mm512_sub_ps(_mm512_loadu_ps(at.gradients + from), along[half]));
        if (Options && options.slopes)
          d[half] = _mm512_mul_ps(d[half], _mm512_loadu_ps(options.slopes + from));
        if (Masked) {
          const auto mask = static_cast<__mmask16>(seen >> (16 * half));
          p[half] = _mm512_maskz_mov_ps(mask, p[half]);
          d[half] = _mm512_maskz_mov_ps(mask, d[half]);
        }
      }
      row[i] = narrow(d[0], d[1]);
      _mm512_storeu_si512(at.probabilities + (key + i) * kQueries, narrow(p[0], p[1]));
      _mm512_storeu_si512(at.scoreGradients + (key + i) * kQueries, row[i]);
    }
    _mm512_storeu_si512(at.pairs + key * 32, _mm512_unpacklo_epi16(row[0], row[1]));
    _mm512_storeu_si512(at.pairs + key * 32 + 32, _mm512_unpackhi_epi16(row[0], row[1]));
  }
}

/// The query at `lane` of the 16 columns of pairs of `half`.
constexpr std::size_t queryOfPair(std::size_t half, std::size_t lane) {
  return lane / 4 * 8 + half * 4 + lane % 4;
}

/// The operands and results of the gradient of one head.
struct GradientHead {
  Rows q, out, dOut;
  const float *logSumExp;
  const float *bias; ///< or null
  ResultRows dQ;
};

/// Scratch memory of the gradient of a group, which grows with the number of keys.
struct GradientMemory {
  std::size_t width;  ///< filled up
  std::size_t strips; ///< of keys
  std::size_t bytes;  ///< of `memory`, which is aligned to 64
  float *scores, *dQ, *logSumExp, *along, *dK, *dV;
  bf16 *qTransposed, *dOutTransposed, *qPairs, *dOutPairs;
  bf16 *keyRows, *valueRows, *keyColumns; ///< of all keys; columns block after block
  bf16 *probabilities, *scoreGradients, *scoreGradientPairs;
  bool *begunKeys; ///< strips with non-zero sums

  /// Without memory only `bytes` is of use.
  explicit GradientMemory(const AttentionShape &shape, char *memory = nullptr)
      : width(roundUp(shape.width)), strips((shape.keys + kBlock - 1) / kBlock) {
    const std::size_t sums = (shape.keys + kKeys - 1) / kKeys * kKeys * width;
    auto next = reinterpret_cast<std::uintptr_t>(memory);
    const auto place = [&](std::size_t count, auto &...arrays) {
      ((arrays = reinterpret_cast<std::remove_reference_t<decltype(arrays)>>(next),
        next += count * sizeof *arrays),
       ...);
    };
    place(4 * kBlock * kBlock, scores);
    place(kQueries * width, dQ);
    place(kQueries, logSumExp, along);
    place(sums, dK, dV);
    place(kQueries * width, qTransposed, dOutTransposed, qPairs, dOutPairs);
    place(sums, keyRows, valueRows, keyColumns);
    place(kBlock * kQueries, probabilities, scoreGradients);
    place(kKeys * kQueries, scoreGradientPairs);
    place(strips, begunKeys);
    bytes = (next - reinterpret_cast<std::uintptr_t>(memory) + 63) / 64 * 64;
  }
};

/// The gradient of the heads of one group after the other.
class GroupGradient : GradientMemory {
public:
  GroupGradient(const AttentionShape &shape, const PairMultiplier &multiply, char *memory)
      : GradientMemory(shape, memory), shape(shape), multiply(multiply) {}

  /// `sees` lives as long as heads are added.
  void begin(Rows k, Rows v, const Visibility &ofBatch) {
    sees = &ofBatch;
    std::fill_n(begunKeys, strips, false);
    for (std::size_t key = 0; key < shape.keys; key += kBlock) {
      const std::size_t rows = std::min<std::size_t>(kBlock, shape.keys - key);
      const Block keys{k.at(key), k.stride, rows, shape.width};
      copyRows(keys, keyRows + key * width, width);
      copyRows({v.at(key), v.stride, rows, shape.width}, valueRows + key * width, width);
      packColumns(keys, keyColumns + key / kKeys * kKeys * width + key % kKeys, kKeys);
    }
  }

  /// Writes dQ; dK and dV are sums over the heads of the group.
  void add(const GradientHead &head) {
    bias = head.bias;
    for (std::size_t first = 0; first < shape.queries; first += kQueries) {
      const std::size_t queries = std::min<std::size_t>(kQueries, shape.queries - first);
      packQueries(head, first, queries);
      std::fill(std::begin(begunQueries), std::end(begunQueries), false);
      if (sees->ids)
        for (std::size_t t = 0; t < kQueries; ++t)
          queryIds[t] = sees->idOf(std::min(first + t, first + queries - 1));
      const std::size_t keys = sees->endOfSeen(first + queries - 1);
      for (std::size_t key = sees->firstSeen(first) / kKeys * kKeys; key < keys; key += kKeys)
        addKeys(first, queries, key, std::min(kKeys, keys - key));
      for (std::size_t j = 0; j < roundUp(queries) / kBlock; ++j)
        if (!begunQueries[j]) // of queries that attend to no key
          std::fill_n(dQ + j * kBlock * width, kBlock * width, 0.0f);
      writeQueries(head, first, queries);
    }
  }

  void finish(ResultRows newDK, ResultRows newDV) {
    for (std::size_t key = 0; key < shape.keys; ++key) {
      if (!begunKeys[key / kBlock]) { // no query attends to it
        std::fill_n(dK + key * width, width, 0.0f);
        std::fill_n(dV + key * width, width, 0.0f);
      }
      storeRow(dK + key * width, shape.width, shape.scale, newDK.at(key));
      storeRow(dV + key * width, shape.width, 1, newDV.at(key));
    }
  }

private:
  /// Up to 32 keys, of a block of keys that begins at `blockKey`.
  struct Strip {
    std::size_t blockKey, key, keys;
    /// The range of the block of queries, in whole squares, that contains all queries that attend
    /// to any of the keys.
    std::size_t firstQuery, endQuery;
  };

  void packQueries(const GradientHead &head, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; i += kBlock) {
      const std::size_t rows = std::min(kBlock, count - i);
      const Block q{head.q.at(first + i), head.q.stride, rows, shape.width};
      const Block dOut{head.dOut.at(first + i), head.dOut.stride, rows, shape.width};
      packTransposed(q, qTransposed + i * width);
      packTransposed(dOut, dOutTransposed + i * width);
      packPairs(q, qPairs + i * 32, kQueries * 32);
      packPairs(dOut, dOutPairs + i * 32, kQueries * 32);
      for (std::size_t r = i; r < i + kBlock; ++r) {
        // A query that attends to no key has -infinity, from which no number may be subtracted.
        const bool seesSome = r < count && head.logSumExp[first + r] != -kInfinity;
        logSumExp[r] = seesSome ? head.logSumExp[first + r] * kLog2e : 0.0f;
        along[r] =
            r < count ? dot(head.out.at(first + r), head.dOut.at(first + r), shape.width) : 0.0f;
        if (bias && r < count)
          biasShifts[r] = sees->shiftOf(bias + (first + r) * shape.keys, first + r);
      }
    }
  }

  void addStrip(std::size_t firstQuery, std::size_t count, const Strip &strip) {
    const std::size_t begin = strip.firstQuery, queries = strip.endQuery;
    const bool hasOptions = shape.window != 0 || shape.softcap != 0 || sees->ids || bias;
    alignas(64) float slopes[kBlock * kBlock];
    alignas(64) std::int32_t keyIds[kBlock] = {};
    if (sees->ids)
      std::copy_n(sees->ids + strip.key, strip.keys, keyIds);
    const auto products = [&](std::size_t query, float *to) {
      const Bf16MicroKernel product{kBlock, kBlock, width, width, 0, kBlock};
      multiply(product, keyRows + strip.key * width, qTransposed + query * width, to, false);
      multiply(product, valueRows + strip.key * width, dOutTransposed + query * width,
               to + kBlock * kBlock, false);
    };
    // The next square's products run while this one's exponentials are computed.
    float *square = scores, *next = scores + 2 * kBlock * kBlock;
    products(begin, square);
    for (std::size_t query = begin; query < queries; query += kBlock) {
      if (query + kBlock < queries)
        products(query + kBlock, next);
      const Square at{square,
                      square + kBlock * kBlock,
                      logSumExp + query,
                      along + query,
                      probabilities + query,
                      scoreGradients + query,
                      scoreGradientPairs + query * kKeys + (strip.key - strip.blockKey) * 32};
      const float factor = shape.scale * kLog2e;
      std::ptrdiff_t firstThatSees = -std::ptrdiff_t(kBlock);
      if (shape.causal)
        firstThatSees =
            static_cast<std::ptrdiff_t>(strip.key) -
            static_cast<std::ptrdiff_t>(shape.positionOf(std::int64_t(firstQuery + query)));
      if (hasOptions) {
        SquareOptions options;
        if (shape.window != 0)
          options.endOfWindow =
              static_cast<std::ptrdiff_t>(strip.key) + std::ptrdiff_t(shape.window) -
              static_cast<std::ptrdiff_t>(shape.positionOf(std::int64_t(firstQuery + query)));
        if (sees->ids)
          options.keyIds = keyIds, options.queryIds = queryIds + query;
        if (shape.softcap != 0) {
          capSquare(shape.scale, shape.softcap, square, slopes);
          options.slopes = slopes;
        }
        if (bias && query < count)
          addBias(shape.softcap != 0 ? 1 : shape.scale,
                  bias + (firstQuery + query) * shape.keys + strip.key, biasShifts + query,
                  shape.keys, strip.keys, std::min(kBlock, count - query), square);
        computeScoreGradients<true, true>(at, shape.softcap != 0 || bias ? kLog2e : factor,
                                          firstThatSees, strip.keys, options);
      } else if (firstThatSees > -std::ptrdiff_t(kBlock) + 1 || strip.keys < kBlock)
        computeScoreGradients<true>(at, factor, firstThatSees, strip.keys);
      else
        computeScoreGradients<false>(at, factor, 0, kBlock);
      std::swap(square, next);
    }
    const bool isFirst = !begunKeys[strip.key / kBlock];
    const Bf16MicroKernel overQueries{kBlock,   width,         queries - begin,
                                      kQueries, 32 * kQueries, width};
    multiply(overQueries, probabilities + begin, dOutPairs + begin * 32, dV + strip.key * width,
             !isFirst);
    multiply(overQueries, scoreGradients + begin, qPairs + begin * 32, dK + strip.key * width,
             !isFirst);
    begunKeys[strip.key / kBlock] = true;
  }

  Strip stripOf(std::size_t firstQuery, std::size_t filled, std::size_t blockKey,
                std::size_t key) const {
    Strip strip{blockKey, key, std::min<std::size_t>(kBlock, shape.keys - key), 0, filled};
    const auto offset = static_cast<std::ptrdiff_t>(shape.positionOf(std::int64_t(firstQuery)));
    if (shape.causal)
      strip.firstQuery = static_cast<std::size_t>(
          std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(key) - offset, 0));
    if (shape.window != 0)
      strip.endQuery = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(
          static_cast<std::ptrdiff_t>(key + strip.keys - 1) + std::ptrdiff_t(shape.window) - offset,
          0, static_cast<std::ptrdiff_t>(filled)));
    if (sees->ids && strip.firstQuery < strip.endQuery) {
      const auto [first, end] = Visibility::narrow(
          {strip.firstQuery, strip.endQuery}, [&](std::size_t t) { return queryIds[t]; },
          {key, key + strip.keys}, [&](std::size_t s) { return sees->ids[s]; });
      strip.firstQuery = first, strip.endQuery = end;
    }
    strip.firstQuery = strip.firstQuery / kBlock * kBlock;
    strip.endQuery = std::max(roundUp(strip.endQuery), strip.firstQuery);
    return strip;
  }

  void addKeys(std::size_t firstQuery, std::size_t queries, std::size_t firstKey,
               std::size_t keys) {
    const std::size_t filled = roundUp(queries);
    Visibility::Range seen[kQueries / kBlock] = {}; // keys of the block, in whole strips
    for (std::size_t i = 0; i < keys; i += kBlock) {
      const Strip strip = stripOf(firstQuery, filled, firstKey, firstKey + i);
      if (strip.firstQuery == strip.endQuery)
        continue;
      addStrip(firstQuery, queries, strip);
      for (std::size_t j = strip.firstQuery / kBlock; j < strip.endQuery / kBlock; ++j) {
        bf16 *const pairs = scoreGradientPairs + j * kBlock * kKeys;
        if (seen[j].end == 0)
          seen[j].begin = i;
        else // strips of other documents between those of this one
          std::fill(pairs + seen[j].end * 32, pairs + i * 32, bf16(0));
        seen[j].end = i + kBlock;
      }
    }
    for (std::size_t j = 0; j < filled / kBlock; ++j) {
      const auto [begin, end] = seen[j];
      if (begin == end)
        continue;
      multiply({width, kBlock, end - begin, kKeys, 0, kBlock},
               keyColumns + firstKey * width + begin,
               scoreGradientPairs + j * kBlock * kKeys + begin * 32, dQ + j * kBlock * width,
               begunQueries[j]);
      begunQueries[j] = true;
    }
  }

  void writeQueries(const GradientHead &head, std::size_t first, std::size_t count) {
    const __m512 factors = _mm512_set1_ps(shape.scale);
    for (std::size_t j = 0; j < count; j += kBlock)
      for (std::size_t column = 0; column < shape.width; column += 32)
        for (std::size_t half = 0; half < 2; ++half) {
          const float *from = dQ + j * width + column * kBlock + 16 * half;
          __m512i v[16];
#pragma GCC unroll 16
          for (std::size_t i = 0; i < 16; ++i) {
            const __m512 even = _mm512_loadu_ps(from + 2 * i * kBlock);
            const __m512 odd = _mm512_loadu_ps(from + (2 * i + 1) * kBlock);
            const __m512i both = narrow(_mm512_mul_ps(factors, even), _mm512_mul_ps(factors, odd));
            v[i] = interleaveHalves(both);
          }
          transpose(v);
#pragma GCC unroll 16
          for (std::size_t i = 0; i < 16; ++i) {
            const std::size_t query = j + queryOfPair(half, i);
            if (query < count)
              _mm512_mask_storeu_epi16(head.dQ.at(first + query) + column,
                                       firstWords(shape.width - column), v[i]);
          }
        }
  }

  const AttentionShape &shape;
  const PairMultiplier &multiply;
  const Visibility *sees = nullptr; ///< of the batch
  const float *bias = nullptr;      ///< of the head, or null
  bool begunQueries[kQueries / kBlock];
  std::int32_t queryIds[kQueries]; ///< of the block of queries
  float biasShifts[kQueries];      ///< the number subtracted from the bias of each
};

} // namespace

bool attentionGrad(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                   const float *bias, const std::int32_t *documents, const bf16 *out,
                   const float *logSumExp, const bf16 *dOut, bf16 *dQ, bf16 *dK, bf16 *dV) {
  if (pairInstructions() == PairInstructions::None)
    return false;
  const std::size_t shared = shape.heads / shape.groups;
  const std::size_t pieces = std::size_t(shape.batch) * shape.groups;
  const std::size_t bytes = GradientMemory(shape).bytes;
  auto *memory = static_cast<char *>(Workspace::ofThread().reserve(slotsOfPieces(pieces) * bytes));
  forEachPiece(pieces, [&](std::size_t piece, std::size_t slot) {
    const PairMultiplier multiply; // of this thread's matrix unit
    GroupGradient gradient(shape, multiply, memory + slot * bytes);
    const std::size_t batch = piece / shape.groups, group = piece % shape.groups;
    const Visibility sees(shape, documents, batch);
    gradient.begin(rowsOf(shape.k, k, batch, group), rowsOf(shape.k, v, batch, group), sees);
    for (std::size_t head = group * shared; head < (group + 1) * shared; ++head)
      gradient.add({rowsOf(shape.q, q, batch, head), rowsOf(shape.out, out, batch, head),
                    rowsOf(shape.out, dOut, batch, head),
                    logSumExp + (batch * shape.heads + head) * shape.queries,
                    bias ? bias + head * shape.bias : nullptr, rowsOf(shape.q, dQ, batch, head)});
    gradient.finish(rowsOf(shape.k, dK, batch, group), rowsOf(shape.k, dV, batch, group));
  });
  return true;
}

} // namespace fsdp::rt::pairs

#else

bool fsdp::rt::pairs::attentionGrad(const AttentionShape &, const bf16 *, const bf16 *,
                                    const bf16 *, const float *, const std::int32_t *, const bf16 *,
                                    const float *, const bf16 *, bf16 *, bf16 *, bf16 *) {
  return false;
}

#endif
