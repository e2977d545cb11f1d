//===- UnaryKernels.h - one operand, one result -----------------*- C++ -*-===//
//
// For each kernel of FSDP_UNARY_KERNELS (KernelArguments.h): `kernels::name(shape, x, y)`, which
// its own file computes and instantiates for float and bf16. `y` may be `x`.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_UNARYKERNELS_H
#define FSDP_RUNTIME_KERNELS_UNARYKERNELS_H

#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

namespace fsdp::rt {

namespace kernels {
#define FSDP_DECLARE_UNARY(kernel, Shape)                                                          \
  template <class T> void kernel(Shape shape, const T *x, T *y);
FSDP_UNARY_KERNELS(FSDP_DECLARE_UNARY)
#undef FSDP_DECLARE_UNARY
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_UNARYKERNELS_H
