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
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <type_traits>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr int kThreads = 256;
/// Rows of a block, of queries or keys: R in what follows.
constexpr int kRows = 64, kFewRows = 32;
template <int R> constexpr int kScoreStride = R + 4;
constexpr float kInfinity = __builtin_huge_valf();

/// R rows of D floats in shared memory; four more keep the 16-byte parts of eight rows in
/// different banks.
template <int D> constexpr int kStride = D + 4;
template <int D, int R> constexpr int kTile = R * kStride<D>;

/// Copies rows [first, first + R) of `matrix`; all else becomes zero.
template <int D, int R>
__device__ void fill(float *tile, const float *matrix, std::size_t stride, int first,
                     std::size_t rows, int width) {
  for (int i = threadIdx.x; i < R * D; i += kThreads) {
    const int row = i / D, column = i % D;
    const bool there = std::size_t(first + row) < rows && column < width;
    tile[row * kStride<D> + column] =
        there ? matrix[std::size_t(first + row) * stride + column] : 0.0f;
  }
}

/// A thread's place: rows y, y + 16, ... and columns x, x + 16, ... of scores; of results of width
/// D the same rows and columns 4 x to 4 x + 3, 64 further on again.
struct Place {
  int x, y;
  __device__ Place() : x(threadIdx.x % 16), y(threadIdx.x / 16) {}
};
template <int D> constexpr int kColumns = D < 64 ? 1 : D / 64;
template <int D, int R> using Result = float[R / 16][kColumns<D>][4];
template <int R> using Scores = float[R / 16][R / 16];

/// out[i][j] = row y + 16 i of `a` times row x + 16 j of `b`.
template <int D, int R>
__device__ void rowsByRows(Place at, const float *a, const float *b, Scores<R> &out) {
  constexpr int n = R / 16;
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < n; ++j)
      out[i][j] = 0;
#pragma unroll 2
  for (int d = 0; d < D; d += 4) {
    float4 left[n], right[n];
#pragma unroll
    for (int i = 0; i < n; ++i) {
      left[i] = *reinterpret_cast<const float4 *>(a + (at.y + 16 * i) * kStride<D> + d);
      right[i] = *reinterpret_cast<const float4 *>(b + (at.x + 16 * i) * kStride<D> + d);
    }
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
      for (int j = 0; j < n; ++j) {
        float sum = fmaf(left[i].x, right[j].x, out[i][j]);
        sum = fmaf(left[i].y, right[j].y, sum);
        sum = fmaf(left[i].z, right[j].z, sum);
        out[i][j] = fmaf(left[i].w, right[j].w, sum);
      }
  }
}

/// acc += weights * rows, where weight (r, s) stands at weights[r * rowStride + s * columnStride].
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

template <int D, int R, bool kOptions>
__global__ void __launch_bounds__(kThreads)
    attend(AttentionShape s, int queryBlocks, const float *q, const float *k, const float *v,
           const std::int32_t *documents, float *out, float *logSumExp) {
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
  const Range blocks = keyBlocksOf<R, kOptions>(s, docs, first);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    __syncthreads(); // nobody reads the last block any more
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
  float *along; ///< dOut . out of each query: written by queryGradients, read by keyGradients
  float *dQ, *dK, *dV;
  const std::int32_t *documents; ///< or null
};

