//===- Attention.cpp ------------------------------------------------------===//
//
// Queries are taken in blocks, and for each block keys in blocks. Scores of a block pair lie
// transposed, scores[key][query]: then only the block of queries needs packing, keys and values are
// used where they stand, and maxima and sums over keys run over whole vectors of queries.
//
//===----------------------------------------------------------------------===//

#include "runtime/Attention.h"

#include "runtime/TileProduct.h"
#include "runtime/VectorMath.h"
#include "runtime/Workspace.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace fsdp::rt::kernels {

namespace {

constexpr std::size_t kQueries = 64, kKeys = 128; // of a block
constexpr float kInfinity = __builtin_inff();

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

/// packed[i][r] = factor * rows[r][i]; lanes past the last row are zero.
void transpose(const float *rows, std::size_t count, std::size_t lanes, std::size_t width,
               float factor, float *packed) {
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t r = 0; r < count; ++r)
      packed[i * kQueries + r] = factor * rows[r * width + i];
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
    float tops[kQueries], sums[kQueries];
    std::copy_n(top, kQueries, tops);
    for (std::size_t s = 0; s < count; ++s) {
      float *row = scores + s * kQueries;
      const std::size_t blind = std::min(block.firstThatSees(first + s), block.lanes);
      std::fill_n(row, blind, -kInfinity);
#pragma omp simd
      for (std::size_t r = 0; r < block.lanes; ++r)
        tops[r] = row[r] > tops[r] ? row[r] : tops[r];
    }
    bool moved = false;
    for (std::size_t r = 0; r < block.lanes; ++r) {
      moved |= tops[r] != top[r];
      // A query that has seen nothing keeps -infinity, from which nothing may be subtracted.
      correction[r] = tops[r] == top[r] ? 1.0f : vectorExp(top[r] - tops[r]);
      top[r] = tops[r];
      tops[r] = tops[r] == -kInfinity ? 0.0f : tops[r];
      sums[r] = 0;
    }
    for (std::size_t s = 0; s < count; ++s) {
      float *row = scores + s * kQueries;
#pragma omp simd
      for (std::size_t r = 0; r < block.lanes; ++r) {
        row[r] = vectorExp(row[r] - tops[r]);
        sums[r] += row[r];
      }
    }
    for (std::size_t r = 0; r < block.lanes; ++r)
      sum[r] = sum[r] * double(correction[r]) + double(sums[r]);
    return moved && first > 0;
  }
};

void multiplyRow(float *row, std::size_t width, float factor) {
#pragma omp simd
  for (std::size_t i = 0; i < width; ++i)
    row[i] *= factor;
}

/// One block of queries of one head. `packed` holds width * kQueries numbers, `scores` kKeys *
/// kQueries.
void attendBlock(const AttentionShape &shape, const QueryBlock &block, const float *q,
                 const float *k, const float *v, float *out, float *logSumExp, float *packed,
                 float *scores) {
  const std::size_t width = shape.width;
  transpose(q, block.count, block.lanes, width, shape.scale, packed);
  std::fill_n(out, block.count * width, 0.0f);
  Softmax softmax;
  for (std::size_t first = 0; first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first);
    multiply({count, block.lanes, width, width, 1, kQueries, kQueries}, k + first * width, packed,
             scores, false);
    if (softmax.advance(block, first, count, scores))
      for (std::size_t r = 0; r < block.count; ++r)
        multiplyRow(out + r * width, width, softmax.correction[r]);
    multiply({block.count, width, count, 1, kQueries, width, width}, scores, v + first * width, out,
             true);
  }
  for (std::size_t r = 0; r < block.count; ++r) {
    if (softmax.sum[r] != 0)
      multiplyRow(out + r * width, width, static_cast<float>(1 / softmax.sum[r]));
    logSumExp[r] = static_cast<float>(std::log(softmax.sum[r]) + double(softmax.top[r]));
  }
}

/// What a block of queries reads and writes in the gradient.
struct GradientBlock {
  const float *q, *out, *logSumExp, *dOut;
  float *dQ;
};

/// Scratch memory of the gradient.
struct GradientScratch {
  float *packedQ, *packedOut;           ///< width * kQueries
  float *probabilities, *scoreGradient; ///< kKeys * kQueries

  explicit GradientScratch(std::size_t width) {
    packedQ = static_cast<float *>(
        Workspace::ofThread().reserve(2 * (width + kKeys) * kQueries * sizeof(float)));
    packedOut = packedQ + width * kQueries;
    probabilities = packedOut + width * kQueries;
    scoreGradient = probabilities + kKeys * kQueries;
  }
};

