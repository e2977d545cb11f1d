//===- AttentionBf16.cpp - attention on bf16 -----------------------------===//
//
// Up to 256 queries of a head are processed together, and keys in blocks, which are packed once for
// them. Scores of 32 queries are stored with a row for each query: the keys of a block that a query
// attends to are the beginning of its row, and probabilities overwrite their scores.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/AttentionBf16.h"

#ifdef __AVX512BF16__

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/VnniPacking.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/numerics/VectorMath.h"

#include <algorithm>
#include <cstddef>

namespace fsdp::rt::pairs {

namespace {

constexpr std::size_t kQueries = 256, kKeys = 256; // of a block
constexpr float kInfinity = __builtin_inff(), kLog2e = 1.44269504f;

/// Scratch memory of a head.
struct Scratch {
  float *out;          ///< kQueries rows of the width, not yet divided by the sums
  float *scores;       ///< 32 rows of kKeys
  bf16 *queries;       ///< 32 rows of the width, where those of the operand cannot be read
  bf16 *keys, *values; ///< packed

  static std::size_t floats(std::size_t width) { return kQueries * width + kVnniBlock * kKeys; }
  static std::size_t bytes(std::size_t width) {
    return floats(width) * sizeof(float) + (kVnniBlock + 2 * kKeys) * width * sizeof(bf16);
  }
  Scratch(char *memory, std::size_t width) {
    out = reinterpret_cast<float *>(memory);
    scores = out + kQueries * width;
    queries = reinterpret_cast<bf16 *>(out + floats(width));
    keys = queries + kVnniBlock * width;
    values = keys + kKeys * width;
  }
};

/// A vector whose largest number is the largest of a row; a NaN is ignored, as it appears in the
/// sum.
__m512 maxima(const float *row, std::size_t count) {
  const __m512 none = _mm512_set1_ps(-kInfinity);
  __m512 a = none, b = none;
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    a = _mm512_max_ps(_mm512_loadu_ps(row + i), a);
    b = _mm512_max_ps(_mm512_loadu_ps(row + i + 16), b);
  }
  for (; i < count; i += 16)
    a = _mm512_max_ps(_mm512_mask_loadu_ps(none, firstFloats(count - i), row + i), a);
  return _mm512_max_ps(a, b);
}

/// The first `count` scores of a row become 2^(factor * (score - base)) in bf16, at the beginning
/// of the row, followed by zeros up to `filled`. Returns a vector that adds up to the sum of the
/// rounded numbers. `Biased`: the base may be a masked key's score, of any size, and is subtracted
/// before the product is rounded.
template <bool Biased>
__m512 exponentials(float *row, std::size_t count, std::size_t filled, float factor, float base) {
  const __m512 factors = _mm512_set1_ps(factor),
               shifts = _mm512_set1_ps(Biased ? base : base * factor);
  const auto power = [&](const float *at) {
    const __m512 score = _mm512_loadu_ps(at);
    return exp2(Biased ? _mm512_mul_ps(_mm512_sub_ps(score, shifts), factors)
                       : _mm512_fmsub_ps(score, factors, shifts));
  };
  bf16 *to = reinterpret_cast<bf16 *>(row);
  __m512 a = _mm512_setzero_ps(), b = a;
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512 low = power(row + i), high = power(row + i + 16);
    a = _mm512_add_ps(a, low);
    b = _mm512_add_ps(b, high);
    _mm512_storeu_si512(to + i, narrow(low, high));
  }
  if (i < count) {
    const __mmask16 seen[] = {firstFloats(count - i),
                              firstFloats(count - i < 16 ? 0 : count - i - 16)};
    __m512 part[2];
    for (int half = 0; half < 2; ++half)
      part[half] = _mm512_maskz_mov_ps(seen[half], power(row + i + 16 * half));
    a = _mm512_add_ps(a, part[0]);
    b = _mm512_add_ps(b, part[1]);
    _mm512_storeu_si512(to + i, narrow(part[0], part[1]));
    i += 32;
  }
  for (; i < filled; i += 32)
    _mm512_storeu_si512(to + i, _mm512_setzero_si512());
  return _mm512_add_ps(a, b);
}

void multiplyRow(float *row, std::size_t count, float factor) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    row[i] *= factor;
}

/// Up to kQueries queries of a head: the maximum of each, of its scores as they are multiplied, and
/// the sum of exponentials.
struct QueryBlock {
  const AttentionShape &shape;
  const Visibility &sees;
  const Scratch &scratch;
  const float *bias; ///< of the head, or null
  std::size_t first, count, width;
  float negate; ///< scores are multiplied by it first, where the scale is not positive
  float scale;  ///< and then by it, which is positive
  float top[kQueries];
  float sum[kQueries];
  float biasShifts[kQueries]; ///< the number subtracted from each query's bias first