/// Of a block of queries and keys whose scores and dOut . v are given: probabilities, and the
/// gradients of the scores.
template <int R, bool kOptions>
__device__ inline void scoreGradients(const AttentionShape &s, const Documents &docs, Place at,
                                      int firstQuery, int firstKey, const float *logSumExp,
                                      const float *along, Scores<R> &scores, Scores<R> &dScores) {
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
        scores[i][j] = sees ? expf((s.softcap != 0 ? s.softcap * cap : score) - base) : 0.0f;
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

template <int D, int R, bool kOptions>
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
  const Range blocks = keyBlocksOf<R, kOptions>(s, docs, first);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    __syncthreads();
    fill<D, R>(kTileAt, at.k + head.k, s.k.row, block * R, s.keys, width);
    fill<D, R>(vTile, at.v + head.k, s.k.row, block * R, s.keys, width);
    __syncthreads();
    Scores<R> scores, dScores;
    rowsByRows<D, R>(place, qTile, kTileAt, scores);
    rowsByRows<D, R>(place, dOutTile, vTile, dScores);
    scoreGradients<R, kOptions>(s, docs, place, first, block * R, at.logSumExp + head.sums,
                                alongs - first, scores, dScores);
    keep<R>(place, dScores, weights);
    __syncwarp(); // a warp reads the weights that it wrote
    timesRows<D, R>(place, weights, kScoreStride<R>, 1, kTileAt, acc);
  }
  write<D, R>(place, acc, ones, at.dQ + head.q, s.q.row, first, s.queries, width);
}

template <int D, int R, bool kOptions>
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
      scoreGradients<R, kOptions>(s, docs, place, from, first, at.logSumExp + head.sums,
                                  at.along + head.sums, scores, dScores);
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

/// Bytes of `tiles` tiles and `scores` blocks of scores.
template <int D, int R> constexpr std::size_t sharedBytes(int tiles, int scores) {
  return (tiles * kTile<D, R> + scores * R * kScoreStride<R>)*sizeof(float);
}

/// Calls `launch(std::integral_constant<int, R>(), bytes)`, R the rows of a block for which the
/// device has shared memory. What fits every device with kRows (99 KiB, of which 1 is for what is
/// static) has no smaller kernel.
template <int D, int Tiles, int Scores, class Launch> cudaError_t withRows(Launch launch) {
  constexpr std::size_t kStatic = 1024, bytes = sharedBytes<D, kRows>(Tiles, Scores);
  if constexpr (bytes + kStatic > 99 * 1024) {
    int device = 0, most = 0;
    if (cudaError_t status = cudaGetDevice(&device))
      return status;
    if (cudaError_t status =
            cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device))
      return status;
    if (bytes + kStatic > static_cast<std::size_t>(most))
      return launch(std::integral_constant<int, kFewRows>(),
                    sharedBytes<D, kFewRows>(Tiles, Scores));
  }
  return launch(std::integral_constant<int, kRows>(), bytes);
}

template <int D, bool kOptions>
cudaError_t launch(const AttentionShape &s, const float *q, const float *k, const float *v,
                   const std::int32_t *documents, float *out, float *logSumExp,
                   cudaStream_t stream) {
  return withRows<D, 3, 1>([&](auto rows, std::size_t bytes) {
    constexpr int R = decltype(rows)::value;
    const unsigned blocks = ceilDiv<unsigned>(s.queries, R);
    return launchKernel(attend<D, R, kOptions>, dim3(blocks * s.batch * s.heads), kThreads, bytes,
                        stream, s, blocks, q, k, v, documents, out, logSumExp);
  });
}

template <int D, bool kOptions> cudaError_t launchGrad(const Gradients &at, cudaStream_t stream) {
  const AttentionShape &s = at.s;
  if (cudaError_t status = withRows<D, 4, 1>([&](auto rows, std::size_t bytes) {
        constexpr int R = decltype(rows)::value;
        const unsigned blocks = ceilDiv<unsigned>(s.queries, R);
        return launchKernel(queryGradients<D, R, kOptions>, dim3(blocks * s.batch * s.heads),
                            kThreads, bytes, stream, at, blocks);
      }))
    return status;
  return withRows<D, 4, 2>([&](auto rows, std::size_t bytes) {
    constexpr int R = decltype(rows)::value;
    const unsigned blocks = ceilDiv<unsigned>(s.keys, R);
    return launchKernel(keyGradients<D, R, kOptions>, dim3(blocks * s.batch * s.groups), kThreads,
                        bytes, stream, at, blocks);
  });
}