/// probabilities := exp(scores - logSumExp), scoreGradient := scale * probabilities *
/// (scoreGradient - along), 0 where the key is not seen. `along` holds each query's dOut . out.
void scoreGradients(const QueryBlock &block, std::size_t first, std::size_t count, float scale,
                    const float *logSumExp, const float *along, float *__restrict probabilities,
                    float *__restrict scoreGradient) {
  for (std::size_t s = 0; s < count; ++s) {
    float *p = probabilities + s * kQueries, *d = scoreGradient + s * kQueries;
    const std::size_t blind = std::min(block.firstThatSees(first + s), block.lanes);
    std::fill_n(p, blind, -kInfinity);
#pragma omp simd
    for (std::size_t r = 0; r < block.lanes; ++r) {
      p[r] = vectorExp(p[r] - logSumExp[r]);
      d[r] = scale * p[r] * (d[r] - along[r]);
    }
    std::fill_n(d, blind, 0.0f);
  }
}

void attendBlockGrad(const AttentionShape &shape, const QueryBlock &block, const GradientBlock &at,
                     const float *k, const float *v, float *dK, float *dV,
                     const GradientScratch &scratch) {
  const std::size_t width = shape.width;
  transpose(at.q, block.count, block.lanes, width, shape.scale, scratch.packedQ);
  transpose(at.dOut, block.count, block.lanes, width, 1, scratch.packedOut);
  float logSumExp[kQueries] = {}, along[kQueries] = {};
  for (std::size_t r = 0; r < block.count; ++r) {
    const float *out = at.out + r * width, *dOut = at.dOut + r * width;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < width; ++i)
      sum += double(out[i]) * double(dOut[i]);
    along[r] = static_cast<float>(sum);
    // A query that sees nothing has -infinity, from which nothing may be subtracted.
    logSumExp[r] = at.logSumExp[r] == -kInfinity ? 0.0f : at.logSumExp[r];
  }
  std::fill_n(at.dQ, block.count * width, 0.0f);
  for (std::size_t first = 0; first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first), offset = first * width;
    const TileProduct scores{count, block.lanes, width, width, 1, kQueries, kQueries};
    multiply(scores, k + offset, scratch.packedQ, scratch.probabilities, false);
    multiply(scores, v + offset, scratch.packedOut, scratch.scoreGradient, false);
    scoreGradients(block, first, count, shape.scale, logSumExp, along, scratch.probabilities,
                   scratch.scoreGradient);
    const TileProduct overQueries{count, width, block.count, kQueries, 1, width, width};
    multiply(overQueries, scratch.probabilities, at.dOut, dV + offset, true);
    multiply(overQueries, scratch.scoreGradient, at.q, dK + offset, true);
    multiply({block.count, width, count, 1, kQueries, width, width}, scratch.scoreGradient,
             k + offset, at.dQ, true);
  }
}

} // namespace

void attention(AttentionShape shape, const float *q, const float *k, const float *v, float *out,
               float *logSumExp) {
  const std::size_t width = shape.width, shared = shape.heads / shape.groups;
  auto *packed = static_cast<float *>(
      Workspace::ofThread().reserve((width + kKeys) * kQueries * sizeof(float)));
  for (std::size_t head = 0; head < std::size_t(shape.batch) * shape.heads; ++head) {
    const std::size_t group = head / shared * shape.keys * width;
    for (std::size_t first = 0; first < shape.queries; first += kQueries) {
      const std::size_t row = head * shape.queries + first;
      attendBlock(shape, QueryBlock(shape, first), q + row * width, k + group, v + group,
                  out + row * width, logSumExp + row, packed, packed + width * kQueries);
    }
  }
}

void attentionGrad(AttentionShape shape, const float *q, const float *k, const float *v,
                   const float *out, const float *logSumExp, const float *dOut, float *dQ,
                   float *dK, float *dV) {
  const std::size_t width = shape.width, shared = shape.heads / shape.groups;
  const std::size_t groups = std::size_t(shape.batch) * shape.groups * shape.keys * width;
  std::fill_n(dK, groups, 0.0f);
  std::fill_n(dV, groups, 0.0f);
  const GradientScratch scratch(width);
  for (std::size_t head = 0; head < std::size_t(shape.batch) * shape.heads; ++head) {
    const std::size_t group = head / shared * shape.keys * width;
    for (std::size_t first = 0; first < shape.queries; first += kQueries) {
      const std::size_t row = head * shape.queries + first, at = row * width;
      attendBlockGrad(shape, QueryBlock(shape, first),
                      {q + at, out + at, logSumExp + row, dOut + at, dQ + at}, k + group, v + group,
                      dK + group, dV + group, scratch);
    }
  }
}

} // namespace fsdp::rt::kernels
