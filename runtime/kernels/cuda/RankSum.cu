//===- RankSum.cu - sums and maxima over the ranks of one device ----------===//
//
// Loopback's counterpart on one device of NCCL's sum between devices: the sources are in the same
// memory. Floor: (sources + 1) s n bytes.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <type_traits>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;

template <class T> __device__ T combined(T a, T b, bool maximum) {
  if (maximum)
    return a < b || b != b ? b : a;
  if constexpr (std::is_integral_v<T>) // wraps around
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                          static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}

/// bf16 is summed in float, rounded once at the end.
template <class T> using SumOf = std::conditional_t<std::is_same_v<T, bf16>, float, T>;
template <class T> __device__ SumOf<T> widened(T x) {
  if constexpr (std::is_same_v<T, bf16>)
    return toFloat(x);
  else
    return x;
}
template <class T> __device__ T narrowed(SumOf<T> x) {
  if constexpr (std::is_same_v<T, bf16>)
    return fromFloat<bf16>(x);
  else
    return x;
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    combine(RankSources sources, std::size_t count, bool maximum, T *target) {
  for (std::size_t i = blockIdx.x * std::size_t(kThreads) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * kThreads) {
    SumOf<T> value = widened(static_cast<const T *>(sources.address[0])[i]);
    for (int s = 1; s < sources.count; ++s)
      value = combined<SumOf<T>>(value, widened(static_cast<const T *>(sources.address[s])[i]),
                                 maximum);
    target[i] = narrowed<T>(value);
  }
}

/// The same of float or bf16, 16 bytes at a time; all addresses are aligned to that.
template <class T>
__global__ void __launch_bounds__(kThreads)
    combinePacks(RankSources sources, std::size_t count, bool maximum, T *target) {
  constexpr int N = kPack<T>;
  const std::size_t thread = blockIdx.x * std::size_t(kThreads) + threadIdx.x, packs = count / N;
  for (std::size_t p = thread; p < packs; p += std::size_t(gridDim.x) * kThreads) {
    float values[N];
    loadFloats(static_cast<const T *>(sources.address[0]) + p * N, true, values);
#pragma unroll 4
    for (int s = 1; s < sources.count; ++s) {
      const auto pack = Packed<T, N>::load(static_cast<const T *>(sources.address[s]) + p * N);
#pragma unroll
      for (int i = 0; i < N; ++i)
        values[i] = combined(values[i], pack.get(i), maximum);
    }
    storeFloats(values, target + p * N);
  }
  if (const std::size_t i = packs * N + thread; i < count) { // less than a pack is left
    float value = toFloat(static_cast<const T *>(sources.address[0])[i]);
    for (int s = 1; s < sources.count; ++s)
      value = combined(value, toFloat(static_cast<const T *>(sources.address[s])[i]), maximum);
    target[i] = fromFloat<T>(value);
  }
}

template <class T>
cudaError_t launch(const RankSources &sources, void *target, std::size_t count, ReduceOp op,
                   cudaStream_t stream) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16>) {
    bool vectors = aligned16(target);
    for (int s = 0; s < sources.count; ++s)
      vectors &= aligned16(sources.address[s]);
    if (vectors)
      return launchKernel(combinePacks<T>, dim3(stridingBlocks(count, kThreads * kPack<T>)),
                          kThreads, 0, stream, sources, count, op == ReduceOp::Max,
                          static_cast<T *>(target));
  }
  return launchKernel(combine<T>, dim3(stridingBlocks(count, kThreads)), kThreads, 0, stream,
                      sources, count, op == ReduceOp::Max, static_cast<T *>(target));
}

} // namespace

cudaError_t reduce_in_rank_order(const RankSources &sources, void *target, std::size_t count,
                                 DType type, ReduceOp op, cudaStream_t stream) {
  if (sources.count < 1 || sources.count > RankSources::kMax)
    return cudaErrorInvalidValue;
  switch (type) {
  case DType::F32:
    return launch<float>(sources, target, count, op, stream);
  case DType::F64:
    return launch<double>(sources, target, count, op, stream);
  case DType::I32:
    return launch<std::int32_t>(sources, target, count, op, stream);
  case DType::I64:
    return launch<std::int64_t>(sources, target, count, op, stream);
  case DType::BF16:
    return launch<bf16>(sources, target, count, op, stream);
  case DType::Bool:
    break;
  }
  return cudaErrorInvalidValue;
}

} // namespace fsdp::rt