/// Calls `run(std::integral_constant<int, D>(), std::bool_constant<kOptions>())`.
template <class Run>
cudaError_t withKernels(const AttentionShape &s, const std::int32_t *documents, Run run) {
  const auto ofWidth = [&](auto options) {
    if (s.width <= 32)
      return run(std::integral_constant<int, 32>(), options);
    if (s.width <= 64)
      return run(std::integral_constant<int, 64>(), options);
    return run(std::integral_constant<int, 128>(), options);
  };
  return hasOptions(s, documents) ? ofWidth(std::true_type()) : ofWidth(std::false_type());
}

} // namespace

cudaError_t attention(AttentionShape s, const float *q, const float *k, const float *v,
                      const std::int32_t *documents, float *out, float *logSumExp,
                      cudaStream_t stream) {
  if (!takes(s))
    return cudaErrorInvalidValue;
  return withKernels(s, documents, [&](auto width, auto options) {
    return launch<decltype(width)::value, decltype(options)::value>(s, q, k, v, documents, out,
                                                                    logSumExp, stream);
  });
}

cudaError_t attention_grad(AttentionShape s, const float *q, const float *k, const float *v,
                           const std::int32_t *documents, const float *out, const float *logSumExp,
                           const float *dOut, float *dQ, float *dK, float *dV, WorkStream stream) {
  if (!takes(s))
    return cudaErrorInvalidValue;
  Gradients at = {s, q, k, v, out, logSumExp, dOut, nullptr, dQ, dK, dV, documents};
  const std::size_t rows = std::size_t(s.batch) * s.heads * s.queries;
  if (cudaError_t status = stream.workspace->reserve(rows * sizeof(float), at.along))
    return status;
  return withKernels(s, documents, [&](auto width, auto options) {
    return launchGrad<decltype(width)::value, decltype(options)::value>(at, stream);
  });
}

cudaError_t attention(AttentionShape s, const float *q, const float *k, const float *v, float *out,
                      float *logSumExp, cudaStream_t stream) {
  return attention(s, q, k, v, nullptr, out, logSumExp, stream);
}

cudaError_t attention_grad(AttentionShape s, const float *q, const float *k, const float *v,
                           const float *out, const float *logSumExp, const float *dOut, float *dQ,
                           float *dK, float *dV, WorkStream stream) {
  return attention_grad(s, q, k, v, nullptr, out, logSumExp, dOut, dQ, dK, dV, stream);
}

#define PACKED(T)                                                                                  \
  cudaError_t attention(AttentionShape shape, const T *qkv, const std::int32_t *documents, T *out, \
                        float *logSumExp, cudaStream_t stream) {                                   \
    return attention(shape, qkv, qkv + shape.part, qkv + 2 * shape.part, documents, out,           \
                     logSumExp, stream);                                                           \
  }                                                                                                \
  cudaError_t attention_grad(AttentionShape shape, const T *qkv, const std::int32_t *documents,    \
                             const T *out, const float *logSumExp, const T *dOut, T *dQkv,         \
                             WorkStream stream) {                                                  \
    const std::size_t part = shape.part;                                                           \
    return attention_grad(shape, qkv, qkv + part, qkv + 2 * part, documents, out, logSumExp, dOut, \
                          dQkv, dQkv + part, dQkv + 2 * part, stream);                             \
  }                                                                                                \
  cudaError_t attention(AttentionShape shape, const T *qkv, T *out, float *logSumExp,              \
                        cudaStream_t stream) {                                                     \
    return attention(shape, qkv, nullptr, out, logSumExp, stream);                                 \
  }                                                                                                \
  cudaError_t attention_grad(AttentionShape shape, const T *qkv, const T *out,                     \
                             const float *logSumExp, const T *dOut, T *dQkv, WorkStream stream) {  \
    return attention_grad(shape, qkv, nullptr, out, logSumExp, dOut, dQkv, stream);                \
  }
PACKED(float)
PACKED(bf16)
#undef PACKED

} // namespace fsdp::rt
