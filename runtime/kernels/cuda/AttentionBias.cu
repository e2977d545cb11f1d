//===- AttentionBias.cu - shifts and gradient of the bias of attention ----===//
//
// Shifts: a warp reads the numbers of a row of the bias for the keys that a query sees, once for
// all kernels of a call.
//
// The gradient: a block owns the scores of some queries and keys of one head of the bias, and walks
// over the batch, and over the heads where the bias is one for all: each sum has one order.
// Probabilities are computed again, with mma.sync on every device: two products of the seven that
// the other gradients have. A kernel before them leaves each query's dOut . out in the workspace.
//
// Floor: 4 b h q k w flops, half of it where causal. Not measured on a GPU.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/kernels/cuda/AttentionBlocks.h"
#include "runtime/kernels/cuda/AttentionFloat.h"
#include "runtime/kernels/cuda/AttentionProducts.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <type_traits>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr float kInfinity = __builtin_huge_valf();

template <class T> struct BiasGradient {
  AttentionShape s;
  const T *q, *k, *v, *dOut;
  const float *bias, *logSumExp, *along; ///< along: dOut . out of each query; see shiftsBehind
  float *dBias;
  bool vectors;
  const std::int32_t *documents; ///< or null
};

/// The scores that a block owns, and the heads that it sums over.
struct Owned {
  int firstQuery, firstKey;
  std::size_t head;  ///< of the bias
  int heads, number; ///< heads with this bias; of them and the batch: how many score these keys
  std::size_t at;    ///< of the bias, where the head's begins

  __device__ Owned(const AttentionShape &s, int rows, int columns) {
    const int queryBlocks = (static_cast<int>(s.queries) + rows - 1) / rows,
              keyBlocks = (static_cast<int>(s.keys) + columns - 1) / columns;
    const int block = static_cast<int>(blockIdx.x);
    firstKey = block % keyBlocks * columns;
    firstQuery = block / keyBlocks % queryBlocks * rows;
    head = static_cast<std::size_t>(block / keyBlocks / queryBlocks);
    heads = s.bias == 0 ? static_cast<int>(s.heads) : 1;
    at = head * s.bias;
    const Range seen = keysOf(s, firstQuery, rows);
    number = firstKey < seen.end && firstKey + columns > seen.begin
                 ? static_cast<int>(s.batch) * heads
                 : 0;
  }
  /// Among batch * heads.
  __device__ std::size_t numberOf(const AttentionShape &s, int step) const {
    return static_cast<std::size_t>(step / heads) * s.heads + head +
           static_cast<std::size_t>(step % heads);
  }
};

/// The gradient of one score, from the product of its query and key, and that of dOut and the
/// value.
template <class T>
__device__ inline float gradientOf(const BiasGradient<T> &at, const HeadBias &bias,
                                   const Documents &docs, std::size_t sums, int query, int key,
                                   float score, float dWeight) {
  const AttentionShape &s = at.s;
  if (query >= static_cast<int>(s.queries) || key >= static_cast<int>(s.keys) ||
      key >= keysSeen(s, query) || key < firstSeen(s, query) ||
      (docs && docs.at(key) != docs.ofQuery(query)))
    return 0;
  const float sum = at.logSumExp[sums + query], base = sum == -kInfinity ? 0.0f : sum;
  score *= s.scale;
  if (s.softcap != 0)
    score = s.softcap * tanhf(score / s.softcap);
  return expf(score + (bias(query, key) - base)) * (dWeight - at.along[sums + query]);
}

//===----------------------------------------------------------------------===//
// bf16
//===----------------------------------------------------------------------===//

template <int kWidth> struct NarrowBlocks {
  static constexpr int D = kWidth, kRows = 64, kThreads = 128;
  using Tile = SharedTile<D, kRows>;
  static constexpr std::size_t kBytes = 4 * Tile::kElements * sizeof(bf16);
};

