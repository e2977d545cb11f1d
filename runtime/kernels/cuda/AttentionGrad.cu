//===- AttentionGrad.cu - attention of bf16 by blocks, gradients ----------===//
//
// Two kernels, whose blocks own the gradients that they write, so that no sum depends on the order
// of blocks: in one they have queries and walk over keys (dQ), in the other they have keys and walk
// over queries and over the heads of the group (dK and dV). Probabilities are computed again in
// both: seven products of blocks instead of five in a kernel with atomics on dQ, the cost of
// reproducible bits. A third kernel, before them, writes each query's dOut . out to the workspace.
//
// Floor: 10 b h q k w flops (five products), half of it where causal, at 990 Tflop/s. On an H200 by
// wgmma, causal: batch 32, 12 heads of 64, 1024 positions 0.61 ms, floor 0.13 ms; 32 heads of 128
// in 8 groups, 8192 positions 3.94 ms, floor 1.39 ms (PyTorch's: 0.52 ms, 2.64 ms).
//
// The keys' kernel computes its scores transposed (keys are rows), so that probabilities and their
// gradients are, as they lie in the registers, operands of the next products in both.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/kernels/cuda/AttentionBlocks.h"
#include "runtime/kernels/cuda/AttentionProducts.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr float kLog2E = 1.44269504f;
constexpr float kInfinity = __builtin_huge_valf();

/// Parameters of a block: kOwned rows, queries of one kernel, keys of the other; kWalked rows at a
/// time that it walks over, bounded by the registers for their scores. Products: ByWarps or
/// ByGroups; kAtOnce: blocks of a multiprocessor, which bound a thread's registers (shared memory
/// may bound them, too).
template <class ProductsOf, int kWidth, int kWarpsOf, int kWalkedOf, int kAtOnceOf>
struct Backward : WithoutOptions {
  using Products = ProductsOf;
  static constexpr int D = kWidth, kWarps = kWarpsOf, kWalked = kWalkedOf, kAtOnce = kAtOnceOf,
                       kOwned = 16 * kWarps, kThreads = 32 * kWarps;
  using Owned = SharedTile<D, kOwned>;
  using Walked = SharedTile<D, kWalked>;
  using Left = typename Products::template Left<D, kOwned, 1>;
  static constexpr std::size_t kElements = 2 * Owned::kElements + 4 * Walked::kElements;

  /// Tiles of the walk, of one of two stages.
  __device__ static Walked walked(bf16 *memory, int stage, int which) {
    return Walked(memory + 2 * Owned::kElements + (2 * stage + which) * Walked::kElements);
  }
};

struct Gradients {
  AttentionShape s;
  const bf16 *q, *k, *v, *dOut;
  const float *logSumExp, *along; ///< along: dOut . out of each query; see shiftsBehind
  bf16 *dQ, *dK, *dV;
  bool vectors;
  const float *bias;             ///< or null
  const std::int32_t *documents; ///< or null
};

template <int D, int kRows>
__device__ void write(const SharedTile<D, kRows> &tile, int row, int lane,
                      const float (&acc)[D / 8][4], float factor, bf16 *matrix, std::size_t stride,
                      int first, std::size_t rows, int width, bool vectors) {
#pragma unroll
  for (int n = 0; n < D / 8; ++n)
    tile.put(row, n, lane, acc[n], factor, factor);
  __syncwarp();
  tile.drain(row, lane, matrix, stride, first + row, rows, width, vectors);
}