  QueryBlock(const AttentionShape &shape, const Visibility &sees, const Scratch &scratch,
             const float *bias, std::size_t first)
      : shape(shape), sees(sees), scratch(scratch), bias(bias), first(first),
        count(std::min<std::size_t>(kQueries, shape.queries - first)), width(roundUp(shape.width)),
        negate(shape.scale <= 0 ? shape.scale : 1), scale(shape.scale <= 0 ? 1 : shape.scale) {
    if (bias) {
      negate = 1, scale = 1; // the scores are scaled before it is added
      for (std::size_t r = 0; r < count; ++r)
        biasShifts[r] = sees.shiftOf(bias + (first + r) * shape.keys, first + r);
    } else if (shape.softcap != 0) // of tanh of the scores
      negate = 1, scale = shape.softcap;
    std::fill_n(top, kQueries, -kInfinity);
    std::fill_n(sum, kQueries, 0.0f);
  }

  /// The number of keys up to the last one that a query of the block attends to.
  std::size_t seenBy(std::size_t query) const { return sees.endOfSeen(first + query); }

  /// Those of them that lie in [key, key + kKeys).
  std::size_t seenBy(std::size_t query, std::size_t key) const {
    const std::size_t seen = seenBy(query);
    return seen < key ? 0 : std::min(seen - key, kKeys);
  }

  /// The keys of [key, key + kKeys) that any of `rows` queries from `query` on may see, in whole
  /// panels, from `key` on.
  Visibility::Range panelsOf(std::size_t query, std::size_t rows, std::size_t key) const {
    Visibility::Range range = {std::max(sees.firstSeen(first + query), key),
                               key + seenBy(query + rows - 1, key)};
    if (sees.ids && range.begin < range.end)
      range = Visibility::narrow(
          range, [&](std::size_t s) { return sees.ids[s]; }, {first + query, first + query + rows},
          [&](std::size_t t) { return sees.idOf(t); });
    if (range.begin >= range.end)
      return {0, 0};
    return {(range.begin - key) / kVnniBlock * kVnniBlock, roundUp(range.end - key)};
  }

  /// Caps the first `count` scores of a query, of the keys from `key` on, adds the bias and hides
  /// those of keys that it does not see.
  void applyOptions(std::size_t query, float *row, std::size_t key, std::size_t count) const {
    if (shape.softcap != 0) {
      const float factor = shape.scale / shape.softcap;
#pragma omp simd
      for (std::size_t i = 0; i < count; ++i)
        row[i] = vectorTanh(row[i] * factor);
    }
    if (bias) {
      const float *added = bias + (first + query) * shape.keys + key;
      const float factor = shape.softcap != 0 ? shape.softcap : shape.scale;
      const float shift = biasShifts[query];
#pragma omp simd
      for (std::size_t i = 0; i < count; ++i)
        row[i] = row[i] * factor + (added[i] - shift);
    }
    if (const std::size_t seen = sees.firstSeen(first + query); seen > key)
      std::fill_n(row, std::min(seen - key, count), -kInfinity);
    if (sees.ids) {
      const std::int32_t id = sees.idOf(first + query), *of = sees.ids + key;
#pragma omp simd
      for (std::size_t i = 0; i < count; ++i)
        row[i] = of[i] == id ? row[i] : -kInfinity;
    }
  }

  /// Continues with 16 queries from `query` on, whose scores of the keys from `key` on are in rows
  /// of kKeys. `begun`: they have processed keys before.
  void advance(std::size_t query, float *rows, std::size_t key, std::size_t filled, bool begun) {
    const bool options = shape.softcap != 0 || shape.window != 0 || sees.ids || bias;
    std::size_t seen[16];
    __m512 each[16];
    for (std::size_t r = 0; r < 16; ++r) {
      seen[r] = query + r < count ? std::min(seenBy(query + r, key), filled) : 0;
      if (negate != 1)
        multiplyRow(rows + r * kKeys, seen[r], negate);
      if (options && seen[r] > 0)
        applyOptions(query + r, rows + r * kKeys, key, seen[r]);
      each[r] = maxima(rows + r * kKeys, seen[r]);
    }
    const __m512 last = _mm512_loadu_ps(top + query), factor = _mm512_set1_ps(scale * kLog2e);
    const __m512 now = _mm512_max_ps(
        reduceEach(each, [](__m512 a, __m512 b) { return _mm512_max_ps(a, b); }), last);
    // A query without keys so far keeps -infinity, from which no number may be subtracted.
    const __mmask16 some = _mm512_cmp_ps_mask(now, _mm512_set1_ps(-kInfinity), _CMP_NEQ_OQ);
    const __mmask16 moved = _mm512_cmp_ps_mask(now, last, _CMP_NEQ_OQ);
    float bases[16];
    _mm512_storeu_ps(bases, _mm512_maskz_mov_ps(some, now));
    _mm512_storeu_ps(top + query, now);
    const auto powers = bias ? exponentials<true> : exponentials<false>;
    for (std::size_t r = 0; r < 16; ++r)
      each[r] = powers(rows + r * kKeys, seen[r], filled, scale * kLog2e, bases[r]);
    __m512 sums = reduceEach(each, [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); });
    if (begun) {
      float corrections[16];
      const __m512 correction = _mm512_mask_mov_ps(
          _mm512_set1_ps(1.0f), moved, exp2(_mm512_mul_ps(_mm512_sub_ps(last, now), factor)));
      _mm512_storeu_ps(corrections, correction);
      sums = _mm512_fmadd_ps(_mm512_loadu_ps(sum + query), correction, sums);
      for (unsigned left = moved; left != 0; left &= left - 1) {
        const auto r = static_cast<std::size_t>(__builtin_ctz(left));
        multiplyRow(scratch.out + (query + r) * width, width, corrections[r]);
      }
    }
    _mm512_storeu_ps(sum + query, sums);
  }
};

