//===- UpcastGemm.h - products of bf16 anywhere -------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_UPCASTGEMM_H
#define FSDP_RUNTIME_KERNELS_UPCASTGEMM_H

#include "runtime/kernels/EpilogueCallback.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

namespace fsdp::rt {

/// Performs a product of bf16 on a processor for which oneDNN has none (before AVX-512): blocks are
/// widened to float, multiplied as floats and rounded once. Uses half a megabyte of the thread's
/// workspace.
void multiplyWidened(const Gemm &gemm, const bf16 *a, const bf16 *b, bf16 *c,
                     EpilogueCallback done);
void multiplyWidened(const Gemm &gemm, const bf16 *a, const bf16 *b, float *c,
                     EpilogueCallback done);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_UPCASTGEMM_H