template <class B>
__global__ void __launch_bounds__(B::kThreads, B::kAtOnce)
    queryGradients(Gradients at, int queryBlocks) {
  using Products = typename B::Products;
  constexpr int D = B::D, kOwned = B::kOwned, kKeys = B::kWalked, N = kKeys / 8;
  const AttentionShape &s = at.s;
  if constexpr (!Products::kHere)
    return trap();
  FSDP_DYNAMIC_SHARED(bf16, memory);
  const typename B::Owned qTile(memory), dOutTile(memory + B::Owned::kElements);
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16, g = lane / 4, t = lane % 4;
  const int width = static_cast<int>(s.width), keys = static_cast<int>(s.keys);
  const Head head = headOf(s, blockIdx.x / queryBlocks);
  const int first = (queryBlocks - 1 - int(blockIdx.x % queryBlocks)) * kOwned;
  const Documents docs(s, B::kOptions ? at.documents : nullptr, blockIdx.x / queryBlocks);
  int blocks = keyBlocks(s, first, kOwned, kKeys), firstBlock = 0;
  if constexpr (B::kOptions) {
    Range seen = keysOf(s, first, kOwned);
    if (docs)
      seen = docs.narrow<B::kThreads>(
          {first + docs.offset, min(first + kOwned, static_cast<int>(s.queries)) + docs.offset},
          seen);
    firstBlock = seen.begin / kKeys;
    blocks = ceilDiv(seen.end, kKeys);
  }
  const auto fetch = [&](int block) {
    const int from = block * kKeys, stage = block % 2;
    B::walked(memory, stage, 0)
        .template fill<B::kThreads>(at.k + head.k, s.k.row, from, keys, width, at.vectors);
    B::walked(memory, stage, 1)
        .template fill<B::kThreads>(at.v + head.k, s.k.row, from, keys, width, at.vectors);
  };
  qTile.template fill<B::kThreads>(at.q + head.q, s.q.row, first, s.queries, width, at.vectors);
  dOutTile.template fill<B::kThreads>(at.dOut + head.out, s.out.row, first, s.queries, width,
                                      at.vectors);
  if (blocks > firstBlock)
    fetch(firstBlock);
  closeCopies();
  const typename B::Left queryRows(qTile, row), dOutRows(dOutTile, row);
  // How many keys the first and the last of the queries see that are multiplied together.
  const int together = first + row / Products::kRowsTogether * Products::kRowsTogether;
  const int seenByFirst = keysSeen(s, together),
            seenByLast = keysSeen(s, together + Products::kRowsTogether - 1);

  // The first key in the window of the last query, where all windows have begun, and in that of the
  // first.
  const int unseenByLast = B::kOptions ? firstSeen(s, together + Products::kRowsTogether - 1) : 0,
            unseenByFirst = B::kOptions ? firstSeen(s, together) : 0;
  const bool capped = B::kOptions && s.softcap != 0;
  [[maybe_unused]] const HeadBias added(s, at.bias, shiftsBehind(s, at.along), at.documents,
                                        blockIdx.x / queryBlocks);

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
  float acc[1][D / 8][4] = {};
  for (int block = firstBlock; block < blocks; ++block) {
    // After the barrier all threads see the copied tiles, and none reads the tiles overwritten
    // next.
    waitForCopies<0>();
    Products::publish();
    __syncthreads();
    if (block + 1 < blocks)
      fetch(block + 1);
    closeCopies();
    const int from = block * kKeys;
    if (from >= seenByLast)
      continue;
    if (B::kOptions && from + kKeys <= unseenByFirst)
      continue;
    const typename B::Walked kTile = B::walked(memory, block % 2, 0);
    float scores[1][N][4], dScores[1][N][4];
    Products::rowsByRows(queryRows, kTile, lane, scores);
    Products::commit();
    Products::rowsByRows(dOutRows, B::walked(memory, block % 2, 1), lane, dScores);
    Products::commit();
    Products::template wait<1>(scores);
    const auto shiftOf = [&](int n, int i) {
      if constexpr (B::kBias)
        return fmaf(added(first + row + g + i / 2 * 8, from + 8 * n + 2 * t + i % 2), kLog2E,
                    -base[i / 2]);
      return -base[i / 2];
    };
    // Capped, the derivative of the cap is a factor of the gradients of scores, as probabilities
    // are.
    if (capped)
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float cap = tanhf(scores[0][n][i] * (s.scale / s.softcap));
          scores[0][n][i] =
              powerOfTwo(fmaf(cap, s.softcap * kLog2E, shiftOf(n, i))) * (1 - cap * cap);
        }
    else
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scores[0][n][i] = powerOfTwo(fmaf(scores[0][n][i], s.scale * kLog2E, shiftOf(n, i)));
    // Few blocks have keys to which some of the queries do not attend.
    if (from + kKeys > keys || from + kKeys > seenByFirst)
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (from + 8 * n + 2 * t + i % 2 >= seen[i / 2])
            scores[0][n][i] = 0;
    if constexpr (B::kOptions)
      if (docs || from < unseenByLast)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int query = first + row + g + 8 * half, hidden = firstSeen(s, query);
          const int own = docs ? docs.ofQuery(query) : 0;
#pragma unroll
          for (int n = 0; n < N; ++n)
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
              const int key = from + 8 * n + 2 * t + odd;
              if (key < hidden || (docs && docs.at(key) != own))
                scores[0][n][2 * half + odd] = 0;
            }
        }
    Products::settle(scores);
    Products::template wait<0>(dScores);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        dScores[0][n][i] = scores[0][n][i] * (dScores[0][n][i] - along[i / 2]);
    std::uint32_t packed[1][N / 2][4];
    pack(dScores, packed);
    Products::timesRows(packed, kTile, lane, acc);
    Products::commit();
    Products::template wait<0>(acc);
  }
  waitForCopies<0>();
  __syncthreads();
  write(qTile, row, lane, acc[0], s.scale, at.dQ + head.q, s.q.row, first, s.queries, width,
        at.vectors);
}

