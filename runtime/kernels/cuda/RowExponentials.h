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

/// The 16-byte accesses of a row, whatever its address is: `packs` of them after `head` elements.
struct RowPacks {
  std::size_t head, packs;
};
template <class T> __device__ RowPacks packsOf(const T *row, std::size_t count, bool vectors) {
  constexpr int N = kPack<T>;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(row) % 16 / sizeof(T);
  std::size_t head = vectors ? (N - past) % N : count;
  head = head < count ? head : count;
  return {head, (count - head) / N};
}

/// Calls one(j, value) or pack(p, j), p the number of a pack and j its first element, so that all
/// elements of the row are met once, by the same thread in every scan. `vectors`: false for no
/// packs.
template <class T, class One, class Pack>
__device__ void scanPacks(const T *row, std::size_t count, bool vectors, One one, Pack pack) {
  constexpr int N = kPack<T>;
  const RowPacks at = packsOf(row, count, vectors);
  for (std::size_t j = threadIdx.x; j < at.head; j += blockDim.x)
    one(j, toFloat(row[j]));
#pragma unroll 2
  for (std::size_t p = threadIdx.x; p < at.packs; p += blockDim.x)
    pack(p, at.head + p * N);
  for (std::size_t j = at.head + at.packs * N + threadIdx.x; j < count; j += blockDim.x)
    one(j, toFloat(row[j]));
}

/// The same with pack(j, values).
template <class T, class One, class Pack>
__device__ void scanRow(const T *row, std::size_t count, bool vectors, One one, Pack pack) {
  scanPacks(row, count, vectors, one, [&](std::size_t, std::size_t j) {
    float values[kPack<T>];
    loadFloats(row + j, true, values);
    pack(j, values);
  });
}

/// Threads for a row of `count` elements of type T: about four packs each, 512 at most.
template <class T> constexpr unsigned scanThreads(std::size_t count) {
  const std::size_t warps = count / (4 * kPack<T> * kWarp) + 1;
  return static_cast<unsigned>(warps < 16 ? warps : 16) * kWarp;
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ROWEXPONENTIALS_H
