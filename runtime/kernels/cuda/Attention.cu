//===- Attention.cu - attention of bf16 by blocks, forward ----------------===//
//
// Flash-style (Dao, "FlashAttention-2", 2023): scores never leave the registers. A warp has 16 or
// 32 queries; keys and values come in blocks through two buffers in shared memory, filled in the
// background. Products are mma.sync, or wgmma on Hopper (AttentionProducts.h), with float sums.
//
// Floor: 4 b h q k w flops, half of it where causal, at the tensor cores' 990 Tflop/s. On an H200
// by wgmma, causal: batch 32, 12 heads of 64, 1024 positions 170 us, floor 52 us; 32 heads of 128
// in 8 groups, 8192 positions 1.14 ms, floor 0.56 ms (PyTorch's: 154 us, 0.90 ms). Tried without
// gain: the next block's scores multiplied while this block's are weighed.
//
// cuDNN's attention is the alternative for bf16, used where a run asks for it (FSDP_ATTENTION,
// CudnnGraph.h). These kernels are the default because they need neither a library nor scratch
// memory that is known at run time only, and because they run under the emulator, where each
// number is compared with the CPU's.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/kernels/cuda/AttentionBlocks.h"
#include "runtime/kernels/cuda/AttentionProducts.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <type_traits>

