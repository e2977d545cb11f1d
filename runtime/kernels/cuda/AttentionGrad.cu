//===- AttentionGrad.cu - attention of bf16 by blocks, gradients ----------===//
//
// Two kernels, each owning what it writes, so that no sum depends on the order of blocks: one has
// queries and walks over keys (dQ), the other has keys and walks over queries and over the heads of
// the group (dK and dV). Probabilities are computed again in both: seven products of blocks where a
// kernel with atomics on dQ needs five, which is what reproducible bits cost. A third, before them,
// leaves each query's dOut . out in the workspace.
//
// Floor: 10 b h q k w flops (five products), half of it where causal, at 990 Tflop/s: 130 us for
// batch 32, 12 heads of 64, 1024 positions, causal; of these kernels, with seven products at the
// rate of mma.sync, 0.8 to 0.9 ms by estimate. See Attention.cu for what they are made of.
//
// The keys' kernel computes its scores transposed (keys are rows), so that probabilities and their
// gradients are, as they lie in the registers, operands of the next products in both.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/AttentionBlocks.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Mma.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr int kWarps = 4,
              kOwned = 16 * kWarps; ///< rows of a block: queries of one kernel, keys of the other
constexpr float kLog2E = 1.44269504f;
constexpr float kInfinity = __builtin_huge_valf();

/// Rows that are walked over, at a time: registers for their scores are what bounds it.
template <int D> constexpr int kWalked = D <= 64 ? 64 : 32;

struct Gradients {
  AttentionShape s;
  const bf16 *q, *k, *v, *dOut;
  const float *logSumExp, *along; ///< along: dOut . out of each query
  bf16 *dQ, *dK, *dV;
  bool vectors;
};

/// Two blocks of a 16-row operand, side by side, as an operand a.
__device__ inline void pack(const float (&left)[4], const float (&right)[4],
                            std::uint32_t (&a)[4]) {
  a[0] = bf16Pair(left[0], left[1]);
  a[1] = bf16Pair(left[2], left[3]);
  a[2] = bf16Pair(right[0], right[1]);
  a[3] = bf16Pair(right[2], right[3]);
}

/// out[n] = a[row ...] * b[8 n ...]^T over D columns, for 16 rows of `a` and 8 N rows of `b`.
template <int D, int N>
__device__ void rowsByRows(const SharedTile<D> &a, int row, const SharedTile<D> &b, int lane,
                           float (&out)[N][4]) {
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    std::uint32_t left[4], right[4];
    a.loadA(row, step, lane, left);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      b.loadB(8 * n, step, lane, right);
      multiplyAdd(out[n], left, right[0], right[1]);
      multiplyAdd(out[n + 1], left, right[2], right[3]);
    }
  }
}

/// acc += a * b for a 16 x 8 N matrix `a` in registers and 8 N rows of `b`.
template <int D, int N>
__device__ void timesRows(const float (&a)[N][4], const SharedTile<D> &b, int lane,
                          float (&acc)[D / 8][4]) {
#pragma unroll
  for (int n = 0; n < N; n += 2) {
    std::uint32_t left[4], right[4];
    pack(a[n], a[n + 1], left);
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      b.loadRows(8 * n, step, lane, right);
      multiplyAdd(acc[2 * step], left, right[0], right[1]);
      multiplyAdd(acc[2 * step + 1], left, right[2], right[3]);
    }
  }
}

template <int D>
__device__ void write(const SharedTile<D> &tile, int row, int lane, const float (&acc)[D / 8][4],
                      bf16 *matrix, std::size_t stride, int first, std::size_t rows, int width,
                      bool vectors) {
#pragma unroll
  for (int n = 0; n < D / 8; ++n)
    tile.put(row, n, lane, acc[n], 1, 1);
  __syncwarp();
  tile.drain(row, lane, matrix, stride, first + row, rows, width, vectors);
}

__global__ void __launch_bounds__(256)
    rowProducts(AttentionShape s, std::size_t rows, const bf16 *a, const bf16 *b, float *sums) {
  const std::size_t row = blockIdx.x * std::size_t(8) + threadIdx.x / kWarp;
  if (row >= rows)
    return;
  const std::size_t start = headOf(s, row / s.queries).out + row % s.queries * s.out.row;
  float sum = 0;
  for (unsigned i = threadIdx.x % kWarp; i < s.width; i += kWarp)
    sum = fmaf(toFloat(a[start + i]), toFloat(b[start + i]), sum);
  sum = warpReduce<Plus>(sum);
  if (threadIdx.x % kWarp == 0)
    sums[row] = sum;
}

