//===- Parts.h - cut, extend and join along a dimension ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_PARTS_H
#define FSDP_RUNTIME_PARTS_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <algorithm>
#include <array>
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
void slice(Context &c, int stream, const char *name, Part part, Slice<T> whole, Slice<T> piece) {
  launch(
      c, stream, name, reads(whole), writes(piece),
      [part](const T *whole, T *piece) { kernels::slice(part, whole, piece); }, Work{"slice"});
}

/// The opposite: zeros around the piece.
template <class T>
void pad(Context &c, int stream, const char *name, Part part, Slice<T> piece, Slice<T> whole) {
  launch(
      c, stream, name, reads(piece), writes(whole),
      [part](const T *piece, T *whole) { kernels::pad(part, piece, whole); }, Work{"pad"});
}

/// The inputs one after the other in each of `outer` runs of `joined`.
template <class T, class... Inputs>
void concat(Context &c, int stream, const char *name, std::size_t outer, Slice<T> joined,
            Inputs... inputs) {
  const std::size_t runs = outer ? outer : 1;
  launch(
      c, stream, name, reads(inputs...), writes(joined),
      [outer, whole = joined.count / runs,
       sizes =
           std::array<std::size_t, sizeof...(Inputs)>{inputs.count / runs...}](auto *...pointers) {
        // The last pointer is the result.
        const T *from[] = {pointers...};
        T *to = const_cast<T *>(from[sizes.size()]);
        std::size_t start = 0;
        for (std::size_t i = 0; i < sizes.size(); start += sizes[i++])
          kernels::insert(Part{outer, whole, start, sizes[i]}, from[i], to);
      },
      Work{"concat"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PARTS_H
