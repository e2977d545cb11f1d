//===- UnaryKernels.h - launches of kernels/UnaryKernels.h ---*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_UNARYKERNELS_H
#define FSDP_RUNTIME_LAUNCHES_UNARYKERNELS_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/UnaryKernels.h"

namespace fsdp::rt {

#define FSDP_LAUNCH_UNARY(kernel, Shape)                                                           \
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

#endif // FSDP_RUNTIME_LAUNCHES_UNARYKERNELS_H
