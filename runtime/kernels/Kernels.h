//===- Kernels.h - the CPU's kernels as functions ---------------*- C++ -*-===//
//
// For each row of Kernels.def the function `kernels::function(shape, read..., written...)`, which
// performs it on the calling thread. The row has its semantics. Its source file implements and
// instantiates it for the types of the row.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_KERNELS_H
#define FSDP_RUNTIME_KERNELS_KERNELS_H

#include "runtime/device/Workers.h"
#include "runtime/kernels/ElementTypes.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace fsdp::rt::kernels {

#define FSDP_KERNEL(name, function, types, flops, parameters, stream)                              \
  FSDP_TEMPLATE_##types void function parameters;
#include "runtime/program/Kernels.def"

/// `dropout` of elements whose indices in the whole tensor begin with `first`.
template <class T>
void dropout(double rate, std::uint64_t name, std::uint64_t first, const DropoutExtent *extents,
             std::size_t numExtents, const StepState &state, const T *x, T *y);
template <std::size_t N, class T>
void dropout(const DropoutMask<N> &mask, const StepState *state, const T *x, T *y) {
  const std::int64_t first = mask.first + state->microbatch * mask.microbatch;
  dropout(mask.rate, mask.name, static_cast<std::uint64_t>(first), mask.extents, N, *state, x, y);
}

// Kernels for elements of any type.

template <class T> void slice(Part part, const T *whole, T *piece) {
  forEachPart(part.outer, part.size, [&](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin; o < end; ++o)
      std::copy_n(whole + o * part.whole + part.start, part.size, piece + o * part.size);
  });
}
template <class T> void pad(Part part, const T *piece, T *whole) {
  forEachPart(part.outer, part.whole, [&](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin; o < end; ++o) {
      T *to = whole + o * part.whole;
      std::fill_n(to, part.start, T());
      std::copy_n(piece + o * part.size, part.size, to + part.start);
      std::fill(to + part.start + part.size, to + part.whole, T());
    }
  });
}
/// Copies the piece into the whole and leaves all else as it is.
template <class T> void insert(Part part, const T *piece, T *whole) {
  forEachPart(part.outer, part.size, [&](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin; o < end; ++o)
      std::copy_n(piece + o * part.size, part.size, whole + o * part.whole + part.start);
  });
}
template <class T> void allSlice(RankPiece part, const T *whole, T *piece) {
  const ShardLayout tile = part.layout();
  const auto rank = static_cast<std::size_t>(part.index);
  const std::size_t held = tile.held(rank) * tile.inner, row = tile.local * tile.inner;
  for (std::size_t o = 0; o < tile.outer; ++o, piece += row) {
    if (held)
      std::copy_n(whole + (o * tile.total + rank * tile.local) * tile.inner, held, piece);
    std::fill(piece + held, piece + row, T());
  }
}

/// `pointers`: those of the N tensors, then the result.
template <std::size_t N, class... Pointers>
void squareSums(const Counts<N> &counts, Pointers... pointers) {
  static_assert(sizeof...(Pointers) == N + 1, "a number of elements for each tensor");
  const void *all[] = {pointers...};
  double total = 0;
  for (std::size_t i = 0; i < N; ++i) {
    double sum = 0;
    squareSum(counts.of[i], static_cast<const float *>(all[i]), &sum);
    total += sum;
  }
  *static_cast<double *>(const_cast<void *>(all[N])) = total;
}

/// `pointers`: the N inputs, then the result.
template <std::size_t N, class... Pointers> void concat(const Join<N> &join, Pointers... pointers) {
  static_assert(sizeof...(Pointers) == N + 1, "a size for each input");
  using T = std::remove_const_t<std::remove_pointer_t<std::common_type_t<Pointers...>>>;
  const T *all[] = {pointers...};
  T *joined = const_cast<T *>(all[N]);
  Part part = {join.outer, 0, 0, 0};
  for (std::size_t size : join.sizes)
    part.whole += size;
  for (std::size_t i = 0; i < N; part.start += part.size, ++i) {
    part.size = join.sizes[i];
    insert(part, all[i], joined);
  }
}

} // namespace fsdp::rt::kernels

#endif // FSDP_RUNTIME_KERNELS_KERNELS_H
