//===- DropoutDraw.h - elements of a part by their global index ------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_DROPOUTDRAW_H
#define FSDP_RUNTIME_KERNELS_CUDA_DROPOUTDRAW_H

#include "runtime/program/KernelArguments.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

/// A part of a whole tensor as runs of elements that follow one another in both. One draw makes
/// four elements, those of indices 4 g to 4 g + 3 of the whole.
struct DropoutRuns {
  static constexpr int kMax = 8;

  double rate;
  std::uint64_t name;
  std::uint64_t first; ///< index in the whole of the part's first element
  int outer;           ///< extents outside of the run
  DropoutExtent extents[kMax];
  std::size_t size;   ///< elements of a run
  std::size_t runs;   ///< how many
  std::size_t groups; ///< draws that a run may meet: one more where it starts within a group
  std::uint64_t microbatch = 0; ///< by how much `first` grows from one microbatch to the next

  template <std::size_t N> static DropoutRuns of(const DropoutMask<N> &mask) {
    static_assert(N >= 1 && N <= kMax + 1, "more extents than a kernel takes");
    DropoutRuns r = {
        mask.rate, mask.name, static_cast<std::uint64_t>(mask.first), int(N) - 1, {}, 0, 1, 0};
    r.microbatch = static_cast<std::uint64_t>(mask.microbatch);
    for (std::size_t e = 0; e + 1 < N; ++e)
      r.runs *= (r.extents[e] = mask.extents[e]).size;
    r.size = mask.extents[N - 1].size;
    r.groups = (r.size + 3) / 4 + 1;
    return r;
  }

  /// Index in the whole of the first element of run `run` of microbatch `of`, from 0.
  __host__ __device__ std::uint64_t start(std::size_t run, std::uint64_t of = 0) const {
    std::uint64_t index = first + microbatch * of;
    for (int e = outer - 1; e >= 0; --e) {
      index += run % extents[e].size * extents[e].stride;
      run /= extents[e].size;
    }
    return index;
  }

  /// Elements [begin, end) of a run, and the first one's index in the whole.
  struct Piece {
    std::size_t begin, end;
    std::uint64_t index;
  };
  /// The elements of run `run` whose numbers are from its draw number `group`; may be empty.
  __host__ __device__ Piece piece(std::size_t run, std::size_t group, std::uint64_t of = 0) const {
    const std::uint64_t from = start(run, of), skip = from % 4;
    const std::size_t begin = group == 0 ? 0 : group * 4 - skip, end = group * 4 + 4 - skip;
    return {begin < size ? begin : size, end < size ? end : size, from + begin};
  }
};

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_DROPOUTDRAW_H
