//===- Gemm.h - matrix products -----------------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_GEMM_H
#define FSDP_RUNTIME_KERNELS_GEMM_H

#include "runtime/kernels/EpilogueCallback.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdp::rt {

namespace kernels {
/// Performs the product on this thread and those that help it. The first product of a kind prepares
/// it and may allocate. Sums are in float and rounded once, to the result's type. Of float, or of
/// bf16 to bf16 or float.
template <class In, class Out>
void gemm(const Gemm &gemm, const In *a, const In *b, Out *c, EpilogueCallback done = {});
/// The library that computes products, with its version: "oneDNN 2.6.3".
std::string gemmLibrary();
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_GEMM_H
