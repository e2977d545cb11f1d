//===- AttentionFloat.cu - attention of f32 by blocks ---------------------===//
//
// The same walks as Attention.cu and AttentionGrad.cu, in float throughout: no tensor core computes
// f32. 256 threads take blocks of 64 queries and 64 keys from shared memory; a thread has every
// 16th row and column of a block of scores, so that 32 numbers loaded give 64 fused multiply-adds.
// Where the device gives a block less shared memory than that takes (8.0 for gradients of width
// 128; 8.6, 8.9 and 12.0 for width 128 and gradients of width 64), blocks are of 32 queries and
// keys.
//
// Floor: the flops of the bf16 kernels (4 and 14 b h q k w, half of it where causal) at 67 Tflop/s.
// These kernels load from shared memory as much as they multiply: half of that rate at best. f32 is
// for checking.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/AttentionBlocks.h"
#include "runtime/kernels/cuda/AttentionFloat.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <type_traits>

namespace fsdp::rt {

namespace {

using namespace device;

using namespace device::floats;

constexpr float kInfinity = __builtin_huge_valf();

template <int D> constexpr int kColumns = D < 64 ? 1 : D / 64;
template <int D, int R> using Result = float[R / 16][kColumns<D>][4];

/// acc += weights * rows, where weight (r, s) is at weights[r * rowStride + s * columnStride].
template <int D, int R>
__device__ void timesRows(Place at, const float *weights, int rowStride, int columnStride,
                          const float *rows, Result<D, R> &acc) {
  if (4 * at.x >= D)
    return;
#pragma unroll 4
  for (int s = 0; s < R; ++s) {
    float weight[R / 16];
#pragma unroll
    for (int i = 0; i < R / 16; ++i)
      weight[i] = weights[(at.y + 16 * i) * rowStride + s * columnStride];
#pragma unroll
    for (int c = 0; c < kColumns<D>; ++c) {
      const float4 row =
          *reinterpret_cast<const float4 *>(rows + s * kStride<D> + 4 * at.x + 64 * c);
#pragma unroll
      for (int i = 0; i < R / 16; ++i) {
        acc[i][c][0] = fmaf(weight[i], row.x, acc[i][c][0]);
        acc[i][c][1] = fmaf(weight[i], row.y, acc[i][c][1]);
        acc[i][c][2] = fmaf(weight[i], row.z, acc[i][c][2]);
        acc[i][c][3] = fmaf(weight[i], row.w, acc[i][c][3]);
      }
    }
  }
}

/// Row y + 16 i of the block that begins with row `first` is multiplied by factor[i] and stored.
template <int D, int R>
__device__ void write(Place at, const Result<D, R> &acc, const float (&factor)[R / 16],
                      float *matrix, std::size_t stride, int first, std::size_t rows, int width) {
  if (4 * at.x >= D)
    return;
#pragma unroll
  for (int i = 0; i < R / 16; ++i)
    if (const std::size_t row = first + at.y + 16 * i; row < rows)
#pragma unroll
      for (int c = 0; c < kColumns<D>; ++c)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (const int column = 4 * at.x + 64 * c + e; column < width)
            matrix[row * stride + column] = acc[i][c][e] * factor[i];
}

/// Over the 16 threads of a row of the block, which are half of a warp.
template <class Op> __device__ float overRow(float value) {
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2)
    value = Op::apply(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

/// The blocks of R keys that any of the R queries from `first` on sees.
template <int R, bool kOptions>
__device__ inline Range keyBlocksOf(const AttentionShape &s, const Documents &docs, int first) {
  if constexpr (kOptions) {
    Range seen = keysOf(s, first, R);
    if (docs)
      seen = docs.narrow<kThreads>(
          {first + docs.offset, min(first + R, static_cast<int>(s.queries)) + docs.offset}, seen);
    return {seen.begin / R, ceilDiv(seen.end, R)};
  } else {
    return {0, keyBlocks(s, first, R, R)};
  }
}

template <int D, int R, bool kOptions, bool kBias>
__global__ void __launch_bounds__(kThreads)
    attend(AttentionShape s, int queryBlocks, const float *q, const float *k, const float *v,
           const float *bias, const std::int32_t *documents, float *out, float *logSumExp,
           const float *shifts) {
  FSDP_DYNAMIC_SHARED(float, qTile);
  float *kTileAt = qTile + kTile<D, R>, *vTile = kTileAt + kTile<D, R>,
        *weights = vTile + kTile<D, R>;
  const Place at;
  const int width = static_cast<int>(s.width), keys = static_cast<int>(s.keys);
  const Head head = headOf(s, blockIdx.x / queryBlocks);
  const int first = (queryBlocks - 1 - int(blockIdx.x % queryBlocks)) * R;
  fill<D, R>(qTile, q + head.q, s.q.row, first, s.queries, width);
  Result<D, R> acc = {};
  float tops[R / 16], sums[R / 16] = {};
#pragma unroll
  for (int i = 0; i < R / 16; ++i)
    tops[i] = -kInfinity;
  const Documents docs(s, kOptions ? documents : nullptr, blockIdx.x / queryBlocks);
  [[maybe_unused]] const HeadBias added(s, bias, shifts, documents, blockIdx.x / queryBlocks);
  const Range blocks = keyBlocksOf<R, kOptions>(s, docs, first);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    __syncthreads(); // the last block is no longer read
    fill<D, R>(kTileAt, k + head.k, s.k.row, block * R, keys, width);
    fill<D, R>(vTile, v + head.k, s.k.row, block * R, keys, width);
    __syncthreads();
    Scores<R> scores;
    rowsByRows<D, R>(at, qTile, kTileAt, scores);
#pragma unroll
    for (int i = 0; i < R / 16; ++i) {
      const int seen = keysSeen(s, first + at.y + 16 * i);
      float larger = tops[i];
#pragma unroll
      for (int j = 0; j < R / 16; ++j) {
        const int key = block * R + at.x + 16 * j;
        scores[i][j] = key < seen && key < keys ? scores[i][j] * s.scale : -kInfinity;
        if constexpr (kOptions) {
          const int query = first + at.y + 16 * i;
          if (s.softcap != 0 && scores[i][j] != -kInfinity)
            scores[i][j] = s.softcap * tanhf(scores[i][j] / s.softcap);
          if constexpr (kBias)
            scores[i][j] += added(query, key);
          if (key < firstSeen(s, query) || (docs && docs.at(key) != docs.ofQuery(query)))
            scores[i][j] = -kInfinity;
        }
        larger = fmaxf(larger, scores[i][j]);
      }
      larger = overRow<Larger>(larger);
      // A row that has seen nothing yet keeps -infinity, from which nothing may be subtracted.
      const float base = larger == -kInfinity ? 0.0f : larger, correction = expf(tops[i] - base);
      tops[i] = larger;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < R / 16; ++j) {
        const float weight = expf(scores[i][j] - base);
        sum += weight;
        weights[(at.y + 16 * i) * kScoreStride<R> + at.x + 16 * j] = weight;
      }
      sums[i] = sums[i] * correction + overRow<Plus>(sum);
#pragma unroll
      for (int c = 0; c < kColumns<D>; ++c)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          acc[i][c][e] *= correction;
    }
    __syncwarp(); // a warp reads the weights that it wrote
    timesRows<D, R>(at, weights, kScoreStride<R>, 1, vTile, acc);
  }
  float inverse[R / 16];
#pragma unroll
  for (int i = 0; i < R / 16; ++i) {
    inverse[i] = sums[i] == 0 ? 0.0f : 1 / sums[i];
    const int query = first + at.y + 16 * i;
    if (at.x == 0 && query < static_cast<int>(s.queries))
      logSumExp[head.sums + query] = sums[i] == 0 ? -kInfinity : logf(sums[i]) + tops[i];
  }
  write<D, R>(at, acc, inverse, out + head.out, s.out.row, first, s.queries, width);
}

struct Gradients {
  AttentionShape s;
  const float *q, *k, *v, *out, *logSumExp, *dOut;
  /// dOut . out of each query: written by queryGradients, read by keyGradients; see shiftsBehind
  float *along;
  float *dQ, *dK, *dV;
  const float *bias;             ///< or null
  const std::int32_t *documents; ///< or null
};

/// Of a block of queries and keys whose scores and dOut . v are given: probabilities, and the
/// gradients of the scores.
template <int R, bool kOptions, bool kBias>
__device__ inline void scoreGradients(const AttentionShape &s, const Documents &docs,
                                      const HeadBias &added, Place at, int firstQuery, int firstKey,
                                      const float *logSumExp, const float *along, Scores<R> &scores,
                                      Scores<R> &dScores) {
#pragma unroll
  for (int i = 0; i < R / 16; ++i) {
    const int query = firstQuery + at.y + 16 * i;
    const bool there = query < static_cast<int>(s.queries);
    const int seen = there ? keysSeen(s, query) : 0;
    const float sum = there ? logSumExp[query] : 0.0f, base = sum == -kInfinity ? 0.0f : sum;
    const float product = there ? along[query] : 0.0f;
#pragma unroll
    for (int j = 0; j < R / 16; ++j) {
      const int key = firstKey + at.x + 16 * j;
      bool sees = key < seen && key < static_cast<int>(s.keys);
      if constexpr (kOptions) {
        sees = sees && key >= firstSeen(s, query) && (!docs || docs.at(key) == docs.ofQuery(query));
        const float score = scores[i][j] * s.scale;
        const float cap = s.softcap != 0 ? tanhf(score / s.softcap) : 0.0f;
        float shift = base;
        if constexpr (kBias)
          shift = base - added(query, key);
        scores[i][j] = sees ? expf((s.softcap != 0 ? s.softcap * cap : score) - shift) : 0.0f;
        dScores[i][j] = s.scale * (1 - cap * cap) * scores[i][j] * (dScores[i][j] - product);
      } else {
        scores[i][j] = sees ? expf(scores[i][j] * s.scale - base) : 0.0f;
        dScores[i][j] = s.scale * scores[i][j] * (dScores[i][j] - product);
      }
    }
  }
}

template <int R> __device__ inline void keep(Place at, const Scores<R> &values, float *tile) {
#pragma unroll
  for (int i = 0; i < R / 16; ++i)
#pragma unroll
    for (int j = 0; j < R / 16; ++j)
      tile[(at.y + 16 * i) * kScoreStride<R> + at.x + 16 * j] = values[i][j];
}

template <int D, int R, bool kOptions, bool kBias>
__global__ void __launch_bounds__(kThreads) queryGradients(Gradients at, int queryBlocks) {
  FSDP_DYNAMIC_SHARED(float, qTile);
  float *dOutTile = qTile + kTile<D, R>, *kTileAt = dOutTile + kTile<D, R>,
        *vTile = kTileAt + kTile<D, R>, *weights = vTile + kTile<D, R>;
  const Place place;
  float ones[R / 16];
#pragma unroll
  for (float &one : ones)
    one = 1;
  const AttentionShape &s = at.s;
  const int width = static_cast<int>(s.width);
  const Head head = headOf(s, blockIdx.x / queryBlocks);
  const int first = (queryBlocks - 1 - int(blockIdx.x % queryBlocks)) * R;
  fill<D, R>(qTile, at.q + head.q, s.q.row, first, s.queries, width);
  fill<D, R>(dOutTile, at.dOut + head.out, s.out.row, first, s.queries, width);
  // Each of a row's threads, 4 or 8, has every 4th or 8th of its elements.
  constexpr int kPerRow = kThreads / R;
  const int row = threadIdx.x / kPerRow, query = first + row;
  float sum = 0;
  if (query < static_cast<int>(s.queries))
    for (int i = threadIdx.x % kPerRow; i < width; i += kPerRow) {
      const std::size_t element = head.out + query * s.out.row + i;
      sum = fmaf(at.out[element], at.dOut[element], sum);
    }
#pragma unroll
  for (int distance = 1; distance < kPerRow; distance *= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  __shared__ float alongs[R];
  if (threadIdx.x % kPerRow == 0) {
    alongs[row] = sum;
    if (query < static_cast<int>(s.queries))
      at.along[head.sums + query] = sum;
  }
  Result<D, R> acc = {};
  const Documents docs(s, kOptions ? at.documents : nullptr, blockIdx.x / queryBlocks);
  const HeadBias added(s, at.bias, shiftsBehind(s, at.along), at.documents,
                       blockIdx.x / queryBlocks);
  const Range blocks = keyBlocksOf<R, kOptions>(s, docs, first);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    __syncthreads();
    fill<D, R>(kTileAt, at.k + head.k, s.k.row, block * R, s.keys, width);
    fill<D, R>(vTile, at.v + head.k, s.k.row, block * R, s.keys, width);
    __syncthreads();
    Scores<R> scores, dScores;
    rowsByRows<D, R>(place, qTile, kTileAt, scores);
    rowsByRows<D, R>(place, dOutTile, vTile, dScores);
    scoreGradients<R, kOptions, kBias>(s, docs, added, place, first, block * R,
                                       at.logSumExp + head.sums, alongs - first, scores, dScores);
    keep<R>(place, dScores, weights);
    __syncwarp(); // a warp reads the weights that it wrote
    timesRows<D, R>(place, weights, kScoreStride<R>, 1, kTileAt, acc);
  }
  write<D, R>(place, acc, ones, at.dQ + head.q, s.q.row, first, s.queries, width);
}

template <int D, int R, bool kOptions, bool kBias>
__global__ void __launch_bounds__(kThreads) keyGradients(Gradients at, int keyBlocks) {
  FSDP_DYNAMIC_SHARED(float, kTileAt);
  float *vTile = kTileAt + kTile<D, R>, *qTile = vTile + kTile<D, R>,
        *dOutTile = qTile + kTile<D, R>, *weights = dOutTile + kTile<D, R>,
        *dWeights = weights + R * kScoreStride<R>;
  const Place place;
  float ones[R / 16];
#pragma unroll
  for (float &one : ones)
    one = 1;
  const AttentionShape &s = at.s;
  const int width = static_cast<int>(s.width), queries = static_cast<int>(s.queries);
  const std::size_t group = blockIdx.x / keyBlocks, shared = s.heads / s.groups;
  const int first = static_cast<int>(blockIdx.x % keyBlocks) * R;
  const std::size_t start = headOf(s, group * shared).k;
  fill<D, R>(kTileAt, at.k + start, s.k.row, first, s.keys, width);
  fill<D, R>(vTile, at.v + start, s.k.row, first, s.keys, width);
  Result<D, R> dK = {}, dV = {};
  const Documents docs(s, kOptions ? at.documents : nullptr, group * shared);
  Range walk = {firstQueryBlock(s, first, R) * R, queries};
  if constexpr (kOptions) {
    walk = queriesOf(s, first, R);
    if (docs)
      walk = docs.narrowQueries<kThreads>({first, min(first + R, static_cast<int>(s.keys))}, walk);
    walk.begin = walk.begin / R * R;
  }
  for (std::size_t number = group * shared; number < (group + 1) * shared; ++number) {
    const Head head = headOf(s, number);
    for (int from = walk.begin; from < walk.end; from += R) {
      __syncthreads();
      fill<D, R>(qTile, at.q + head.q, s.q.row, from, queries, width);
      fill<D, R>(dOutTile, at.dOut + head.out, s.out.row, from, queries, width);
      __syncthreads();
      Scores<R> scores, dScores;
      rowsByRows<D, R>(place, qTile, kTileAt, scores);
      rowsByRows<D, R>(place, dOutTile, vTile, dScores);
      scoreGradients<R, kOptions, kBias>(
          s, docs, HeadBias(s, at.bias, shiftsBehind(s, at.along), at.documents, number), place,
          from, first, at.logSumExp + head.sums, at.along + head.sums, scores, dScores);
      keep<R>(place, scores, weights);
      keep<R>(place, dScores, dWeights);
      __syncthreads();
      timesRows<D, R>(place, weights, 1, kScoreStride<R>, dOutTile, dV);
      timesRows<D, R>(place, dWeights, 1, kScoreStride<R>, qTile, dK);
    }
  }
  write<D, R>(place, dK, ones, at.dK + start, s.k.row, first, s.keys, width);
  write<D, R>(place, dV, ones, at.dV + start, s.k.row, first, s.keys, width);
}

template <int D, bool kOptions, bool kBias>
cudaError_t launch(const AttentionShape &s, const float *q, const float *k, const float *v,
                   const float *bias, const std::int32_t *documents, float *out, float *logSumExp,
                   const float *shifts, cudaStream_t stream) {
  return withRows<D, 3, 1>([&](auto rows, std::size_t bytes) {
    constexpr int R = decltype(rows)::value;
    const unsigned blocks = ceilDiv<unsigned>(s.queries, R);
    return launchKernel(attend<D, R, kOptions, kBias>, dim3(blocks * s.batch * s.heads), kThreads,
                        bytes, stream, s, blocks, q, k, v, bias, documents, out, logSumExp, shifts);
  });
}

template <int D, bool kOptions, bool kBias>
cudaError_t launchGrad(const Gradients &at, cudaStream_t stream) {
  const AttentionShape &s = at.s;
  if (cudaError_t status = withRows<D, 4, 1>([&](auto rows, std::size_t bytes) {
        constexpr int R = decltype(rows)::value;
        const unsigned blocks = ceilDiv<unsigned>(s.queries, R);
        return launchKernel(queryGradients<D, R, kOptions, kBias>, dim3(blocks * s.batch * s.heads),
                            kThreads, bytes, stream, at, blocks);
      }))
    return status;
  return withRows<D, 4, 2>([&](auto rows, std::size_t bytes) {
    constexpr int R = decltype(rows)::value;
    const unsigned blocks = ceilDiv<unsigned>(s.keys, R);
    return launchKernel(keyGradients<D, R, kOptions, kBias>, dim3(blocks * s.batch * s.groups),
                        kThreads, bytes, stream, at, blocks);
  });
}

/// Calls `run(std::integral_constant<int, D>(), whether there are options, and a bias)`.
template <class Run>
cudaError_t withKernels(const AttentionShape &s, const float *bias, const std::int32_t *documents,
                        Run run) {
  const auto ofWidth = [&](auto options, auto biased) {
    if (s.width <= 32)
      return run(std::integral_constant<int, 32>(), options, biased);
    if (s.width <= 64)
      return run(std::integral_constant<int, 64>(), options, biased);
    return run(std::integral_constant<int, 128>(), options, biased);
  };
  const std::true_type with;
  const std::false_type without;
  return bias                       ? ofWidth(with, with)
         : hasOptions(s, documents) ? ofWidth(with, without)
                                    : ofWidth(without, without);
}

} // namespace