template <int D>
__global__ void __launch_bounds__(kWarps * 32) queryGradients(Gradients at, int queryBlocks) {
  constexpr int kKeys = kWalked<D>, N = kKeys / 8;
  const AttentionShape &s = at.s;
  FSDP_DYNAMIC_SHARED(bf16, memory);
  const SharedTile<D> qTile(memory), dOutTile(memory + kOwned * D);
  const auto keyTile = [&](int stage) {
    return SharedTile<D>(memory + (2 * kOwned + 2 * kKeys * stage) * D);
  };
  const auto valueTile = [&](int stage) {
    return SharedTile<D>(memory + (2 * kOwned + 2 * kKeys * stage + kKeys) * D);
  };
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16, g = lane / 4, t = lane % 4;
  const int width = static_cast<int>(s.width), keys = static_cast<int>(s.keys);
  const Head head = headOf(s, blockIdx.x / queryBlocks);
  const int first = (queryBlocks - 1 - int(blockIdx.x % queryBlocks)) * kOwned;
  const int blocks = keyBlocks(s, first, kOwned, kKeys);
  const auto fetch = [&](int block) {
    const int from = block * kKeys, stage = block % 2;
    keyTile(stage).template fill<kKeys>(at.k + head.k, s.k.row, from, keys, width, at.vectors);
    valueTile(stage).template fill<kKeys>(at.v + head.k, s.k.row, from, keys, width, at.vectors);
  };
  qTile.template fill<kOwned>(at.q + head.q, s.q.row, first, s.queries, width, at.vectors);
  dOutTile.template fill<kOwned>(at.dOut + head.out, s.out.row, first, s.queries, width,
                                 at.vectors);
  if (blocks > 0)
    fetch(0);
  closeCopies();

  float base[2] = {}, along[2] = {};
  int seen[2] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (const int query = first + row + g + 8 * half; query < static_cast<int>(s.queries)) {
      const float sum = at.logSumExp[head.sums + query];
      base[half] = sum == -kInfinity ? 0.0f : sum * kLog2E;
      along[half] = at.along[head.sums + query];
      seen[half] = keysSeen(s, query) < keys ? keysSeen(s, query) : keys;
    }
  float acc[D / 8][4] = {};
  for (int block = 0; block < blocks; ++block) {
    if (block + 1 < blocks)
      fetch(block + 1);
    closeCopies();
    waitForCopies<1>();
    __syncthreads();
    float scores[N][4] = {}, dScores[N][4] = {};
    rowsByRows(qTile, row, keyTile(block % 2), lane, scores);
    rowsByRows(dOutTile, row, valueTile(block % 2), lane, dScores);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float p = powerOfTwo(scores[n][i] * (s.scale * kLog2E) - base[i / 2]);
        dScores[n][i] = s.scale * p * (dScores[n][i] - along[i / 2]);
      }
    // Few blocks have keys that some of the queries do not see.
    const int end = block * kKeys + kKeys;
    if (end > keys || end > keysSeen(s, first))
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (block * kKeys + 8 * n + 2 * t + i % 2 >= seen[i / 2])
            dScores[n][i] = 0;
    timesRows<D, N>(dScores, keyTile(block % 2), lane, acc);
    __syncthreads(); // before the buffer is filled again
  }
  waitForCopies<0>();
  __syncthreads();
  write<D>(qTile, row, lane, acc, at.dQ + head.q, s.q.row, first, s.queries, width, at.vectors);
}

