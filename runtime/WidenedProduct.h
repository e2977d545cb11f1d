//===- WidenedProduct.h - products of bf16 anywhere -------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_WIDENEDPRODUCT_H
#define FSDP_RUNTIME_WIDENEDPRODUCT_H

#include "runtime/Gemm.h"

namespace fsdp::rt {

/// Performs a product of bf16 on a processor for which oneDNN has none (before AVX-512): blocks are
/// widened to float, multiplied as floats and rounded once. Uses half a megabyte of the thread's
/// workspace.
void multiplyWidened(const Gemm &gemm, const bf16 *a, const bf16 *b, bf16 *c, RowsDone done);
void multiplyWidened(const Gemm &gemm, const bf16 *a, const bf16 *b, float *c, RowsDone done);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_WIDENEDPRODUCT_H