template <class B>
__global__ void __launch_bounds__(B::kThreads, 2) biasGradients(BiasGradient<bf16> at) {
  using Tile = typename B::Tile;
  constexpr int D = B::D, kRows = B::kRows, N = kRows / 8;
  const AttentionShape &s = at.s;
  FSDP_DYNAMIC_SHARED(bf16, memory);
  const Tile q(memory), k(memory + Tile::kElements), v(memory + 2 * Tile::kElements),
      dOut(memory + 3 * Tile::kElements);
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16, g = lane / 4, t = lane % 4;
  const int width = static_cast<int>(s.width), queries = static_cast<int>(s.queries),
            keys = static_cast<int>(s.keys);
  const Owned own(s, kRows, kRows);
  const ByWarps::Left<D, kRows, 1> queryRows(q, row), dOutRows(dOut, row);
  float acc[N][4] = {};
  for (int step = 0; step < own.number; ++step) {
    const std::size_t number = own.numberOf(s, step);
    const Head head = headOf(s, number);
    __syncthreads(); // the last operands are no longer read
    q.template fill<B::kThreads>(at.q + head.q, s.q.row, own.firstQuery, queries, width,
                                 at.vectors);
    k.template fill<B::kThreads>(at.k + head.k, s.k.row, own.firstKey, keys, width, at.vectors);
    v.template fill<B::kThreads>(at.v + head.k, s.k.row, own.firstKey, keys, width, at.vectors);
    dOut.template fill<B::kThreads>(at.dOut + head.out, s.out.row, own.firstQuery, queries, width,
                                    at.vectors);
    closeCopies();
    waitForCopies<0>();
    __syncthreads();
    float scores[1][N][4], dWeights[1][N][4];
    ByWarps::rowsByRows(queryRows, k, lane, scores);
    ByWarps::rowsByRows(dOutRows, v, lane, dWeights);
    const HeadBias bias(s, at.bias, shiftsBehind(s, at.along), at.documents, number);
    const Documents docs(s, at.documents, number);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        acc[n][i] +=
            gradientOf(at, bias, docs, head.sums, own.firstQuery + row + g + i / 2 * 8,
                       own.firstKey + 8 * n + 2 * t + i % 2, scores[0][n][i], dWeights[0][n][i]);
  }
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int query = own.firstQuery + row + g + i / 2 * 8,
                key = own.firstKey + 8 * n + 2 * t + i % 2;
      if (query < queries && key < keys)
        at.dBias[own.at + std::size_t(query) * keys + key] = acc[n][i];
    }
}

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

template <int D, int R>
__global__ void __launch_bounds__(floats::kThreads) biasGradients(BiasGradient<float> at) {
  using namespace floats;
  constexpr int n = R / 16;
  FSDP_DYNAMIC_SHARED(float, q);
  float *k = q + kTile<D, R>, *v = k + kTile<D, R>, *dOut = v + kTile<D, R>;
  const AttentionShape &s = at.s;
  const Place place;
  const int width = static_cast<int>(s.width);
  const Owned own(s, R, R);
  Scores<R> acc = {};
  for (int step = 0; step < own.number; ++step) {
    const std::size_t number = own.numberOf(s, step);
    const Head head = headOf(s, number);
    __syncthreads();
    fill<D, R>(q, at.q + head.q, s.q.row, own.firstQuery, s.queries, width);
    fill<D, R>(k, at.k + head.k, s.k.row, own.firstKey, s.keys, width);
    fill<D, R>(v, at.v + head.k, s.k.row, own.firstKey, s.keys, width);
    fill<D, R>(dOut, at.dOut + head.out, s.out.row, own.firstQuery, s.queries, width);
    __syncthreads();
    Scores<R> scores, dWeights;
    rowsByRows<D, R>(place, q, k, scores);
    rowsByRows<D, R>(place, dOut, v, dWeights);
    const HeadBias bias(s, at.bias, shiftsBehind(s, at.along), at.documents, number);
    const Documents docs(s, at.documents, number);
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
      for (int j = 0; j < n; ++j)
        acc[i][j] += gradientOf(at, bias, docs, head.sums, own.firstQuery + place.y + 16 * i,
                                own.firstKey + place.x + 16 * j, scores[i][j], dWeights[i][j]);
  }
#pragma unroll
  for (int i = 0; i < n; ++i)
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const std::size_t query = own.firstQuery + place.y + 16 * i,
                        key = own.firstKey + place.x + 16 * j;
      if (query < s.queries && key < s.keys)
        at.dBias[own.at + query * s.keys + key] = acc[i][j];
    }
}

