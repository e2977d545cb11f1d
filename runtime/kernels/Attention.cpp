//===- Attention.cpp ------------------------------------------------------===//
//
// Queries are taken in blocks, and for each block keys in blocks. Scores of a block pair are stored
// transposed, scores[key][query]: then only the block of queries needs packing, keys and values are
// used in place, and maxima and sums over keys run over whole vectors of queries.
//
// All of this works on floats in dense rows. Keys and values in another form, narrower or
// interleaved with other tensors, are converted once for all heads of their group: rows a page
// apart would evict each other from the cache.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/AttentionBf16.h"
#include "runtime/kernels/AttentionSoftmax.h"
#include "runtime/kernels/F32MicroKernel.h"
#include "runtime/numerics/VectorMath.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace fsdp::rt::kernels {

namespace {

using namespace blocks;

/// Four by four numbers, transposed.
template <class T>
void transposeFour(const T *rows, std::size_t stride, float factor, float *packed) {
  const auto row = [&](std::size_t r) {
    const T *at = rows + r * stride;
    return Four{float(at[0]), float(at[1]), float(at[2]), float(at[3])} * factor;
  };
  const FourByFour block(row(0), row(1), row(2), row(3));
  for (std::size_t i = 0; i < 4; ++i)
    std::memcpy(packed + i * kQueries, &block.columns[i], sizeof(Four));
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

void multiplyRow(float *row, std::size_t width, float factor) {
#pragma omp simd
  for (std::size_t i = 0; i < width; ++i)
    row[i] *= factor;
}

/// Whether rows of T, `stride` numbers apart, are floats in dense rows.
template <class T> constexpr bool isDense(std::size_t stride, std::size_t width) {
  return std::is_same_v<T, float> && stride == width;
}

/// The rows themselves, or where `to` holds them as floats in dense rows.
template <class T>
const float *dense(const T *from, std::size_t stride, std::size_t count, std::size_t width,
                   float *to) {
  if constexpr (std::is_same_v<T, float>)
    if (stride == width)
      return from;
  for (std::size_t r = 0; r < count; ++r)
    convert(from + r * stride, width, to + r * width);
  return to;
}

/// Where a kernel may write floats in dense rows: in place, or in `scratch` until `putBack`.
template <class T>
float *denseResult(T *place, std::size_t stride, std::size_t width, float *scratch) {
  if constexpr (std::is_same_v<T, float>)
    if (stride == width)
      return place;
  return scratch;
}
template <class T>
void putBack(const float *from, std::size_t count, std::size_t width, T *place,
             std::size_t stride) {
  if (!isDense<T>(stride, width))
    for (std::size_t r = 0; r < count; ++r)
      convert(from + r * width, width, place + r * stride);
}

/// Scratch memory of a thread: floats, handed out one piece after the other.
class Scratch {
public:
  explicit Scratch(float *from) : next(from) {}
  float *take(std::size_t count) { return std::exchange(next, next + count); }

private:
  float *next;
};

/// One block of queries of one head. `packed` and `wide` hold width * kQueries numbers, `scores`
/// kKeys * kQueries.
template <class T>
void attendBlock(const AttentionShape &shape, const QueryBlock &block, const T *q, const float *k,
                 const float *v, T *result, float *logSumExp, float *packed, float *scores,
                 float *wide) {
  const std::size_t width = shape.width;
  float *out = denseResult(result, shape.out.row, width, wide);
  transpose(q, shape.q.row, block.count, block.lanes, width, shape.scale, packed);
  std::fill_n(out, block.count * width, 0.0f);
  Softmax softmax;
  for (std::size_t first = block.firstKey(); first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first);
    if (!block.mayAttend(first, count))
      continue;
    multiply({count, block.lanes, width, width, 1, kQueries, kQueries}, k + first * width, packed,
             scores, false);
    if (softmax.advance(block, first, count, scores))
      for (std::size_t r = 0; r < block.count; ++r)
        multiplyRow(out + r * width, width, softmax.correction[r]);
    multiply({block.count, width, count, 1, kQueries, width, width}, scores, v + first * width, out,
             true);
  }
  for (std::size_t r = 0; r < block.count; ++r)
    if (softmax.sum[r] != 0)
      multiplyRow(out + r * width, width, static_cast<float>(1 / softmax.sum[r]));
#pragma omp simd
  for (std::size_t r = 0; r < block.count; ++r)
    logSumExp[r] = vectorLog(static_cast<float>(softmax.sum[r])) + softmax.top[r];
  putBack(out, block.count, width, result, shape.out.row);
}

/// The operands and results of a block of queries in the gradient.
template <class T> struct GradientBlock {
  const T *q, *out;
  const float *logSumExp;
  const T *dOut;
  T *dQ;
};

/// Scratch memory of a block in the gradient.
struct GradientScratch {
  float *packedQ, *packedOut;           ///< width * kQueries
  float *q, *dOut, *dQ;                 ///< the same, as dense rows
  float *probabilities, *scoreGradient; ///< kKeys * kQueries

