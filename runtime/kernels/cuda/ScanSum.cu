//===- ScanSum.cu - cumulative sums ---------------------------------------===//
//
// Floor: 2 s n bytes (s of an element, n elements). Where lines lie side by side a thread walks
// along one of them, and a warp reads neighbours. Where the numbers of a line are neighbours a
// block takes it, a tile at a time: its threads sum up their own numbers, then add the sums before
// them. Sums are formed in an order that depends on the shape alone.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;
template <class T> constexpr int kHeld = kPack<T>; ///< numbers of a tile that a thread holds

template <class T>
__global__ void __launch_bounds__(kThreads) scanColumns(ScanShape shape, const T *x, T *y) {
  const std::size_t line = blockIdx.x * std::size_t(kThreads) + threadIdx.x;
  if (line >= shape.outer * shape.inner)
    return;
  const std::size_t start = line / shape.inner * shape.size * shape.inner + line % shape.inner;
  float sum = 0;
#pragma unroll 4
  for (std::size_t i = 0; i < shape.size; ++i) {
    const std::size_t at = start + (shape.reverse ? shape.size - 1 - i : i) * shape.inner;
    const float before = sum;
    sum += toFloat(x[at]);
    y[at] = fromFloat<T>(shape.exclusive ? before : sum);
  }
}

/// The sum of `value` over this thread and those before it in the warp.
__device__ float sumInWarp(float value) {
  const unsigned lane = threadIdx.x % kWarp;
#pragma unroll
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const float other = __shfl_up_sync(kAllLanes, value, distance);
    value += lane >= distance ? other : 0.0f;
  }
  return value;
}

/// `vectors`: lines have whole packs, at addresses that are aligned to them.
template <class T>
__global__ void __launch_bounds__(kThreads)
    scanRows(ScanShape shape, bool vectors, const T *x, T *y) {
  constexpr int N = kHeld<T>;
  __shared__ float warpSums[kMaxWarps];
  const unsigned warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const std::size_t start = blockIdx.x * shape.size, tile = std::size_t(blockDim.x) * N;
  float carried = 0;
  for (std::size_t begin = 0; begin < shape.size; begin += tile) {
    const std::size_t first = begin + std::size_t(threadIdx.x) * N;
    const std::size_t pack = start + (shape.reverse ? shape.size - N - first : first);
    float held[N] = {}, own = 0;
    if (vectors && first < shape.size) {
      float inMemory[N];
      loadFloats(x + pack, true, inMemory);
#pragma unroll
      for (int k = 0; k < N; ++k)
        held[k] = shape.reverse ? inMemory[N - 1 - k] : inMemory[k];
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (const std::size_t i = first + k; i < shape.size)
          held[k] = toFloat(x[start + (shape.reverse ? shape.size - 1 - i : i)]);
    }
#pragma unroll
    for (int k = 0; k < N; ++k)
      own += held[k];
    const float through = sumInWarp(own);
    __syncthreads(); // the sums of the tile before this one are used
    if (threadIdx.x % kWarp == kWarp - 1)
      warpSums[warp] = through;
    __syncthreads();
    const float before = __shfl_up_sync(kAllLanes, through, 1);
    float sum = carried;
    for (unsigned w = 0; w < warp; ++w)
      sum += warpSums[w];
    sum += threadIdx.x % kWarp == 0 ? 0.0f : before;
    for (unsigned w = 0; w < warps; ++w)
      carried += warpSums[w];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float left = sum;
      sum += held[k];
      held[k] = shape.exclusive ? left : sum;
    }
    if (vectors && first < shape.size) {
      float inMemory[N];
#pragma unroll
      for (int k = 0; k < N; ++k)
        inMemory[k] = shape.reverse ? held[N - 1 - k] : held[k];
      storeFloats(inMemory, y + pack);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k)
        if (const std::size_t i = first + k; i < shape.size)
          y[start + (shape.reverse ? shape.size - 1 - i : i)] = fromFloat<T>(held[k]);
    }
  }
}

template <class T> cudaError_t launch(ScanShape shape, const T *x, T *y, cudaStream_t stream) {
  if (shape.size == 0)
    return cudaSuccess;
  if (shape.inner == 1) {
    const std::size_t warps = ceilDiv<std::size_t>(shape.size, kHeld<T> * kWarp);
    const bool vectors = shape.size % kPack<T> == 0 && aligned16(x, y);
    const unsigned threads = warps < kThreads / kWarp ? unsigned(warps) * kWarp : kThreads;
    return launchKernel(scanRows<T>, dim3(static_cast<unsigned>(shape.outer)), threads, 0, stream,
                        shape, vectors, x, y);
  }
  return launchKernel(
      scanColumns<T>,
      dim3(static_cast<unsigned>(ceilDiv<std::size_t>(shape.outer * shape.inner, kThreads))),
      kThreads, 0, stream, shape, x, y);
}

} // namespace

cudaError_t scan_sum(ScanShape shape, const float *x, float *y, cudaStream_t stream) {
  return launch(shape, x, y, stream);
}
cudaError_t scan_sum(ScanShape shape, const bf16 *x, bf16 *y, cudaStream_t stream) {
  return launch(shape, x, y, stream);
}

} // namespace fsdp::rt
