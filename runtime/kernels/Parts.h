//===- Parts.h - cut, extend and join along a dimension ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_PARTS_H
#define FSDP_RUNTIME_KERNELS_PARTS_H

#include "runtime/execution/Launch.h"
#include "runtime/program/KernelArguments.h"

#include <algorithm>
#include <cstddef>

namespace fsdp::rt {

namespace kernels {
/// Copies the piece out of the whole.
template <class T> void slice(Part part, const T *whole, T *piece) {
  for (std::size_t o = 0; o < part.outer; ++o)
    std::copy_n(whole + o * part.whole + part.start, part.size, piece + o * part.size);
}
/// Copies the piece into the whole, and zeros to all else.
template <class T> void pad(Part part, const T *piece, T *whole) {
  for (std::size_t o = 0; o < part.outer; ++o, whole += part.whole) {
    std::fill_n(whole, part.start, T());
    std::copy_n(piece + o * part.size, part.size, whole + part.start);
    std::fill(whole + part.start + part.size, whole + part.whole, T());
  }
}
/// Copies the piece into the whole and leaves all else as it is.
template <class T> void insert(Part part, const T *piece, T *whole) {
  for (std::size_t o = 0; o < part.outer; ++o)
    std::copy_n(piece + o * part.size, part.size, whole + o * part.whole + part.start);
}
} // namespace kernels

/// The elements of a range of one dimension.
template <class T>
void slice(Context &c, int stream, const char *name, Part part, ArenaSpan<T> whole,
           ArenaSpan<T> piece) {
  launch(
      c, stream, name, reads(whole), writes(piece),
      [part](const T *whole, T *piece) { kernels::slice(part, whole, piece); }, Work{"slice"});
}

/// The opposite: zeros around the piece.
template <class T>
void pad(Context &c, int stream, const char *name, Part part, ArenaSpan<T> piece,
         ArenaSpan<T> whole) {
  launch(
      c, stream, name, reads(piece), writes(whole),
      [part](const T *piece, T *whole) { kernels::pad(part, piece, whole); }, Work{"pad"});
}

/// The inputs one after the other in each of `join.outer` runs of `joined`.
template <std::size_t N, class T, class... Inputs>
void concat(Context &c, int stream, const char *name, Join<N> join, ArenaSpan<T> joined,
            Inputs... inputs) {
  static_assert(sizeof...(Inputs) == N, "a size for each input");
  launch(
      c, stream, name, reads(inputs...), writes(joined),
      [join](auto *...pointers) {
        // The last pointer is the result.
        const T *from[] = {pointers...};
        T *to = const_cast<T *>(from[N]);
        std::size_t start = 0, whole = 0;
        for (std::size_t size : join.sizes)
          whole += size;
        for (std::size_t i = 0; i < N; start += join.sizes[i++])
          kernels::insert(Part{join.outer, whole, start, join.sizes[i]}, from[i], to);
      },
      Work{"concat"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_PARTS_H