  static std::size_t count(std::size_t width) { return (5 * width + 2 * kKeys) * kQueries; }
  GradientScratch(Scratch &scratch, std::size_t width) {
    for (float **rows : {&packedQ, &packedOut, &q, &dOut, &dQ})
      *rows = scratch.take(width * kQueries);
    probabilities = scratch.take(kKeys * kQueries);
    scoreGradient = scratch.take(kKeys * kQueries);
  }
};

/// The operands of a block of queries for the gradients: scaled, and those of the gradient of
/// scores multiplied by `factor`.
template <class T> struct PreparedBlock {
  const float *q, *dOut;                                ///< dense rows
  float logSumExp[kQueries] = {}, along[kQueries] = {}; ///< in the form for `scoreGradients`

  PreparedBlock(const AttentionShape &shape, const QueryBlock &block, const GradientBlock<T> &at,
                float factor, const GradientScratch &scratch)
      : q(dense(at.q, shape.q.row, block.count, shape.width, scratch.q)),
        dOut(dense(at.dOut, shape.out.row, block.count, shape.width, scratch.dOut)) {
    const std::size_t width = shape.width;
    transpose(at.q, shape.q.row, block.count, block.lanes, width, shape.scale, scratch.packedQ);
    transpose(at.dOut, shape.out.row, block.count, block.lanes, width, factor, scratch.packedOut);
    for (std::size_t r = 0; r < block.count; ++r) {
      const T *out = at.out + r * shape.out.row;
      const float *cotangent = dOut + r * width;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t i = 0; i < width; ++i)
        sum += double(float(out[i])) * double(cotangent[i]);
      along[r] = static_cast<float>(sum) * factor;
      // A query that attends to no key has -infinity, from which no number may be subtracted.
      logSumExp[r] = at.logSumExp[r] == -kInfinity ? 0.0f : at.logSumExp[r] * kLog2e;
    }
  }
};

/// Calls `fn(first, count)` for each block of keys [first, first + count) that may be seen by a
/// block of queries, whose operands `PreparedBlock` has packed: scratch.probabilities has the
/// scores, not yet capped and without the bias, and scratch.scoreGradient dOut . v.
template <class Fn>
void forEachKeyBlock(const AttentionShape &shape, const QueryBlock &block, const float *k,
                     const float *v, const GradientScratch &scratch, Fn fn) {
  const std::size_t width = shape.width;
  for (std::size_t first = block.firstKey(); first < block.keys(); first += kKeys) {
    const std::size_t count = std::min(kKeys, block.keys() - first);
    if (!block.mayAttend(first, count))
      continue;
    const F32MicroKernel scores{count, block.lanes, width, width, 1, kQueries, kQueries};
    multiply(scores, k + first * width, scratch.packedQ, scratch.probabilities, false);
    multiply(scores, v + first * width, scratch.packedOut, scratch.scoreGradient, false);
    fn(first, count);
  }
}

