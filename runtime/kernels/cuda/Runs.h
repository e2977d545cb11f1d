//===- Runs.h - copies of equal runs of bytes --------------------*- C++ -*-===//
//
// Slices, pads, joins and the pieces of a tile are all the same: rows of bytes from one place to
// another, with zeros where there is nothing to take.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_RUNS_H
#define FSDP_RUNTIME_KERNELS_CUDA_RUNS_H

#include "runtime/program/KernelArguments.h"
#include "runtime/program/ShardLayout.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

/// For each (a, b) in a0 x b0, `size` units of the target from a * toA + b * toB on: unit i of it
/// is unit begin + i of the source's run, which starts at a * fromA + b * fromB, if it has that
/// one.
struct Runs {
  std::size_t a0, b0, size;
  std::size_t toA, toB;
  std::size_t fromA, fromB;
  std::ptrdiff_t begin;
  /// Units of the source's run. Where `total` is not 0 the run has those of [b * held, (b + 1) *
  /// held) that lie below `total`.
  std::size_t held, total;
  /// The result for a unit that the source does not have: unchanged, or 0.
  bool leave;

  __host__ __device__ std::size_t units() const { return a0 * b0 * size; }

  /// Where unit number `n` goes, and where it comes from; `from` is `kNowhere` where there is none.
  struct Move {
    std::size_t to, from;
  };
  static constexpr std::size_t kNowhere = ~std::size_t(0);
  __host__ __device__ Move move(std::size_t n) const {
    const std::size_t i = n % size, run = n / size, b = run % b0, a = run / b0;
    const std::ptrdiff_t at = begin + static_cast<std::ptrdiff_t>(i);
    std::size_t some = held;
    if (total) {
      const std::size_t first = b * held;
      some = first >= total ? 0 : (total - first < held ? total - first : held);
    }
    const bool there = at >= 0 && static_cast<std::size_t>(at) < some;
    return {a * toA + b * toB + i,
            there ? a * fromA + b * fromB + static_cast<std::size_t>(at) : kNowhere};
  }

  /// The same in units of `bytes` times the size.
  Runs inUnitsOf(std::size_t bytes) const {
    Runs r = *this;
    r.size /= bytes, r.toA /= bytes, r.toB /= bytes, r.fromA /= bytes, r.fromB /= bytes;
    r.begin /= static_cast<std::ptrdiff_t>(bytes), r.held /= bytes, r.total /= bytes;
    return r;
  }
  /// The largest access, in bytes, that all runs and both addresses (in bytes) are multiples of.
  std::size_t widest(const void *from, const void *to) const {
    const std::size_t all =
        size | toA | toB | fromA | fromB | held | total | static_cast<std::size_t>(begin) |
        reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to);
    std::size_t bytes = 16;
    while (all % bytes)
      bytes /= 2;
    return bytes;
  }

  // In bytes, for elements of `e` bytes. The names are those of the calls in Kernels.h.
  static Runs slice(Part p, std::size_t e) {
    const std::size_t piece = p.size * e, whole = p.whole * e;
    return {p.outer, 1, piece, piece, 0, whole, 0, std::ptrdiff_t(p.start * e), whole, 0, false};
  }
  static Runs pad(Part p, std::size_t e) {
    const std::size_t piece = p.size * e, whole = p.whole * e;
    return {p.outer, 1, whole, whole, 0, piece, 0, -std::ptrdiff_t(p.start * e), piece, 0, false};
  }
  /// The target is the whole from `start` on: the caller adds it to the address.
  static Runs insert(Part p, std::size_t e) {
    const std::size_t piece = p.size * e;
    return {p.outer, 1, piece, p.whole * e, 0, piece, 0, 0, piece, 0, false};
  }
  /// The source is the whole from the rank's part on: the caller adds it to the address.
  static Runs slicePiece(ShardLayout t, std::size_t rank, std::size_t e) {
    const std::size_t row = t.local * t.inner * e, whole = t.total * t.inner * e;
    return {t.outer, 1, row, row, 0, whole, 0, 0, t.held(rank) * t.inner * e, 0, false};
  }
  static Runs packPieces(ShardLayout t, std::size_t ranks, std::size_t e) {
    const std::size_t row = t.local * t.inner * e, whole = t.total * t.inner * e;
    return {t.outer, ranks, row, row, t.outer * row, whole, row, 0, row, whole, false};
  }
  static Runs unpackPieces(ShardLayout t, std::size_t ranks, std::size_t e) {
    const std::size_t row = t.local * t.inner * e, whole = t.total * t.inner * e;
    return {t.outer, ranks, row, whole, row, row, t.outer * row, 0, row, whole, true};
  }
};

/// Enqueues the copy. Addresses in bytes.
cudaError_t copyRuns(const Runs &bytes, const void *from, void *to, cudaStream_t stream);

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_RUNS_H