template <class B>
__global__ void __launch_bounds__(B::kThreads, B::kAtOnce)
    keyGradients(Gradients at, int keyBlocks) {
  using Products = typename B::Products;
  constexpr int D = B::D, kOwned = B::kOwned, kQueries = B::kWalked, N = kQueries / 8;
  const AttentionShape &s = at.s;
  if constexpr (!Products::kHere)
    return trap();
  FSDP_DYNAMIC_SHARED(bf16, memory);
  __shared__ float sums[2][kQueries];
  __shared__ float alongs[2][kQueries];
  const typename B::Owned kTile(memory), vTile(memory + B::Owned::kElements);
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16, g = lane / 4, t = lane % 4;
  const int width = static_cast<int>(s.width), queries = static_cast<int>(s.queries);
  const int group = static_cast<int>(blockIdx.x) / keyBlocks;
  const int first = static_cast<int>(blockIdx.x) % keyBlocks * kOwned;
  const int shared = static_cast<int>(s.heads / s.groups);
  const std::size_t firstHead = static_cast<std::size_t>(group) * shared;
  Head head = headOf(s, firstHead);
  const std::size_t keysAt = head.k;

  [[maybe_unused]] const bool capped = B::kOptions && s.softcap != 0;
  // The walk: blocks of queries of one head after another, from the first that sees a key.
  const Documents docs(s, B::kOptions ? at.documents : nullptr, firstHead);
  int firstQuery = firstQueryBlock(s, first, kQueries) * kQueries, endQuery = queries;
  if constexpr (B::kOptions) {
    Range seen = queriesOf(s, first, kOwned);
    if (docs)
      seen = docs.narrowQueries<B::kThreads>({first, min(first + kOwned, static_cast<int>(s.keys))},
                                             seen);
    firstQuery = seen.begin / kQueries * kQueries;
    endQuery = seen.end;
  }
  const int each = firstQuery < endQuery ? (endQuery - firstQuery + kQueries - 1) / kQueries : 0;
  const int blocks = each * shared;
  int from = firstQuery, next = firstQuery; // of the block at hand, and of the one to be fetched
  const auto fetch = [&](int stage) {
    B::walked(memory, stage, 0)
        .template fill<B::kThreads>(at.q + head.q, s.q.row, next, queries, width, at.vectors);
    B::walked(memory, stage, 1)
        .template fill<B::kThreads>(at.dOut + head.out, s.out.row, next, queries, width,
                                    at.vectors);
    static_assert(2 * kQueries <= B::kThreads, "each thread copies at most one number");
    if (const int r = static_cast<int>(threadIdx.x) % kQueries; threadIdx.x < 2 * kQueries) {
      const bool second = threadIdx.x >= kQueries, there = next + r < queries;
      const float *numbers = second ? at.along : at.logSumExp;
      copyInBackground<4>(second ? &alongs[stage][r] : &sums[stage][r],
                          numbers + head.sums + next + r, there);
    }
    next += kQueries;
    if (next >= endQuery) {
      next = firstQuery;
      head.q += s.q.head, head.out += s.out.head, head.sums += s.queries;
    }
  };
  kTile.template fill<B::kThreads>(at.k + keysAt, s.k.row, first, s.keys, width, at.vectors);
  vTile.template fill<B::kThreads>(at.v + keysAt, s.k.row, first, s.keys, width, at.vectors);
  if (blocks > 0)
    fetch(0);
  closeCopies();
  const typename B::Left keyRows(kTile, row), valueRows(vTile, row);
  const int together = first + row / Products::kRowsTogether * Products::kRowsTogether;

  float dK[1][D / 8][4] = {}, dV[1][D / 8][4] = {};
  for (int block = 0; block < blocks;
       ++block, from = from + kQueries < endQuery ? from + kQueries : firstQuery) {
    // After the barrier all threads see the copied tiles, and none reads the tiles overwritten
    // next.
    waitForCopies<0>();
    Products::publish();
    __syncthreads();
    if (block + 1 < blocks)
      fetch((block + 1) % 2);
    closeCopies();
    const int stage = block % 2;
    if (together >= keysSeen(s, from + kQueries - 1))
      continue;
    if (B::kOptions && together + Products::kRowsTogether <= firstSeen(s, from))
      continue;
    const typename B::Walked qTile = B::walked(memory, stage, 0),
                             dOutTile = B::walked(memory, stage, 1);
    float p[1][N][4], dScores[1][N][4];
    Products::rowsByRows(keyRows, qTile, lane, p);
    Products::commit();
    Products::rowsByRows(valueRows, dOutTile, lane, dScores);
    Products::commit();
    Products::template wait<1>(p);
    std::uint32_t packed[1][N / 2][4], packedScores[1][N / 2][4];
    if constexpr (B::kOptions) {
      [[maybe_unused]] const HeadBias added(s, at.bias, shiftsBehind(s, at.along), at.documents,
                                            firstHead + static_cast<std::size_t>(block / each));
      // One after the other, so that the derivatives of the cap need no registers.
      int sees[2], end[2], own[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = first + row + g + 8 * half;
        sees[half] = firstToSee(s, key), end[half] = endOfWindow(s, key);
        own[half] = docs ? docs.at(key) : 0;
      }
#pragma unroll
      for (int n = 0; n < N; ++n) {
        float slopes[4];
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const int query = from + 8 * n + 2 * t + odd, id = docs ? docs.ofQuery(query) : 0;
          float base = sums[stage][8 * n + 2 * t + odd] * kLog2E;
          if (B::kBias && base == -kInfinity) // a bias of -infinity hides all keys
            base = 0;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int i = 2 * half + odd;
            float power = p[0][n][i] * (s.scale * kLog2E);
            slopes[i] = 1;
            if (capped) {
              const float cap = tanhf(p[0][n][i] * (s.scale / s.softcap));
              power = cap * (s.softcap * kLog2E), slopes[i] = 1 - cap * cap;
            }
            if constexpr (B::kBias)
              power = fmaf(added(query, first + row + g + 8 * half), kLog2E, power);
            // A query that sees none of the keys has no base.
            const bool isSeen = query >= sees[half] && query < end[half] && id == own[half];
            p[0][n][i] = isSeen ? powerOfTwo(power - base) : 0.0f;
          }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half)
          packed[0][n / 2][n % 2 * 2 + half] = bf16Pair(p[0][n][2 * half], p[0][n][2 * half + 1]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          p[0][n][i] *= slopes[i];
      }
    } else {
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const float base = sums[stage][8 * n + 2 * t + odd] * kLog2E;
#pragma unroll
          for (int i = odd; i < 4; i += 2)
            p[0][n][i] = powerOfTwo(fmaf(p[0][n][i], s.scale * kLog2E, -base));
        }
      // Few blocks have queries that do not see some of the keys; one that sees none has no base.
      if (from + kQueries > queries || together + Products::kRowsTogether > keysSeen(s, from))
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int key = first + row + g + 8 * half;
          const int seesIt = min(firstToSee(s, key), queries); // and so do all behind
#pragma unroll
          for (int n = 0; n < N; ++n)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i)
              if (const int query = from + 8 * n + 2 * t + i % 2;
                  unsigned(query - seesIt) >= unsigned(queries - seesIt))
                p[0][n][i] = 0;
        }
      pack(p, packed);
    }
    Products::timesRows(packed, dOutTile, lane, dV);
    Products::commit();
    Products::template wait<1>(dScores);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        dScores[0][n][i] = p[0][n][i] * (dScores[0][n][i] - alongs[stage][8 * n + 2 * t + i % 2]);
    pack(dScores, packedScores);
    Products::timesRows(packedScores, qTile, lane, dK);
    Products::commit();
    Products::template wait<0>(dV, dK);
  }
  waitForCopies<0>();
  __syncthreads();
  write(kTile, row, lane, dK[0], s.scale, at.dK + keysAt, s.k.row, first, s.keys, width,
        at.vectors);
  write(vTile, row, lane, dV[0], 1, at.dV + keysAt, s.k.row, first, s.keys, width, at.vectors);
}