template <class T>
void attendBlockGrad(const AttentionShape &shape, const QueryBlock &block,
                     const GradientBlock<T> &at, const float *k, const float *v, float *dK,
                     float *dV, const GradientScratch &scratch) {
  const std::size_t width = shape.width;
  float *dQ = denseResult(at.dQ, shape.q.row, width, scratch.dQ);
  // Times the scale already, for the gradient of the scores.
  const PreparedBlock<T> prepared(shape, block, at, shape.scale, scratch);
  std::fill_n(dQ, block.count * width, 0.0f);
  forEachKeyBlock(shape, block, k, v, scratch, [&](std::size_t first, std::size_t count) {
    const auto gradients = block.softcap != 0 ? cappedScoreGradients : scoreGradients;
    gradients(block, first, count, prepared.logSumExp, prepared.along, scratch.probabilities,
              scratch.scoreGradient);
    const std::size_t offset = first * width;
    const F32MicroKernel overQueries{count, width, block.count, kQueries, 1, width, width};
    multiply(overQueries, scratch.probabilities, prepared.dOut, dV + offset, true);
    multiply(overQueries, scratch.scoreGradient, prepared.q, dK + offset, true);
    multiply({block.count, width, count, 1, kQueries, width, width}, scratch.scoreGradient,
             k + offset, dQ, true);
  });
  putBack(dQ, block.count, width, at.dQ, shape.q.row);
}

/// Adds the contribution of a block of queries to dBias, the gradient of the head's bias.
template <class T>
void addBiasGradient(const AttentionShape &shape, const QueryBlock &block, std::size_t firstQuery,
                     const GradientBlock<T> &at, const float *k, const float *v, float *dBias,
                     const GradientScratch &scratch) {
  const PreparedBlock<T> prepared(shape, block, at, 1, scratch);
  forEachKeyBlock(shape, block, k, v, scratch, [&](std::size_t first, std::size_t count) {
    if (block.softcap != 0)
      cap(block, count, scratch.probabilities);
    scoreGradients(block, first, count, prepared.logSumExp, prepared.along, scratch.probabilities,
                   scratch.scoreGradient);
    addTransposed(scratch.scoreGradient, kQueries, count, block.count,
                  dBias + firstQuery * shape.keys + first, shape.keys, nullptr);
  });
}

/// The batch and the group of keys of a piece, and some of the queries of its heads: no number of a
/// result belongs to two.
struct GroupPiece {
  std::size_t batch, group, firstQuery, endQuery;
};

/// Calls `body(piece, scratch)` for the groups of each batch, with scratch memory of `floats`.
/// `cutsQueries`: where those are few pieces, queries are shared as well.
template <class Body>
void forEachGroup(const AttentionShape &shape, std::size_t floats, bool cutsQueries,
                  const Body &body) {
  constexpr std::size_t few = 16, least = 4 * kQueries; // pieces, and queries of one
  const std::size_t groups = std::size_t(shape.batch) * shape.groups;
  const std::size_t wanted = groups == 0 ? 1 : std::max<std::size_t>(few / groups, 1);
  const std::size_t parts =
      cutsQueries ? std::clamp<std::size_t>(shape.queries / least, 1, wanted) : 1;
  const std::size_t queries =
      (shape.queries + parts * kQueries - 1) / (parts * kQueries) * kQueries;
  const std::size_t pieces = groups * parts;
  floats = (floats + 15) / 16 * 16;
  auto *workspace = static_cast<float *>(
      Workspace::ofThread().reserve(slotsOfPieces(pieces) * floats * sizeof(float)));
  forEachPiece(pieces, [&](std::size_t piece, std::size_t slot) {
    const std::size_t which = piece / parts, first = piece % parts * queries;
    body(GroupPiece{which / shape.groups, which % shape.groups,
                    std::min<std::size_t>(first, shape.queries),
                    std::min<std::size_t>(first + queries, shape.queries)},
         Scratch(workspace + slot * floats));
  });
}

