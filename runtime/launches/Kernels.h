//===- Kernels.h - launches of the runtime's kernels ------------*- C++ -*-===//
//
// For each row of Kernels.def `name(c, stream, "action", shape, read..., written...)`, the same for
// all targets: `launch` and the kernels are those of the target whose Launch.h was included before,
// or the recording one. Calls of attention may leave out operands (runtime/launches/Attention.h).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_LAUNCHES_KERNELS_H
#define FSDP_RUNTIME_LAUNCHES_KERNELS_H

#include "runtime/device/Work.h"
#include "runtime/kernels/ElementTypes.h"
#include "runtime/launches/Attention.h"

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
  static constexpr std::size_t all = (std::size_t(0) + ... + std::is_pointer_v<P>);
  static constexpr std::size_t read =
      (std::size_t(0) + ... + (std::is_pointer_v<P> && std::is_const_v<std::remove_pointer_t<P>>));
  static constexpr bool isAttention = (std::is_same_v<P, AttentionShape> || ...);
  static constexpr bool fit(std::size_t arguments) {
    return isAttention || arguments == sizeof...(P);
  }
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

/// Launches a kernel of attention, whose row has `all` operands, of which `read` are read.
template <std::size_t all, std::size_t read, class Kernel, class... S>
void launchAttention(Context &c, int stream, ActionName name, Work work, Kernel kernel,
                     const AttentionShape &shape, const S &...slices) {
  using Form = AttentionForm<all, all - read, S...>;
  static_assert(Form::fits(), "attention has q, k and v in three operands or in one, withBias(...) "
                              "and inDocuments(...) or not, then its other operands");
  if constexpr (Form::fits())
    launchKernel<read - Form::unread>(
        std::index_sequence_for<S...>(), c, stream, name, work,
        [kernel](const AttentionShape &s, auto... p) { return Form::call(kernel, s, p...); }, shape,
        slices...);
}
} // namespace detail

#define FSDP_OPERANDS(function)                                                                    \
  detail::Operands<signatures::function<float, std::int32_t, float, 1>>
#define FSDP_KERNEL(name, function, types, flops, parameters, Stream)                              \
  template <class... A>                                                                            \
  std::enable_if_t<FSDP_OPERANDS(function)::fit(sizeof...(A))> name(                               \
      Context &c, int stream, ActionName action, const A &...arguments) {                          \
    using Row = FSDP_OPERANDS(function);                                                           \
    const Work work{#name, flops};                                                                 \
    const auto kernel = [](const auto &...p) {                                                     \
      return FSDP_KERNEL_FUNCTION(name, function)(p...);                                           \
    };                                                                                             \
    if constexpr (Row::isAttention)                                                                \
      detail::launchAttention<Row::all, Row::read>(c, stream, action, work, kernel, arguments...); \
    else                                                                                           \
      detail::launchKernel<Row::read>(std::make_index_sequence<Row::all>(), c, stream, action,     \
                                      work, kernel, arguments...);                                 \
  }
#define FSDP_VARIADIC_KERNEL(name, function)                                                       \
  template <class... A>                                                                            \
  void name(Context &c, int stream, ActionName action, const A &...arguments) {                    \
    constexpr std::size_t all = (std::size_t(0) + ... + detail::isSlice<A>);                       \
    detail::launchKernel<all - 1>(                                                                 \
        std::make_index_sequence<all>(), c, stream, action, Work{#name},                           \
        [](const auto &...p) { return FSDP_KERNEL_FUNCTION(name, function)(p...); },               \
        arguments...);                                                                             \
  }
#include "runtime/program/Kernels.def"
#undef FSDP_OPERANDS

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_KERNELS_H
