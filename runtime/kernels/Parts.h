//===- Parts.h - cut, extend and join along a dimension ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_PARTS_H
#define FSDP_RUNTIME_KERNELS_PARTS_H

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

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_PARTS_H
