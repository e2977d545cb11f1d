//===- F32MicroKernel.h - small matrix products within a kernel ----*- C++ -*-===//
//
// For kernels that work on blocks which fit a cache: no packing, no preparation, no calls into a
// library. A product of a model belongs to Gemm.h.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_F32MICROKERNEL_H
#define FSDP_RUNTIME_KERNELS_F32MICROKERNEL_H

#include <cstddef>

namespace fsdp::rt {

/// c[i, j] = sum over l of a[i, l] * b[l, j]. Strides are in elements; the rows of b and c are
/// contiguous, `a` may have either layout, so it may be a transposed matrix.
struct F32MicroKernel {
  std::size_t m, n, k;
  std::size_t aRow, aColumn;
  std::size_t bRow;
  std::size_t cRow;
};

/// Performs the product; `add` adds it to c. Each element of c is summed in the order of l, fused
/// where the processor can.
void multiply(const F32MicroKernel &shape, const float *a, const float *b, float *c, bool add);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_F32MICROKERNEL_H
