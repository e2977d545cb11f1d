//===- Kernels.h - launches of the runtime's kernels ------------*- C++ -*-===//
//
// For each row of Kernels.def `name(c, stream, "action", shape, read..., written...)`, the same for
// all targets: `launch` and the kernels are those of the target whose Launch.h was included before,
// or the recording one.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_LAUNCHES_KERNELS_H
#define FSDP_RUNTIME_LAUNCHES_KERNELS_H

#include "runtime/device/Work.h"
#include "runtime/kernels/ElementTypes.h"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace fsdp::rt {

namespace signatures {
#define FSDP_KERNEL(name, function, types, flops, parameters, stream)                              \
  FSDP_TEMPLATE_ALL using function = void parameters;
#include "runtime/program/Kernels.def"
} // namespace signatures

namespace detail {
template <class Signature> struct Operands;
template <class... P> struct Operands<void(P...)> {
  static constexpr std::size_t count = sizeof...(P);
  static constexpr std::size_t all = (std::size_t(0) + ... + std::is_pointer_v<P>);
  static constexpr std::size_t read =
      (std::size_t(0) + ... + (std::is_pointer_v<P> && std::is_const_v<std::remove_pointer_t<P>>));
};

struct NoShape {};
template <class T> constexpr bool isSlice = false;
template <class T> constexpr bool isSlice<ArenaSpan<T>> = true;

/// Launches `kernel(shape, slices...)`, which reads the first `read` slices and writes the others.
template <std::size_t read, std::size_t... I, class Kernel, class Shape, class... S>
std::enable_if_t<!isSlice<Shape>> launchKernel(std::index_sequence<I...>, Context &c, int stream,
                                               ActionName name, Work work, Kernel kernel,
                                               const Shape &shape, const ArenaSpan<S> &...slices) {
  constexpr std::size_t all = sizeof...(S);
  const ByteRange ranges[] = {{slices.offset, slices.bytes()}...};
  work.flops *= flopsOf(shape);
  launchUntyped<all>(
      c, stream, name, {ranges, read}, {ranges + read, all - read},
      [kernel, shape](void *const *at, auto... on) {
        return kernel(shape, static_cast<S *>(at[I])..., on...);
      },
      work);
}

/// Launches `kernel(slices...)`.
template <std::size_t read, class Numbers, class Kernel, class... S>
void launchKernel(Numbers numbers, Context &c, int stream, ActionName name, Work work,
                  Kernel kernel, const ArenaSpan<S> &...slices) {
  launchKernel<read>(
      numbers, c, stream, name, work, [kernel](NoShape, auto... p) { return kernel(p...); },
      NoShape(), slices...);
}
} // namespace detail

#define FSDP_OPERANDS(function)                                                                    \
  detail::Operands<signatures::function<float, std::int32_t, float, 1>>
#define FSDP_LAUNCH_KERNEL(name, function, read, all, flops)                                       \
  detail::launchKernel<read>(                                                                      \
      std::make_index_sequence<all>(), c, stream, action, Work{#name, flops},                      \
      [](const auto &...p) { return FSDP_KERNEL_FUNCTION(name, function)(p...); }, arguments...)
#define FSDP_KERNEL(name, function, types, flops, parameters, Stream)                              \
  template <class... A>                                                                            \
  std::enable_if_t<sizeof...(A) == FSDP_OPERANDS(function)::count> name(                           \
      Context &c, int stream, ActionName action, const A &...arguments) {                          \
    FSDP_LAUNCH_KERNEL(name, function, FSDP_OPERANDS(function)::read,                              \
                       FSDP_OPERANDS(function)::all, flops);                                       \
  }
#define FSDP_VARIADIC_KERNEL(name, function)                                                       \
  template <class... A>                                                                            \
  void name(Context &c, int stream, ActionName action, const A &...arguments) {                    \
    constexpr std::size_t all = (std::size_t(0) + ... + detail::isSlice<A>);                       \
    FSDP_LAUNCH_KERNEL(name, function, all - 1, all, 0);                                           \
  }
#include "runtime/program/Kernels.def"
#undef FSDP_LAUNCH_KERNEL
#undef FSDP_OPERANDS

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_KERNELS_H
