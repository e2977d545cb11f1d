//===- Bf16MicroKernel.h - small products of bf16 within a kernel ---*- C++ -*-===//
//
// The counterpart of F32MicroKernel.h by the processor's instructions for bf16: they multiply pairs
// of numbers and add both products to a float. There are two kinds: on vectors (AVX512_BF16) and on
// a matrix unit (AMX). Which is there is seen at run time, and oneDNN's limit on instructions
// (ONEDNN_MAX_CPU_ISA) holds here too.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_BF16MICROKERNEL_H
#define FSDP_RUNTIME_KERNELS_BF16MICROKERNEL_H

#include "runtime/numerics/BFloat16.h"

#include <cstddef>

namespace fsdp::rt {

/// Extents of blocks are multiples of this many elements: the callers fill up with zeros.
constexpr std::size_t kVnniBlock = 32;

/// c[i, j] = sum over l of a[i, l] * b[l, j]; all three extents are multiples of kVnniBlock.
/// Strides are in elements. The rows of a and c are contiguous; b is in panels of 32 columns, where
/// b[l, j] is element (l / 2) * 64 + 2 * (j % 32) + l % 2 of panel j / 32.
struct Bf16MicroKernel {
  std::size_t m, n, k;
  std::size_t aRow;
  std::size_t bPanel; ///< from one panel to the next
  std::size_t cRow;
};

enum class PairInstructions { None, Vectors, Matrices };

/// The fastest instructions that this processor has, the system grants and oneDNN's limit allows.
PairInstructions pairInstructions();

/// Multiplies on the calling thread, for which it holds the matrix unit while it lives. There is at
/// most one on a thread, and no product of oneDNN's beside it.
class PairMultiplier {
public:
  /// `instructions` are at most pairInstructions(), and not None.
  explicit PairMultiplier(PairInstructions instructions = pairInstructions());
  ~PairMultiplier();
  PairMultiplier(const PairMultiplier &) = delete;
  PairMultiplier &operator=(const PairMultiplier &) = delete;

  /// Performs the product; `add` adds it to c. The order in which an element of c is summed depends
  /// on k alone; subnormal numbers count as zero.
  void operator()(const Bf16MicroKernel &shape, const bf16 *a, const bf16 *b, float *c,
                  bool add) const {
    perform(shape, a, b, c, add);
  }

private:
  void (*perform)(const Bf16MicroKernel &, const bf16 *, const bf16 *, float *, bool);
  [[maybe_unused]] bool matrices;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_BF16MICROKERNEL_H