template <class Queries, class Keys> cudaError_t launch(const Gradients &at, cudaStream_t stream) {
  const AttentionShape &s = at.s;
  const unsigned queryBlocks = ceilDiv<unsigned>(s.queries, Queries::kOwned),
                 keyBlocks = ceilDiv<unsigned>(s.keys, Keys::kOwned);
  if (cudaError_t status = launchKernel(queryGradients<Queries>,
                                        dim3(queryBlocks * s.batch * s.heads), Queries::kThreads,
                                        Queries::kElements * sizeof(bf16), stream, at, queryBlocks))
    return status;
  return launchKernel(keyGradients<Keys>, dim3(keyBlocks * s.batch * s.groups), Keys::kThreads,
                      Keys::kElements * sizeof(bf16), stream, at, keyBlocks);
}

} // namespace

cudaError_t attention_grad(AttentionShape s, const bf16 *q, const bf16 *k, const bf16 *v,
                           const float *bias, const std::int32_t *documents, const bf16 *out,
                           const float *logSumExp, const bf16 *dOut, bf16 *dQ, bf16 *dK, bf16 *dV,
                           WorkStream stream) {
  s = placed(s);
  if (!takes(s))
    return cudaErrorInvalidValue;
  float *along = nullptr;
  if (cudaError_t status = launchRowProducts(s, dOut, out, bias, documents, along, stream))
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
                        inWholeParts(s, 8) && aligned16(q, k, v, dOut, dQ, dK, dV),
                        bias,
                        documents};
  noteVectors(at.vectors);
  const auto run = [&](auto queries, auto keys) {
    return launch<decltype(queries), decltype(keys)>(at, stream);
  };
  bool groups = false;
  if (s.width > 32)
    if (cudaError_t status = hasWarpgroups(groups))
      return status;
  // A bias needs more registers than other options, and these more than nothing: fewer blocks, and
  // keys of wide heads, which have two sums of that width, by warps.
  if (bias) {
    const auto runBiased = [&](auto queries, auto keys) {
      return run(WithBias<decltype(queries)>(), WithBias<decltype(keys)>());
    };
    if (s.width <= 32)
      return runBiased(Backward<ByWarps, 32, 4, 64, 1>(), Backward<ByWarps, 32, 4, 64, 1>());
    if (s.width <= 64)
      return groups
                 ? runBiased(Backward<ByGroups, 64, 4, 64, 2>(), Backward<ByGroups, 64, 4, 64, 2>())
                 : runBiased(Backward<ByWarps, 64, 4, 64, 2>(), Backward<ByWarps, 64, 4, 64, 2>());
    return groups
               ? runBiased(Backward<ByGroups, 128, 4, 64, 2>(), Backward<ByWarps, 128, 4, 32, 2>())
               : runBiased(Backward<ByWarps, 128, 4, 32, 2>(), Backward<ByWarps, 128, 4, 32, 2>());
  }
  if (hasOptions(s, documents)) {
    const auto runOptions = [&](auto queries, auto keys) {
      return run(WithOptions<decltype(queries)>(), WithOptions<decltype(keys)>());
    };
    if (s.width <= 32)
      return runOptions(Backward<ByWarps, 32, 4, 64, 1>(), Backward<ByWarps, 32, 4, 64, 1>());
    if (s.width <= 64)
      return groups
                 ? runOptions(Backward<ByGroups, 64, 4, 64, 3>(),
                              Backward<ByGroups, 64, 4, 64, 2>())
                 : runOptions(Backward<ByWarps, 64, 4, 64, 2>(), Backward<ByWarps, 64, 4, 64, 2>());
    return groups
               ? runOptions(Backward<ByGroups, 128, 4, 64, 2>(),
                            Backward<ByGroups, 128, 4, 64, 2>())
               : runOptions(Backward<ByWarps, 128, 4, 32, 2>(), Backward<ByWarps, 128, 4, 32, 2>());
  }
  if (s.width <= 32)
    return run(Backward<ByWarps, 32, 4, 64, 1>(), Backward<ByWarps, 32, 4, 64, 1>());
  if (s.width <= 64)
    return groups ? run(Backward<ByGroups, 64, 4, 64, 4>(), Backward<ByGroups, 64, 4, 64, 2>())
                  : run(Backward<ByWarps, 64, 4, 64, 2>(), Backward<ByWarps, 64, 4, 64, 2>());
  return groups ? run(Backward<ByGroups, 128, 4, 64, 3>(), Backward<ByGroups, 128, 4, 64, 2>())
                : run(Backward<ByWarps, 128, 4, 32, 2>(), Backward<ByWarps, 128, 4, 32, 2>());
}

} // namespace fsdp::rt