/// Where a head's rows begin.
std::size_t startOf(const HeadStrides &strides, std::size_t batch, std::size_t head) {
  return batch * strides.batch + head * strides.head;
}

/// The ids of a batch's documents, if there are any.
const std::int32_t *idsOf(const AttentionShape &shape, const std::int32_t *documents,
                          std::size_t batch) {
  return documents ? documents + batch * shape.keys : nullptr;
}

/// The bias of a head, if there is any.
const float *biasOf(const AttentionShape &shape, const float *bias, std::size_t head) {
  return bias ? bias + head * shape.bias : nullptr;
}

} // namespace

template <class T>
void attention(AttentionShape shape, const T *q, const T *k, const T *v, const float *bias,
               const std::int32_t *documents, T *out, float *logSumExp) {
  if constexpr (std::is_same_v<T, bf16>)
    if (pairs::attention(shape, q, k, v, bias, documents, out, logSumExp))
      return;
  const std::size_t width = shape.width, shared = shape.heads / shape.groups;
  const std::size_t numbers = isDense<T>(shape.k.row, width) ? 0 : shape.keys * width;
  const std::size_t floats = 2 * numbers + (2 * width + kKeys) * kQueries;
  forEachGroup(shape, floats, true, [&](GroupPiece piece, Scratch scratch) {
    const auto [batch, group, firstQuery, endQuery] = piece;
    float *wideKeys = scratch.take(numbers), *wideValues = scratch.take(numbers);
    float *packed = scratch.take(width * kQueries), *wide = scratch.take(width * kQueries);
    float *scores = scratch.take(kKeys * kQueries);
    const std::size_t at = startOf(shape.k, batch, group);
    const float *keys = dense(k + at, shape.k.row, shape.keys, width, wideKeys);
    const float *values = dense(v + at, shape.k.row, shape.keys, width, wideValues);
    for (std::size_t head = group * shared; head < (group + 1) * shared; ++head) {
      const T *headQ = q + startOf(shape.q, batch, head);
      T *headOut = out + startOf(shape.out, batch, head);
      float *sums = logSumExp + (batch * shape.heads + head) * shape.queries;
      for (std::size_t first = firstQuery; first < endQuery; first += kQueries)
        attendBlock(
            shape,
            QueryBlock(shape, first, biasOf(shape, bias, head), idsOf(shape, documents, batch)),
            headQ + first * shape.q.row, keys, values, headOut + first * shape.out.row,
            sums + first, packed, scores, wide);
    }
  });
}

template <class T>
void attentionGrad(AttentionShape shape, const T *q, const T *k, const T *v, const float *bias,
                   const std::int32_t *documents, const T *out, const float *logSumExp,
                   const T *dOut, T *dQ, T *dK, T *dV) {
  if constexpr (std::is_same_v<T, bf16>)
    if (pairs::attentionGrad(shape, q, k, v, bias, documents, out, logSumExp, dOut, dQ, dK, dV))
      return;
  const std::size_t width = shape.width, shared = shape.heads / shape.groups;
  const std::size_t numbers = isDense<T>(shape.k.row, width) ? 0 : shape.keys * width;
  const std::size_t floats = 4 * numbers + GradientScratch::count(width);
  forEachGroup(shape, floats, false, [&](GroupPiece piece, Scratch scratch) {
    const auto [batch, group, firstQuery, endQuery] = piece;
    float *wideKeys = scratch.take(numbers), *wideValues = scratch.take(numbers);
    float *wideKeySums = scratch.take(numbers), *wideValueSums = scratch.take(numbers);
    const GradientScratch blockScratch(scratch, width);
    const std::size_t at = startOf(shape.k, batch, group);
    const float *keys = dense(k + at, shape.k.row, shape.keys, width, wideKeys);
    const float *values = dense(v + at, shape.k.row, shape.keys, width, wideValues);
    float *keySums = denseResult(dK + at, shape.k.row, width, wideKeySums);
    float *valueSums = denseResult(dV + at, shape.k.row, width, wideValueSums);
    std::fill_n(keySums, shape.keys * width, 0.0f);
    std::fill_n(valueSums, shape.keys * width, 0.0f);
    for (std::size_t head = group * shared; head < (group + 1) * shared; ++head) {
      const std::size_t atQ = startOf(shape.q, batch, head);
      const std::size_t atOut = startOf(shape.out, batch, head);
      const float *sums = logSumExp + (batch * shape.heads + head) * shape.queries;
      for (std::size_t first = firstQuery; first < endQuery; first += kQueries) {
        const std::size_t rowQ = atQ + first * shape.q.row;
        const std::size_t rowOut = atOut + first * shape.out.row;
        attendBlockGrad<T>(
            shape,
            QueryBlock(shape, first, biasOf(shape, bias, head), idsOf(shape, documents, batch)),
            {q + rowQ, out + rowOut, sums + first, dOut + rowOut, dQ + rowQ}, keys, values, keySums,
            valueSums, blockScratch);
      }
    }
    putBack(keySums, shape.keys, width, dK + at, shape.k.row);
    putBack(valueSums, shape.keys, width, dV + at, shape.k.row);
  });
}

