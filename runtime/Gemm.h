//===- Gemm.h - matrix products -----------------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_GEMM_H
#define FSDP_RUNTIME_GEMM_H

#include "runtime/Launch.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Strides of one operand, in elements.
struct GemmStrides {
  std::int64_t row = 0, column = 0;
  std::int64_t batch[3] = {}; ///< 0 where the operand does not vary along a batch dimension
};

/// c[..., i, j] = beta * c[..., i, j] + sum over l of a[..., i, l] * b[..., l, j], for up to three
/// batch dimensions. Any extent may be 0 or 1; with k = 0 the sum is 0. Of an operand's row and
/// column stride one must be 1 unless the extent it steps over is 1; c's strides must not overlap.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch[3] = {1, 1, 1};
  GemmStrides a, b, c;
  float beta = 0; ///< 0 or 1
};

namespace kernels {
/// Performs the product on this thread. The first product of a kind prepares it and may allocate.
void gemm(const Gemm &gemm, const float *a, const float *b, float *c);
} // namespace kernels

/// Enqueues a product. With beta = 1, `out` is read as well.
inline void gemm(Context &c, int stream, const char *name, const Gemm &product, Slice<float> a,
                 Slice<float> b, Slice<float> out) {
  if (product.beta == 0)
    launch(c, stream, name, reads(a, b), writes(out),
           [product](const float *a, const float *b, float *out) {
             kernels::gemm(product, a, b, out);
           });
  else
    launch(c, stream, name, reads(a, b, out), writes(out),
           [product](const float *a, const float *b, const float *, float *out) {
             kernels::gemm(product, a, b, out);
           });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_GEMM_H
