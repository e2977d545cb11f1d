//===- RowExponentials.h - sums of exponentials in one pass ------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ROWEXPONENTIALS_H
#define FSDP_RUNTIME_KERNELS_CUDA_ROWEXPONENTIALS_H

#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"

namespace fsdp::rt::device {

constexpr float kLog2E = 1.44269504f;
constexpr float kInfinity = __builtin_huge_valf();

/// exp(x - base); 0 where x is -infinity. Subnormal results are 0 on a device: exp2f, which keeps
/// them, takes three more instructions for each element of a row.
__device__ inline float exponential(float x, float base) { return powerOfTwo((x - base) * kLog2E); }

/// The largest of some numbers, and the sum of their exponentials relative to it. A NaN shows in
/// the sum.
struct OnlineSum {
  float top = -kInfinity;
  double sum = 0;

  /// The base of exponentials: no number may be subtracted from -infinity.
  __device__ float base() const { return top == -kInfinity ? 0.0f : top; }

  template <int N> __device__ void add(const float (&values)[N]) {
    float larger = top;
#pragma unroll
    for (int i = 0; i < N; ++i)
      larger = fmaxf(larger, values[i]); // not a NaN
    if (larger > top) {
      sum *= double(exponential(top, larger));
      top = larger;
    }
    const float from = base();
    float part = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
      part += exponential(values[i], from);
    sum += double(part);
  }

  /// The same over all threads of the block, for all of them.
  __device__ OnlineSum overBlock(float *tops, double *sums) const {
    OnlineSum all;
    all.top = blockReduce<Larger>(top, tops);
    all.sum = blockReduce<Plus>(sum * double(exponential(top, all.base())), sums);
    return all;
  }
};

/// Calls one(j, value) or pack(j, values) so that all elements of the row are met once, in 16-byte
/// accesses where the row's address, whatever it is, has them. `vectors`: false to use none.
template <class T, class One, class Pack>
__device__ void scanRow(const T *row, std::size_t count, bool vectors, One one, Pack pack) {
  constexpr int N = kPack<T>;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(row) % 16 / sizeof(T);
  std::size_t head = vectors ? (N - past) % N : count;
  head = head < count ? head : count;
  for (std::size_t j = threadIdx.x; j < head; j += blockDim.x)
    one(j, toFloat(row[j]));
  const std::size_t packs = (count - head) / N, tail = head + packs * N;
#pragma unroll 2
  for (std::size_t p = threadIdx.x; p < packs; p += blockDim.x) {
    float values[N];
    loadFloats(row + head + p * N, true, values);
    pack(head + p * N, values);
  }
  for (std::size_t j = tail + threadIdx.x; j < count; j += blockDim.x)
    one(j, toFloat(row[j]));
}

/// Threads for a row of `count` elements of type T: about four packs each, 512 at most.
template <class T> constexpr unsigned scanThreads(std::size_t count) {
  const std::size_t warps = count / (4 * kPack<T> * kWarp) + 1;
  return static_cast<unsigned>(warps < 16 ? warps : 16) * kWarp;
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ROWEXPONENTIALS_H