namespace fsdp::rt {

namespace {

using namespace device;

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

/// The factor by which scores are multiplied so that powers of two are taken of them instead of e:
/// positive, so that the largest score has the largest power, and never 0, as a masked key has the
/// score -infinity.
__device__ inline float scaleOfPowers(float scale) {
  const float magnitude = fabsf(scale * kLog2E);
  return magnitude < 1e-30f ? 1e-30f : magnitude;
}

/// Turns scores of two rows into powers of two of `scale` times their distance from the row's
/// largest so far, `tops`, and adds them to `sums`. Products accumulated over earlier blocks are to
/// be multiplied by `corrections`. `Biased`: a largest so far may be a masked key's score, of any
/// size, and is subtracted before the product with `scale` is rounded.
template <bool Biased, int N>
__device__ void weigh(float (&scores)[N][4], float scale, float (&tops)[2], float (&sums)[2],
                      float (&corrections)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float larger = tops[half];
#pragma unroll
    for (int n = 0; n < N; ++n)
      larger = fmaxf(larger, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
    larger = rowLargest(larger);
    // A row that has seen nothing yet keeps -infinity, from which nothing may be subtracted.
    const float base = larger == -kInfinity ? 0.0f : Biased ? larger : larger * scale;
    const auto power = [&](float score) {
      return powerOfTwo(Biased ? (score - base) * scale : fmaf(score, scale, -base));
    };
    corrections[half] = power(tops[half]);
    tops[half] = larger;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        scores[n][i] = power(scores[n][i]);
        sum += scores[n][i];
      }
    sums[half] = fmaf(sums[half], corrections[half], sum);
  }
}

template <int kTiles, int N>
__device__ void correct(float (&acc)[kTiles][N][4], const float (&corrections)[kTiles][2]) {
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        acc[m][n][i] *= corrections[m][i / 2];
}

/// Parameters of a block. Products: ByWarps or ByGroups; kTiles: how many times 16 queries a warp
/// has; kAtOnce: blocks of a multiprocessor, which bound a thread's registers.
template <class ProductsOf, int kWidth, int kTilesOf, int kWarpsOf, int kKeysOf, int kAtOnceOf>
struct Forward : WithoutOptions {
  using Products = ProductsOf;
  static constexpr int D = kWidth, kTiles = kTilesOf, kWarps = kWarpsOf, kKeys = kKeysOf,
                       kAtOnce = kAtOnceOf, kQueries = 16 * kTiles * kWarps, kThreads = 32 * kWarps;
  using QueryTile = SharedTile<D, kQueries>;
  using KeyTile = SharedTile<D, kKeys>;
  static constexpr std::size_t kElements = QueryTile::kElements + 4 * KeyTile::kElements;
};

/// Changes the sign of all numbers of a tile whose copies are under way: each thread of those that
/// it copies itself. All threads take part.
template <int D, int kRows> __device__ void negate(const SharedTile<D, kRows> &tile) {
  waitForCopies<0>();
  for (int chunk = threadIdx.x; chunk < kRows * (D / 8); chunk += blockDim.x) {
    uint4 &bits = *tile.at(chunk / (D / 8), chunk % (D / 8));
    bits.x ^= 0x80008000u, bits.y ^= 0x80008000u, bits.z ^= 0x80008000u, bits.w ^= 0x80008000u;
  }
}

template <class F>
__global__ void __launch_bounds__(F::kThreads, F::kAtOnce)
    attend(AttentionShape s, int queryBlocks, bool vectors, const bf16 *q, const bf16 *k,
           const bf16 *v, const float *bias, const std::int32_t *documents, bf16 *out,
           float *logSumExp, const float *shifts) {
  using Products = typename F::Products;
  using KeyTile = typename F::KeyTile;
  constexpr int D = F::D, kTiles = F::kTiles, kQueries = F::kQueries, kKeys = F::kKeys;
  constexpr bool kOptions = F::kOptions, kBias = F::kBias;
  if constexpr (!Products::kHere)
    return trap();
  FSDP_DYNAMIC_SHARED(bf16, memory);
  const typename F::QueryTile qTile(memory);
  const auto keyTile = [&](int block) {
    return KeyTile(memory + F::QueryTile::kElements + block % 2 * 2 * KeyTile::kElements);
  };
  const auto valueTile = [&](int block) {
    return KeyTile(memory + F::QueryTile::kElements + (block % 2 * 2 + 1) * KeyTile::kElements);
  };
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int width = static_cast<int>(s.width), keys = static_cast<int>(s.keys);
  const Head head = headOf(s, blockIdx.x / queryBlocks);
  // The longest rows first.
  const int first = (queryBlocks - 1 - int(blockIdx.x % queryBlocks)) * kQueries;
  const Documents docs(s, kOptions ? documents : nullptr, blockIdx.x / queryBlocks);
  int blocks = keyBlocks(s, first, kQueries, kKeys), block = 0;
  if constexpr (kOptions) {
    Range seen = keysOf(s, first, kQueries);
    if (docs)
      seen = docs.narrow<F::kThreads>(
          {first + docs.offset, min(first + kQueries, static_cast<int>(s.queries)) + docs.offset},
          seen);
    block = seen.begin / kKeys;
    blocks = ceilDiv(seen.end, kKeys);
  }

  const auto fetch = [&](int block) {
    const int from = block * kKeys;
    if (block < blocks) {
      keyTile(block).template fill<F::kThreads>(k + head.k, s.k.row, from, keys, width, vectors);
      valueTile(block).template fill<F::kThreads>(v + head.k, s.k.row, from, keys, width, vectors);
    }
    closeCopies();
  };
  qTile.template fill<F::kThreads>(q + head.q, s.q.row, first, s.queries, width, vectors);
  fetch(block);

  const int row = warp * 16 * kTiles; // of this warp's queries in the tile
  const typename Products::template Left<D, kQueries, kTiles> rows(qTile, row);
  const bool capped = kOptions && s.softcap != 0;
  // With a bias the scores are scaled before it is added.
  const float scale = kBias ? kLog2E : capped ? s.softcap * kLog2E : scaleOfPowers(s.scale);
  [[maybe_unused]] const HeadBias added(s, bias, shifts, documents, blockIdx.x / queryBlocks);
  if (s.scale < 0)
    negate(qTile);
  float sums[kTiles][2] = {}, tops[kTiles][2], corrections[kTiles][2], acc[kTiles][D / 8][4] = {};
  float scores[kTiles][kKeys / 8][4];
  std::uint32_t weights[kTiles][kKeys / 16][4];
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
    tops[m][0] = tops[m][1] = -kInfinity;

  // Turns the scores of a block of keys into their weights. `masked`: some of the queries do not
  // see some of the keys.
  const auto weighBlock = [&](int block, auto masked) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
      if constexpr (decltype(masked)::value) {
        const int upper = first + row + 16 * m + g;
        const int seen[2] = {min(keysSeen(s, upper), keys), min(keysSeen(s, upper + 8), keys)};
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (block * kKeys + 8 * n + 2 * t + i % 2 >= seen[i / 2])
              scores[m][n][i] = -kInfinity;
        if constexpr (kOptions) {
          const int hidden[2] = {firstSeen(s, upper), firstSeen(s, upper + 8)};
          const int ids[2] = {docs ? docs.ofQuery(upper) : 0, docs ? docs.ofQuery(upper + 8) : 0};
#pragma unroll
          for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
              const int key = block * kKeys + 8 * n + 2 * t + odd, id = docs ? docs.at(key) : 0;
#pragma unroll
              for (int half = 0; half < 2; ++half)
                if (key < hidden[half] || id != ids[half])
                  scores[m][n][2 * half + odd] = -kInfinity;
            }
        }
      }
      weigh<kBias>(scores[m], scale, tops[m], sums[m], corrections[m]);
    }
  };
  const auto step = [&](int block, auto mask) {
    // The copied data is visible to all threads, and the data overwritten next is no longer read.
    waitForCopies<0>();
    Products::publish();
    __syncthreads();
    fetch(block + 1);
    Products::rowsByRows(rows, keyTile(block), lane, scores);
    Products::commit();
    Products::template wait<0>(scores);
    if (capped) {
      const float factor = fabsf(s.scale) / s.softcap;
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            scores[m][n][i] = tanhf(scores[m][n][i] * factor);
    }
    if constexpr (kBias) {
      const float factor = capped ? s.softcap : fabsf(s.scale);
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            scores[m][n][i] = fmaf(
                scores[m][n][i], factor,
                added(first + row + 16 * m + g + i / 2 * 8, block * kKeys + 8 * n + 2 * t + i % 2));
    }
    weighBlock(block, mask);
    correct(acc, corrections);
    pack(scores, weights);
    Products::timesRows(weights, valueTile(block), lane, acc);
    Products::commit();
    Products::template wait<0>(acc);
  };
  // All queries see all keys of the blocks before.
  const int firstMasked = min(keys, keysSeen(s, first)) / kKeys;
  if constexpr (kOptions) {
    // The last query has the end of its window furthest on.
    const int unseen = firstSeen(s, first + kQueries - 1);
    for (; block < blocks; ++block)
      if (docs || block >= firstMasked || block * kKeys < unseen)
        step(block, std::true_type());
      else
        step(block, std::false_type());
  } else {
    for (; block < firstMasked; ++block)
      step(block, std::false_type());
    for (; block < blocks; ++block)
      step(block, std::true_type());
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
        logSumExp[head.sums + query] =
            sum == 0 ? -kInfinity : logf(sum) + tops[m][half] * (scale * kLn2);
    }
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
      qTile.put(row + 16 * m, n, lane, acc[m][n], inverse[0], inverse[1]);
    __syncwarp();
    qTile.drain(row + 16 * m, lane, out + head.out, s.out.row, first + row + 16 * m, s.queries,
                width, vectors);
  }
}

