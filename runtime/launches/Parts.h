//===- Parts.h - launches of kernels/Parts.h -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_PARTS_H
#define FSDP_RUNTIME_LAUNCHES_PARTS_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/Parts.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

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

#endif // FSDP_RUNTIME_LAUNCHES_PARTS_H
