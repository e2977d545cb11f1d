//===- UnaryKernels.h - one operand, one result -----------------*- C++ -*-===//
//
// For each kernel of FSDP_UNARY_KERNELS (KernelArguments.h): `kernels::name(shape, x, y)`, which
// its own file computes and instantiates for float and bf16, and the launch of it. `y` may be `x`.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_UNARYKERNELS_H
#define FSDP_RUNTIME_KERNELS_UNARYKERNELS_H

#include "runtime/execution/Launch.h"
#include "runtime/program/KernelArguments.h"

namespace fsdp::rt {

#define FSDP_LAUNCH_UNARY(kernel, Shape)                                                           \
  namespace kernels {                                                                              \
  template <class T> void kernel(Shape shape, const T *x, T *y);                                   \
  }                                                                                                \
  template <class T>                                                                               \
  void kernel(Context &c, int stream, const char *name, Shape shape, ArenaSpan<T> x,               \
              ArenaSpan<T> y) {                                                                    \
    launch(                                                                                        \
        c, stream, name, reads(x), writes(y),                                                      \
        [shape](const T *x, T *y) { kernels::kernel(shape, x, y); }, Work{#kernel});               \
  }
FSDP_UNARY_KERNELS(FSDP_LAUNCH_UNARY)
#undef FSDP_LAUNCH_UNARY

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_UNARYKERNELS_H
