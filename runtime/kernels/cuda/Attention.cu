//===- Attention.cu - attention of bf16 by blocks, forward ----------------===//
//
// Flash-style (Dao, "FlashAttention-2", 2023): scores never leave the registers. A warp has 16 or
// 32 queries; keys and values come in blocks of 64 through two buffers in shared memory, filled in
// the background. Products are mma.sync m16n8k16 with float sums.
//
// Floor: 4 b h q k w flops, half of it where causal, at the tensor cores' 990 Tflop/s; for batch
// 32, 12 heads of 64, 1024 positions, causal: 52 us. mma.sync reaches about 60 % of that rate on
// Hopper: the rest needs wgmma, which these kernels do not use. Bytes: 2 (2 q + 2 k) w b h, 42 us
// for the same.
//
// cuDNN's attention is the alternative for bf16 and would be faster. It is not used because
// its 9.19 has no causal mask in the unified node (9.21 has), so that the composite graph would be
// needed; because neither its order of sums in the backward pass nor its availability is ours; and
// because these sources run under the emulator, where each number is compared with the CPU's.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/AttentionBlocks.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Mma.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr int kWarps = 4, kKeys = 64;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;
constexpr float kInfinity = __builtin_huge_valf();

/// The largest or the sum over the four lanes that share a row.
__device__ inline float rowLargest(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float rowSum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// kTiles: how many times 16 queries a warp has.
template <int D, int kTiles>
__global__ void __launch_bounds__(kWarps * 32)
    attend(AttentionShape s, int queryBlocks, bool vectors, const bf16 *q, const bf16 *k,
           const bf16 *v, bf16 *out, float *logSumExp) {
  constexpr int kQueries = 16 * kTiles * kWarps, kSteps = D / 16;
  FSDP_DYNAMIC_SHARED(bf16, memory);
  const SharedTile<D> qTile(memory);
  const auto keyTile = [&](int stage) {
    return SharedTile<D>(memory + (kQueries + 2 * kKeys * stage) * D);
  };
  const auto valueTile = [&](int stage) {
    return SharedTile<D>(memory + (kQueries + 2 * kKeys * stage + kKeys) * D);
  };
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int width = static_cast<int>(s.width), keys = static_cast<int>(s.keys);
  const Head head = headOf(s, blockIdx.x / queryBlocks);
  // The longest rows first.
  const int first = (queryBlocks - 1 - int(blockIdx.x % queryBlocks)) * kQueries;
  const int blocks = keyBlocks(s, first, kQueries, kKeys);

  const auto fetch = [&](int block) {
    const int from = block * kKeys, stage = block % 2;
    keyTile(stage).template fill<kKeys>(k + head.k, s.k.row, from, keys, width, vectors);
    valueTile(stage).template fill<kKeys>(v + head.k, s.k.row, from, keys, width, vectors);
  };
  qTile.template fill<kQueries>(q + head.q, s.q.row, first, s.queries, width, vectors);
  if (blocks > 0)
    fetch(0);
  closeCopies();

  const int row = warp * 16 * kTiles; // of this warp's queries in the tile
  float sums[kTiles][2] = {}, tops[kTiles][2], acc[kTiles][2 * kSteps][4] = {};
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
    tops[m][0] = tops[m][1] = -kInfinity;
  const float scale = s.scale * kLog2E; // powers of two instead of e

  for (int block = 0; block < blocks; ++block) {
    if (block + 1 < blocks)
      fetch(block + 1);
    closeCopies();
    waitForCopies<1>();
    __syncthreads();
    const SharedTile<D> kTile = keyTile(block % 2), vTile = valueTile(block % 2);

    float scores[kTiles][kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      std::uint32_t a[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
        qTile.loadA(row + 16 * m, step, lane, a[m]);
#pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        std::uint32_t b[4];
        kTile.loadB(8 * n, step, lane, b);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiplyAdd(scores[m][n], a[m], b[0], b[1]);
          multiplyAdd(scores[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }

    // Few blocks have keys that some of the queries do not see.
    const int end = block * kKeys + kKeys;
    const bool whole = end <= keys && end <= keysSeen(s, first);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scores[m][n][i] *= scale;
      if (!whole) {
        const int upper = first + row + 16 * m + g;
        const int seen[2] = {min(keysSeen(s, upper), keys), min(keysSeen(s, upper + 8), keys)};
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (block * kKeys + 8 * n + 2 * t + i % 2 >= seen[i / 2])
              scores[m][n][i] = -kInfinity;
      }
      float larger[2] = {tops[m][0], tops[m][1]};
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          larger[i / 2] = fmaxf(larger[i / 2], scores[m][n][i]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        larger[half] = rowLargest(larger[half]);
        // A row that has seen nothing yet keeps -infinity, from which nothing may be subtracted.
        const float base = larger[half] == -kInfinity ? 0.0f : larger[half];
        const float correction = powerOfTwo(tops[m][half] - base);
        tops[m][half] = larger[half];
        sums[m][half] *= correction;
#pragma unroll
        for (int n = 0; n < 2 * kSteps; ++n) {
          acc[m][n][2 * half] *= correction;
          acc[m][n][2 * half + 1] *= correction;
        }
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            scores[m][n][i] = powerOfTwo(scores[m][n][i] - base);
            sums[m][half] += scores[m][n][i];
          }
      }
    }

#pragma unroll
    for (int j = 0; j < kKeys / 16; ++j) {
      // Two blocks of scores are, as they lie in the registers, one operand a.
      std::uint32_t p[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          p[m][i] = bf16Pair(scores[m][2 * j + i / 2][i % 2 * 2],
                             scores[m][2 * j + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        std::uint32_t b[4];
        vTile.loadRows(16 * j, step, lane, b);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiplyAdd(acc[m][2 * step], p[m], b[0], b[1]);
          multiplyAdd(acc[m][2 * step + 1], p[m], b[2], b[3]);
        }
      }
    }
    __syncthreads(); // before the buffer is filled again
  }

  // Through the warp's own rows of the queries' tile, to write whole rows.
  waitForCopies<0>();
  __syncthreads();
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = rowSum(sums[m][half]);
      inverse[half] = sum > 0 ? 1 / sum : (sum == 0 ? 0.0f : sum); // a NaN stays one
      const int query = first + row + 16 * m + g + 8 * half;
      if (t == 0 && query < static_cast<int>(s.queries))
        logSumExp[head.sums + query] = sum == 0 ? -kInfinity : logf(sum) + tops[m][half] * kLn2;
    }
#pragma unroll
    for (int n = 0; n < 2 * kSteps; ++n)
      qTile.put(row + 16 * m, n, lane, acc[m][n], inverse[0], inverse[1]);
    __syncwarp();
    qTile.drain(row + 16 * m, lane, out + head.out, s.out.row, first + row + 16 * m, s.queries,
                width, vectors);
  }
}

template <int D, int kTiles>
cudaError_t launch(const AttentionShape &s, const bf16 *q, const bf16 *k, const bf16 *v, bf16 *out,
                   float *logSumExp, cudaStream_t stream) {
  constexpr int kQueries = 16 * kTiles * kWarps;
  const unsigned queryBlocks = ceilDiv<unsigned>(s.queries, kQueries);
  const bool vectors = inWholeParts(s, 8) && aligned16(q, k, v, out);
  noteVectors(vectors);
  return launchKernel(attend<D, kTiles>, dim3(queryBlocks * s.batch * s.heads), kWarps * 32,
                      (kQueries + 4 * kKeys) * D * sizeof(bf16), stream, s, queryBlocks, vectors, q,
                      k, v, out, logSumExp);
}

} // namespace

cudaError_t attention(AttentionShape s, const bf16 *q, const bf16 *k, const bf16 *v, bf16 *out,
                      float *logSumExp, cudaStream_t stream) {
  if (!takes(s))
    return cudaErrorInvalidValue;
  if (s.width <= 32)
    return launch<32, 2>(s, q, k, v, out, logSumExp, stream);
  if (s.width <= 64)
    return launch<64, 2>(s, q, k, v, out, logSumExp, stream);
  return launch<128, 1>(s, q, k, v, out, logSumExp, stream);
}

} // namespace fsdp::rt