cudaError_t attention(AttentionShape s, const float *q, const float *k, const float *v,
                      const float *bias, const std::int32_t *documents, float *out,
                      float *logSumExp, WorkStream stream) {
  s = placed(s);
  if (!takes(s))
    return cudaErrorInvalidValue;
  const float *shifts = nullptr;
  if (cudaError_t status = shiftsOf(s, bias, documents, shifts, stream))
    return status;
  return withKernels(s, bias, documents, [&](auto width, auto options, auto biased) {
    return launch<decltype(width)::value, decltype(options)::value, decltype(biased)::value>(
        s, q, k, v, bias, documents, out, logSumExp, shifts, stream);
  });
}

cudaError_t attention_grad(AttentionShape s, const float *q, const float *k, const float *v,
                           const float *bias, const std::int32_t *documents, const float *out,
                           const float *logSumExp, const float *dOut, float *dQ, float *dK,
                           float *dV, WorkStream stream) {
  s = placed(s);
  if (!takes(s))
    return cudaErrorInvalidValue;
  Gradients at = {s, q, k, v, out, logSumExp, dOut, nullptr, dQ, dK, dV, bias, documents};
  if (cudaError_t status = reserveRows(s, bias, documents, at.along, stream))
    return status;
  return withKernels(s, bias, documents, [&](auto width, auto options, auto biased) {
    return launchGrad<decltype(width)::value, decltype(options)::value, decltype(biased)::value>(
        at, stream);
  });
}

} // namespace fsdp::rt