template <int D>
__global__ void __launch_bounds__(kWarps * 32) keyGradients(Gradients at, int keyBlocks) {
  constexpr int kQueries = kWalked<D>, N = kQueries / 8;
  const AttentionShape &s = at.s;
  FSDP_DYNAMIC_SHARED(bf16, memory);
  __shared__ float bases[2][kQueries];
  __shared__ float alongs[2][kQueries];
  const SharedTile<D> kTile(memory), vTile(memory + kOwned * D);
  const auto queryTile = [&](int stage) {
    return SharedTile<D>(memory + (2 * kOwned + 2 * kQueries * stage) * D);
  };
  const auto dOutTile = [&](int stage) {
    return SharedTile<D>(memory + (2 * kOwned + 2 * kQueries * stage + kQueries) * D);
  };
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16, g = lane / 4, t = lane % 4;
  const int width = static_cast<int>(s.width), queries = static_cast<int>(s.queries);
  const int group = static_cast<int>(blockIdx.x) / keyBlocks;
  const int first = static_cast<int>(blockIdx.x) % keyBlocks * kOwned;
  const int shared = static_cast<int>(s.heads / s.groups);
  const std::size_t firstHead = static_cast<std::size_t>(group) * shared;
  const std::size_t keysAt = headOf(s, firstHead).k;

  // The walk: blocks of queries of one head after another.
  const int firstBlock = firstQueryBlock(s, first, kQueries);
  const int lastBlock = (queries + kQueries - 1) / kQueries;
  const int each = lastBlock > firstBlock ? lastBlock - firstBlock : 0, blocks = each * shared;
  const auto firstOf = [&](int block) { return (firstBlock + block % each) * kQueries; };
  const auto fetch = [&](int block) {
    const Head head = headOf(s, firstHead + block / each);
    const int from = firstOf(block), stage = block % 2;
    queryTile(stage).template fill<kQueries>(at.q + head.q, s.q.row, from, queries, width,
                                             at.vectors);
    dOutTile(stage).template fill<kQueries>(at.dOut + head.out, s.out.row, from, queries, width,
                                            at.vectors);
    for (int r = threadIdx.x; r < kQueries; r += blockDim.x) {
      const bool there = from + r < queries;
      const float sum = there ? at.logSumExp[head.sums + from + r] : 0.0f;
      bases[stage][r] = sum == -kInfinity ? 0.0f : sum * kLog2E;
      alongs[stage][r] = there ? at.along[head.sums + from + r] : 0.0f;
    }
  };
  kTile.template fill<kOwned>(at.k + keysAt, s.k.row, first, s.keys, width, at.vectors);
  vTile.template fill<kOwned>(at.v + keysAt, s.k.row, first, s.keys, width, at.vectors);
  if (blocks > 0)
    fetch(0);
  closeCopies();

  float dK[D / 8][4] = {}, dV[D / 8][4] = {};
  for (int block = 0; block < blocks; ++block) {
    if (block + 1 < blocks)
      fetch(block + 1);
    closeCopies();
    waitForCopies<1>();
    __syncthreads();
    const int stage = block % 2, from = firstOf(block);
    float p[N][4] = {}, dScores[N][4] = {};
    rowsByRows(kTile, row, queryTile(stage), lane, p);
    rowsByRows(vTile, row, dOutTile(stage), lane, dScores);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 8 * n + 2 * t + i % 2;
        p[n][i] = powerOfTwo(p[n][i] * (s.scale * kLog2E) - bases[stage][column]);
        dScores[n][i] = s.scale * p[n][i] * (dScores[n][i] - alongs[stage][column]);
      }
    // Few blocks have queries that do not see some of the keys.
    if (from + kQueries > queries || first + kOwned > keysSeen(s, from))
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = first + row + g + i / 2 * 8, query = from + 8 * n + 2 * t + i % 2;
          if (query >= queries || key >= keysSeen(s, query))
            p[n][i] = dScores[n][i] = 0;
        }
    timesRows<D, N>(p, dOutTile(stage), lane, dV);
    timesRows<D, N>(dScores, queryTile(stage), lane, dK);
    __syncthreads(); // before the buffer is filled again
  }
  waitForCopies<0>();
  __syncthreads();
  write<D>(kTile, row, lane, dK, at.dK + keysAt, s.k.row, first, s.keys, width, at.vectors);
  write<D>(vTile, row, lane, dV, at.dV + keysAt, s.k.row, first, s.keys, width, at.vectors);
}

template <int D> cudaError_t launch(const Gradients &at, cudaStream_t stream) {
  const AttentionShape &s = at.s;
  constexpr std::size_t kShared = (2 * kOwned + 4 * kWalked<D>)*D * sizeof(bf16);
  const unsigned queryBlocks = ceilDiv<unsigned>(s.queries, kOwned),
                 keyBlocks = ceilDiv<unsigned>(s.keys, kOwned);
  if (cudaError_t status = launchKernel(queryGradients<D>, dim3(queryBlocks * s.batch * s.heads),
                                        kWarps * 32, kShared, stream, at, queryBlocks))
    return status;
  return launchKernel(keyGradients<D>, dim3(keyBlocks * s.batch * s.groups), kWarps * 32, kShared,
                      stream, at, keyBlocks);
}

} // namespace

cudaError_t attention_grad(AttentionShape s, const bf16 *q, const bf16 *k, const bf16 *v,
                           const bf16 *out, const float *logSumExp, const bf16 *dOut, bf16 *dQ,
                           bf16 *dK, bf16 *dV, WorkStream stream) {
  if (!takes(s))
    return cudaErrorInvalidValue;
  const std::size_t rows = std::size_t(s.batch) * s.heads * s.queries;
  float *along = nullptr;
  if (cudaError_t status = stream.workspace->reserve(rows * sizeof(float), along))
    return status;
  if (cudaError_t status =
          launchKernel(rowProducts, dim3(static_cast<unsigned>(ceilDiv<std::size_t>(rows, 8))), 256,
                       0, stream, s, rows, dOut, out, along))
    return status;
  const Gradients at = {s,
                        q,
                        k,
                        v,
                        dOut,
                        logSumExp,
                        along,
                        dQ,
                        dK,
                        dV,
                        inWholeParts(s, 8) && aligned16(q, k, v, dOut, dQ, dK, dV)};
  noteVectors(at.vectors);
  if (s.width <= 32)
    return launch<32>(at, stream);
  if (s.width <= 64)
    return launch<64>(at, stream);
  return launch<128>(at, stream);
}

} // namespace fsdp::rt