/// Attention of the queries of one head from `first` on, up to kQueries of them.
void attendBlock(const AttentionShape &shape, const Visibility &sees,
                 const PairMultiplier &multiply, std::size_t first, Rows q, Rows k, Rows v,
                 const float *bias, ResultRows out, float *logSumExp, char *memory) {
  const std::size_t width = roundUp(shape.width);
  const Scratch scratch(memory, width);
  QueryBlock block(shape, sees, scratch, bias, first);
  const std::size_t seenByAny = block.seenBy(block.count - 1);
  bool begun[kQueries / kVnniBlock] = {};
  for (std::size_t key = sees.firstSeen(first) / kVnniBlock * kVnniBlock; key < seenByAny;
       key += kKeys) {
    if (sees.ids && block.panelsOf(0, block.count, key).end == 0)
      continue;
    for (std::size_t i = key; i < std::min(key + kKeys, seenByAny); i += kVnniBlock) {
      const std::size_t rows = std::min(kVnniBlock, shape.keys - i);
      packTransposed({k.at(i), k.stride, rows, shape.width}, scratch.keys + (i - key) * width);
      packPairs({v.at(i), v.stride, rows, shape.width}, scratch.values + (i - key) * 32,
                kKeys * 32);
    }
    for (std::size_t query = 0; query < block.count; query += kVnniBlock) {
      const std::size_t rows = std::min(kVnniBlock, block.count - query);
      const auto [from, end] = block.panelsOf(query, rows, key);
      if (end == 0)
        continue;
      const std::size_t filled = end - from;
      float *const scores = scratch.scores + from;
      bool &hasBegun = begun[query / kVnniBlock];
      const bf16 *queries = q.at(first + query);
      std::size_t stride = static_cast<std::size_t>(q.stride);
      if (rows < kVnniBlock || width != shape.width || q.stride < 0) {
        copyRows({queries, q.stride, rows, shape.width}, scratch.queries, width);
        queries = scratch.queries;
        stride = width;
      }
      multiply({kVnniBlock, filled, width, stride, 32 * width, kKeys}, queries,
               scratch.keys + from * width, scores, false);
      for (std::size_t r = 0; r < rows; r += 16)
        block.advance(query + r, scores + r * kKeys, key + from, filled, hasBegun);
      multiply({kVnniBlock, width, filled, 2 * kKeys, 32 * kKeys, width},
               reinterpret_cast<const bf16 *>(scores), scratch.values + from * 32,
               scratch.out + query * width, hasBegun);
      hasBegun = true;
    }
  }
  for (std::size_t r = 0; r < block.count; ++r) {
    const bool some = block.sum[r] != 0;
    if (!some)
      std::fill_n(scratch.out + r * width, width, 0.0f);
    storeRow(scratch.out + r * width, shape.width, some ? 1 / block.sum[r] : 1.0f,
             out.at(first + r));
  }
#pragma omp simd
  for (std::size_t r = 0; r < block.count; ++r)
    logSumExp[first + r] = vectorLog(block.sum[r]) + block.top[r] * block.scale;
}

} // namespace

bool attention(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
               const float *bias, const std::int32_t *documents, bf16 *out, float *logSumExp) {
  if (pairInstructions() == PairInstructions::None)
    return false;
  const std::size_t shared = shape.heads / shape.groups;
  const std::size_t blocks = (shape.queries + kQueries - 1) / kQueries;
  const std::size_t pieces = std::size_t(shape.batch) * shape.heads * blocks;
  const std::size_t bytes = Scratch::bytes(roundUp(shape.width));
  auto *memory = static_cast<char *>(Workspace::ofThread().reserve(slotsOfPieces(pieces) * bytes));
  forEachPiece(pieces, [&](std::size_t piece, std::size_t slot) {
    const PairMultiplier multiply; // of this thread's matrix unit
    const std::size_t which = piece / blocks, first = piece % blocks * kQueries;
    const std::size_t batch = which / shape.heads, head = which % shape.heads;
    const Visibility sees(shape, documents, batch);
    attendBlock(shape, sees, multiply, first, rowsOf(shape.q, q, batch, head),
                rowsOf(shape.k, k, batch, head / shared), rowsOf(shape.k, v, batch, head / shared),
                bias ? bias + head * shape.bias : nullptr, rowsOf(shape.out, out, batch, head),
                logSumExp + which * shape.queries, memory + slot * bytes);
  });
  return true;
}

} // namespace fsdp::rt::pairs

#else

bool fsdp::rt::pairs::attention(const AttentionShape &, const bf16 *, const bf16 *, const bf16 *,
                                const float *, const std::int32_t *, bf16 *, float *) {
  return false;
}

#endif
