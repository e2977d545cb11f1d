//===- Dropout.cu - random elements become zero ---------------------------===//
//
// Floor: 2 s n bytes (s of an element, n elements). A thread makes one draw of Philox, about 100
// integer instructions for four elements.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/DropoutDraw.h"

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;

/// Four words of runtime/numerics/Random.h's stream: the numbers of that class, whose functions are
/// the host's.
struct Draw {
  std::uint32_t word[4];
};

__device__ inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
__device__ inline std::uint64_t keyOf(std::uint64_t seed, std::uint64_t name) {
  return mix(seed + 0x9E3779B97F4A7C15u * (mix(name) | 1));
}
__device__ inline Draw draw(std::uint64_t key, std::uint64_t step, std::uint64_t group) {
  std::uint32_t c0 = std::uint32_t(group), c1 = std::uint32_t(group >> 32);
  std::uint32_t c2 = std::uint32_t(step), c3 = std::uint32_t(step >> 32);
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * c0, p1 = std::uint64_t(0xCD9E8D57u) * c2;
    c0 = std::uint32_t(p1 >> 32) ^ c1 ^ k0, c1 = std::uint32_t(p1);
    c2 = std::uint32_t(p0 >> 32) ^ c3 ^ k1, c3 = std::uint32_t(p0);
  }
  return {{c0, c1, c2, c3}};
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    drop(DropoutRuns runs, std::uint32_t threshold, float scale, bool vectors,
         const StepState *state, const T *x, T *y) {
  const std::uint64_t key = keyOf(state->seed, runs.name);
  const std::uint64_t step = static_cast<std::uint64_t>(state->step) + 1;
  const auto microbatch = static_cast<std::uint64_t>(
      state->microbatch); // `runs`, once written, would lie in local memory
  const std::size_t all = runs.runs * runs.groups;
  for (std::size_t d = blockIdx.x * std::size_t(kThreads) + threadIdx.x; d < all;
       d += std::size_t(gridDim.x) * kThreads) {
    const std::size_t run = d / runs.groups;
    const DropoutRuns::Piece piece = runs.piece(run, d % runs.groups, microbatch);
    if (piece.begin == piece.end)
      continue;
    const Draw words = draw(key, step, piece.index / 4);
    const std::size_t at = run * runs.size + piece.begin;
    if (vectors && at % 4 == 0 && piece.end - piece.begin == 4) {
      float values[4];
      loadFloats(x + at, true, values);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        values[i] = words.word[i] >> 8 >= threshold ? values[i] * scale : 0.0f;
      storeFloats(values, y + at);
      continue;
    }
    const int skip = static_cast<int>(piece.index % 4);
#pragma unroll
    for (int w = 0; w < 4; ++w)
      if (const int i = w - skip; i >= 0 && i < static_cast<int>(piece.end - piece.begin))
        y[at + i] =
            words.word[w] >> 8 >= threshold ? fromFloat<T>(toFloat(x[at + i]) * scale) : T{};
  }
}

/// The same of one run whose draws begin with it: `first` and `microbatch` are multiples of four.
/// Moves 16 bytes at a time, and divides nothing.
template <class T>
__global__ void __launch_bounds__(kThreads)
    dropRun(std::uint64_t name, std::uint64_t first, std::uint64_t microbatch, std::size_t size,
            std::uint32_t threshold, float scale, const StepState *state, const T *x, T *y) {
  constexpr int N = kPack<T>;
  const std::uint64_t key = keyOf(state->seed, name);
  const std::uint64_t step = static_cast<std::uint64_t>(state->step) + 1;
  const std::uint64_t group =
      (first + microbatch * static_cast<std::uint64_t>(state->microbatch)) / 4;
  const std::size_t thread = blockIdx.x * std::size_t(kThreads) + threadIdx.x, packs = size / N;
  for (std::size_t p = thread; p < packs; p += std::size_t(gridDim.x) * kThreads) {
    float values[N];
    loadFloats(x + p * N, true, values);
#pragma unroll
    for (int k = 0; k < N; k += 4) {
      const Draw words = draw(key, step, group + (p * N + k) / 4);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        values[k + i] = words.word[i] >> 8 >= threshold ? values[k + i] * scale : 0.0f;
    }
    storeFloats(values, y + p * N);
  }
  if (const std::size_t at = packs * N + thread; at < size) { // less than a pack is left
    const Draw words = draw(key, step, group + at / 4);
    std::uint32_t word = words.word[0];
#pragma unroll
    for (int w = 1; w < 4; ++w)
      word = at % 4 == w ? words.word[w] : word;
    y[at] = word >> 8 >= threshold ? fromFloat<T>(toFloat(x[at]) * scale) : T{};
  }
}

} // namespace

template <class T>
cudaError_t device::dropout(const DropoutRuns &runs, const StepState *state, const T *x, T *y,
                            cudaStream_t stream) {
  const bool vectors = aligned16(x, y);
  noteVectors(vectors);
  const std::uint32_t threshold = dropThreshold(runs.rate);
  const auto scale = static_cast<float>(1 / (1 - runs.rate));
  if (vectors && runs.runs == 1 && runs.start(0) % 4 == 0 && runs.microbatch % 4 == 0)
    return launchKernel(dropRun<T>, dim3(stridingBlocks(runs.size, kThreads * kPack<T>)), kThreads,
                        0, stream, runs.name, runs.start(0), runs.microbatch, runs.size, threshold,
                        scale, state, x, y);
  return launchKernel(drop<T>, dim3(stridingBlocks(runs.runs * runs.groups, kThreads)), kThreads, 0,
                      stream, runs, threshold, scale, vectors, state, x, y);
}
template cudaError_t device::dropout(const DropoutRuns &, const StepState *, const float *, float *,
                                     cudaStream_t);
template cudaError_t device::dropout(const DropoutRuns &, const StepState *, const bf16 *, bf16 *,
                                     cudaStream_t);

} // namespace fsdp::rt
