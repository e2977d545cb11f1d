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

#include <tuple>
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
  static constexpr bool fit(std::size_t arguments) {
    return arguments == sizeof...(P) || (std::is_same_v<P, AttentionShape> || ...);
  }
};

template <class... S, class Kernel, std::size_t... R, std::size_t... W>
void launchSplit(Context &c, int stream, ActionName name, Work work, Kernel kernel,
                 const ByteRange *slices, std::index_sequence<R...>, std::index_sequence<W...>) {
  constexpr std::size_t read = sizeof...(R);
  launch(c, stream, name, Reads<std::tuple_element_t<R, std::tuple<S...>>...>{{{slices[R]...}}},
         Writes<std::tuple_element_t<read + W, std::tuple<S...>>...>{{{slices[read + W]...}}},
         kernel, work);
}

/// Launches `kernel(slices...)`, the first `read` of which are read and the others written.
template <std::size_t read, class Kernel, class... S>
void launchSlices(Context &c, int stream, ActionName name, Work work, Kernel kernel,
                  ArenaSpan<S>... slices) {
  const ByteRange ranges[] = {slices.range()...};
  launchSplit<S...>(c, stream, name, work, kernel, ranges, std::make_index_sequence<read>(),
                    std::make_index_sequence<sizeof...(S) - read>());
}
template <std::size_t read, class Kernel, class Shape, class... S>
void launchShaped(Context &c, int stream, ActionName name, Work work, Kernel kernel,
                  const Shape &shape, ArenaSpan<S>... slices) {
  work.flops *= flopsOf(shape);
  launchSlices<read>(
      c, stream, name, work, [kernel, shape](auto... p) { return kernel(shape, p...); }, slices...);
}
/// Launches a kernel of attention, whose row has `all` operands.
template <std::size_t all, std::size_t read, class Kernel, class... S>
void launchAttention(Context &c, int stream, ActionName name, Work work, Kernel kernel,
                     const AttentionShape &shape, S... slices) {
  using Form = AttentionForm<all, all - read, S...>;
  static_assert(Form::fits(), "attention has q, k and v in three operands or in one, withBias(...) "
                              "and inDocuments(...) or not, then its other operands");
  if constexpr (Form::fits())
    launchShaped<read - Form::unread>(
        c, stream, name, work,
        [kernel](const AttentionShape &s, auto... p) { return Form::call(kernel, s, p...); }, shape,
        slices...);
}

/// Launches `kernel(arguments...)`: `all` slices, after a shape if there is one.
template <std::size_t all, std::size_t read, class Kernel, class First, class... A>
void launchKernel(Context &c, int stream, ActionName name, Work work, Kernel kernel,
                  const First &first, const A &...others) {
  if constexpr (std::is_same_v<First, AttentionShape>)
    launchAttention<all, read>(c, stream, name, work, kernel, first, others...);
  else if constexpr (all == sizeof...(A))
    launchShaped<read>(c, stream, name, work, kernel, first, others...);
  else
    launchSlices<read>(c, stream, name, work, kernel, first, others...);
}

template <class T> constexpr bool isSlice = false;
template <class T> constexpr bool isSlice<ArenaSpan<T>> = true;

} // namespace detail

#define FSDP_OPERANDS(function)                                                                    \
  detail::Operands<signatures::function<float, std::int32_t, float, 1>>
#define FSDP_KERNEL(name, function, types, flops, parameters, Stream)                              \
  template <class... A>                                                                            \
  std::enable_if_t<FSDP_OPERANDS(function)::fit(sizeof...(A))> name(                               \
      Context &c, int stream, ActionName action, const A &...arguments) {                          \
    detail::launchKernel<FSDP_OPERANDS(function)::all, FSDP_OPERANDS(function)::read>(             \
        c, stream, action, Work{#name, flops},                                                     \
        [](const auto &...p) { return FSDP_KERNEL_FUNCTION(name, function)(p...); },               \
        arguments...);                                                                             \
  }
#define FSDP_VARIADIC_KERNEL(name, function)                                                       \
  template <class... A>                                                                            \
  void name(Context &c, int stream, ActionName action, const A &...arguments) {                    \
    constexpr std::size_t all = (std::size_t(0) + ... + detail::isSlice<A>);                       \
    detail::launchKernel<all, all - 1>(                                                            \
        c, stream, action, Work{#name},                                                            \
        [](const auto &...p) { return FSDP_KERNEL_FUNCTION(name, function)(p...); },               \
        arguments...);                                                                             \
  }
#include "runtime/program/Kernels.def"
#undef FSDP_OPERANDS

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_KERNELS_H
