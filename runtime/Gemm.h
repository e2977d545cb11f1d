//===- Gemm.h - matrix products -----------------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_GEMM_H
#define FSDP_RUNTIME_GEMM_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// Performs the product on this thread. The first product of a kind prepares it and may allocate.
void gemm(const Gemm &gemm, const float *a, const float *b, float *c);
} // namespace kernels

/// Multiplications and additions of a product.
constexpr double flopsOf(const Gemm &product) {
  double flops = 2;
  for (std::int64_t extent :
       {product.m, product.n, product.k, product.batch[0], product.batch[1], product.batch[2]})
    flops *= static_cast<double>(extent);
  return flops;
}

/// Enqueues a product. With beta = 1, `out` is read as well.
inline void gemm(Context &c, int stream, const char *name, const Gemm &product, Slice<float> a,
                 Slice<float> b, Slice<float> out) {
  if (product.beta == 0)
    launch(
        c, stream, name, reads(a, b), writes(out),
        [product](const float *a, const float *b, float *out) {
          kernels::gemm(product, a, b, out);
        },
        Work{"gemm", flopsOf(product)});
  else
    launch(
        c, stream, name, reads(a, b, out), writes(out),
        [product](const float *a, const float *b, const float *, float *out) {
          kernels::gemm(product, a, b, out);
        },
        Work{"gemm", flopsOf(product)});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_GEMM_H