template <class F>
cudaError_t launch(const AttentionShape &s, const bf16 *q, const bf16 *k, const bf16 *v,
                   const float *bias, const std::int32_t *documents, bf16 *out, float *logSumExp,
                   const float *shifts, cudaStream_t stream) {
  const unsigned queryBlocks = ceilDiv<unsigned>(s.queries, F::kQueries);
  const bool vectors = inWholeParts(s, 8) && aligned16(q, k, v, out);
  noteVectors(vectors);
  return launchKernel(attend<F>, dim3(queryBlocks * s.batch * s.heads), F::kThreads,
                      F::kElements * sizeof(bf16), stream, s, queryBlocks, vectors, q, k, v, bias,
                      documents, out, logSumExp, shifts);
}

} // namespace

cudaError_t attention(AttentionShape s, const bf16 *q, const bf16 *k, const bf16 *v,
                      const float *bias, const std::int32_t *documents, bf16 *out, float *logSumExp,
                      WorkStream stream) {
  s = placed(s);
  if (!takes(s))
    return cudaErrorInvalidValue;
  const float *shifts = nullptr;
  if (cudaError_t status = shiftsOf(s, bias, documents, shifts, stream))
    return status;
  // The second blocks are those with options, the third those with a bias: these need more
  // registers.
  const auto run = [&](auto blocks, auto others, auto biased) {
    const auto with = [&](auto chosen) {
      return launch<decltype(chosen)>(s, q, k, v, bias, documents, out, logSumExp, shifts, stream);
    };
    return bias                       ? with(WithBias<decltype(biased)>())
           : hasOptions(s, documents) ? with(WithOptions<decltype(others)>())
                                      : with(blocks);
  };
  const auto runSame = [&](auto blocks) { return run(blocks, blocks, blocks); };
  if (s.width <= 32)
    return run(Forward<ByWarps, 32, 2, 4, 64, 1>(), Forward<ByWarps, 32, 2, 4, 64, 1>(),
               Forward<ByWarps, 32, 1, 4, 64, 1>());
  bool groups = false;
  if (cudaError_t status = hasWarpgroups(groups))
    return status;
  if (s.width <= 64)
    return groups ? run(Forward<ByGroups, 64, 1, 4, 64, 4>(), Forward<ByGroups, 64, 1, 4, 64, 3>(),
                        Forward<ByGroups, 64, 1, 4, 64, 2>())
                  : run(Forward<ByWarps, 64, 2, 4, 64, 1>(), Forward<ByWarps, 64, 2, 4, 64, 1>(),
                        Forward<ByWarps, 64, 1, 4, 64, 1>());
  return groups ? run(Forward<ByGroups, 128, 1, 12, 128, 1>(),
                      Forward<ByGroups, 128, 1, 8, 128, 1>(), Forward<ByGroups, 128, 1, 8, 64, 1>())
                : runSame(Forward<ByWarps, 128, 1, 4, 64, 1>());
}

} // namespace fsdp::rt