/// How many blocks of `rows` by `columns` scores the bias has.
unsigned blocksOf(const AttentionShape &s, unsigned rows, unsigned columns) {
  return (s.bias == 0 ? 1 : s.heads) * ceilDiv<unsigned>(s.queries, rows) *
         ceilDiv<unsigned>(s.keys, columns);
}

template <int D> cudaError_t launch(const BiasGradient<bf16> &at, cudaStream_t stream) {
  using B = NarrowBlocks<D>;
  return launchKernel(biasGradients<B>, dim3(blocksOf(at.s, B::kRows, B::kRows)), B::kThreads,
                      B::kBytes, stream, at);
}
template <int D> cudaError_t launch(const BiasGradient<float> &at, cudaStream_t stream) {
  return floats::withRows<D, 4, 0>([&](auto rows, std::size_t bytes) {
    constexpr int R = decltype(rows)::value;
    return launchKernel(biasGradients<D, R>, dim3(blocksOf(at.s, R, R)), floats::kThreads, bytes,
                        stream, at);
  });
}

template <class T>
cudaError_t biasGradient(const AttentionShape &s, const T *q, const T *k, const T *v,
                         const float *bias, const std::int32_t *documents, const T *out,
                         const float *logSumExp, const T *dOut, float *dBias, WorkStream stream) {
  if (!takes(s))
    return cudaErrorInvalidValue;
  float *along = nullptr;
  if (cudaError_t status = launchRowProducts(s, dOut, out, bias, documents, along, stream))
    return status;
  // Floats are read one by one.
  const bool vectors = sizeof(T) == 2 && inWholeParts(s, 8) && aligned16(q, k, v, dOut);
  if (sizeof(T) == 2)
    noteVectors(vectors);
  const BiasGradient<T> at = {s, q, k, v, dOut, bias, logSumExp, along, dBias, vectors, documents};
  return s.width <= 32   ? launch<32>(at, stream)
         : s.width <= 64 ? launch<64>(at, stream)
                         : launch<128>(at, stream);
}

/// A warp has a row.
__global__ void __launch_bounds__(256)
    biasShifts(AttentionShape s, std::size_t rows, const float *bias, const std::int32_t *documents,
               float *shifts) {
  const std::size_t row = blockIdx.x * std::size_t(8) + threadIdx.x / kWarp;
  if (row >= rows)
    return;
  const std::size_t number = row / s.queries;
  const int query = static_cast<int>(row % s.queries), keys = static_cast<int>(s.keys),
            end = min(keysSeen(s, query), keys);
  const float *at = bias + number % s.heads * s.bias + std::size_t(query) * s.keys;
  const Documents docs(s, documents, number);
  const std::int32_t own = docs ? docs.ofQuery(query) : 0;
  float top = -kInfinity;
  for (int key = firstSeen(s, query) + static_cast<int>(threadIdx.x % kWarp); key < end;
       key += kWarp)
    if (!docs || docs.at(key) == own)
      top = fmaxf(top, at[key]);
  top = warpReduce<Larger>(top);
  if (threadIdx.x % kWarp == 0)
    shifts[row] = top == -kInfinity ? 0.0f : top;
}

} // namespace

cudaError_t device::launchShifts(const AttentionShape &s, const float *bias,
                                 const std::int32_t *documents, float *shifts,
                                 cudaStream_t stream) {
  const std::size_t rows = shiftedHeads(s, documents) * s.queries;
  return launchKernel(biasShifts, dim3(static_cast<unsigned>(ceilDiv<std::size_t>(rows, 8))), 256,
                      0, stream, s, rows, bias, documents, shifts);
}

#define ATTEND_BIAS_GRAD(T)                                                                        \
  cudaError_t attention_bias_grad(AttentionShape s, const T *q, const T *k, const T *v,            \
                                  const float *bias, const std::int32_t *documents, const T *out,  \
                                  const float *logSumExp, const T *dOut, float *dBias,             \
                                  WorkStream stream) {                                             \
    s = placed(s);                                                                                 \
    return biasGradient(s, q, k, v, bias, documents, out, logSumExp, dOut, dBias, stream);         \
  }
ATTEND_BIAS_GRAD(float)
ATTEND_BIAS_GRAD(bf16)
#undef ATTEND_BIAS_GRAD

} // namespace fsdp::rt