template <class T>
void attentionBiasGrad(AttentionShape shape, const T *q, const T *k, const T *v, const float *bias,
                       const std::int32_t *documents, const T *out, const float *logSumExp,
                       const T *dOut, float *dBias) {
  const std::size_t width = shape.width, shared = shape.heads / shape.groups;
  const std::size_t numbers = isDense<T>(shape.k.row, width) ? 0 : shape.keys * width;
  const std::size_t ofHead = std::size_t(shape.queries) * shape.keys;
  const std::size_t floats = (2 * numbers + GradientScratch::count(width) + 15) / 16 * 16;
  // A bias of all heads is a sum over them.
  const std::size_t pieces = shape.bias == 0 ? 1 : shape.groups, ofPiece = shape.groups / pieces;
  auto *workspace = static_cast<float *>(
      Workspace::ofThread().reserve(slotsOfPieces(pieces) * floats * sizeof(float)));
  forEachPiece(pieces, [&](std::size_t piece, std::size_t slot) {
    Scratch scratch(workspace + slot * floats);
    float *wideKeys = scratch.take(numbers), *wideValues = scratch.take(numbers);
    const GradientScratch blockScratch(scratch, width);
    std::fill_n(dBias + piece * shared * shape.bias, shape.bias == 0 ? ofHead : shared * ofHead,
                0.0f);
    for (std::size_t batch = 0; batch < shape.batch; ++batch)
      for (std::size_t group = piece * ofPiece; group < (piece + 1) * ofPiece; ++group) {
        const std::size_t at = startOf(shape.k, batch, group);
        const float *keys = dense(k + at, shape.k.row, shape.keys, width, wideKeys);
        const float *values = dense(v + at, shape.k.row, shape.keys, width, wideValues);
        for (std::size_t head = group * shared; head < (group + 1) * shared; ++head) {
          const std::size_t atQ = startOf(shape.q, batch, head);
          const std::size_t atOut = startOf(shape.out, batch, head);
          const float *sums = logSumExp + (batch * shape.heads + head) * shape.queries;
          for (std::size_t first = 0; first < shape.queries; first += kQueries) {
            const std::size_t rowOut = atOut + first * shape.out.row;
            addBiasGradient<T>(
                shape,
                QueryBlock(shape, first, biasOf(shape, bias, head), idsOf(shape, documents, batch)),
                first,
                {q + atQ + first * shape.q.row, out + rowOut, sums + first, dOut + rowOut, nullptr},
                keys, values, dBias + head * shape.bias, blockScratch);
          }
        }
      }
  });
}

#define INSTANTIATE(function)                                                                      \
  template decltype(function<float>) function<float>;                                              \
  template decltype(function<bf16>) function<bf16>;
INSTANTIATE(attention)
INSTANTIATE(attentionGrad)
INSTANTIATE(attentionBiasGrad)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
