//===- Row.h - a row shared by the threads of a block ------------*- C++ -*-===//
//
// Thread t of a block owns packs t, t + threads, t + 2 threads, ... of a row. A row that is
// short enough stays in registers between the passes over it: it is read from memory once.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ROW_H
#define FSDP_RUNTIME_KERNELS_CUDA_ROW_H

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"

namespace fsdp::rt::device {

/// One row of type T in packs of N elements. kHeld: how many packs a thread holds in registers; 0
/// reads them from memory in each pass.
template <class T, int N, int kHeld> class Row {
public:
  __device__ Row(const T *row, std::size_t width) : row(row), width(width) {
    if constexpr (kHeld > 0)
#pragma unroll
      for (int p = 0; p < kHeld; ++p)
        if (const std::size_t column = columnOf(p); column < width)
          held[p] = Packed<T, N>::load(row + column);
  }

  /// Calls visit(column, values) for each pack of this thread, in order; `values` are N floats.
  template <class Visit> __device__ void forEach(Visit visit) const {
    float values[N];
    if constexpr (kHeld > 0) {
#pragma unroll
      for (int p = 0; p < kHeld; ++p)
        if (const std::size_t column = columnOf(p); column < width) {
#pragma unroll
          for (int i = 0; i < N; ++i)
            values[i] = held[p].get(i);
          visit(column, values);
        }
    } else {
      for (std::size_t column = threadIdx.x * N; column < width; column += blockDim.x * N) {
        loadFloats(row + column, true, values);
        visit(column, values);
      }
    }
  }

private:
  __device__ static std::size_t columnOf(int pack) { return (pack * blockDim.x + threadIdx.x) * N; }

  const T *row;
  std::size_t width;
  Packed<T, N> held[kHeld > 0 ? kHeld : 1];
};

/// How many threads take a row of `width` elements, `pack` at a time, and whether `held` packs of
/// each in registers are enough.
struct RowPlan {
  unsigned threads;
  bool fits;
};
constexpr RowPlan rowPlan(std::size_t width, std::size_t pack, unsigned held, unsigned maxThreads) {
  const std::size_t packs = ceilDiv(width, pack), needed = ceilDiv(packs, std::size_t(held));
  if (needed <= maxThreads)
    return {static_cast<unsigned>(needed ? ceilDiv(needed, std::size_t(kWarp)) * kWarp : kWarp),
            true};
  return {maxThreads, false};
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ROW_H
