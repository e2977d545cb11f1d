//===- Attention.h - the operands of launches of attention ------*- C++ -*-===//
//
// The rows of Kernels.def for attention list all operands that there may be. A call has
//
//   shape,
//   q, k, v, or one operand that holds them `shape.part` numbers apart,
//   withBias(bias), inDocuments(ids): each of them or not,
//   the row's others; gradients of q, k and v are in as many operands as q, k and v.
//
// It reads and writes these alone. The kernel gets the addresses of all operands of the row, null
// for a bias and documents that the call leaves out.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_LAUNCHES_ATTENTION_H
#define FSDP_RUNTIME_LAUNCHES_ATTENTION_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fsdp::rt {

/// The bias of attention as an operand that a call may leave out, and the ids of documents.
struct BiasSpan : ArenaSpan<float> {};
struct DocumentsSpan : ArenaSpan<std::int32_t> {};
constexpr BiasSpan withBias(ArenaSpan<float> bias) { return {bias}; }
constexpr DocumentsSpan inDocuments(ArenaSpan<std::int32_t> ids) { return {ids}; }

namespace detail {

/// Which operands a call with the spans S... has, of a row with `all` operands and `results`: two
/// of attention, three of its gradient, one of that of its bias.
template <std::size_t all, std::size_t results, class... S> struct AttentionForm {
  static constexpr bool hasBias = (std::is_same_v<S, BiasSpan> || ...);
  static constexpr bool hasDocuments = (std::is_same_v<S, DocumentsSpan> || ...);
  static constexpr std::size_t leftOut = all - sizeof...(S) - !hasBias - !hasDocuments;
  /// One operand instead of three, and likewise one result of the gradient.
  static constexpr bool isPacked = leftOut == (results == 3 ? 4 : 2);
  /// How many of the operands that are read the call leaves out.
  static constexpr std::size_t unread = (isPacked ? 2 : 0) + !hasBias + !hasDocuments;

  /// Whether the call has the number of operands of a form, and the optional ones where they
  /// belong.
  static constexpr bool fits() {
    constexpr std::size_t bias = isPacked ? 1 : 3, documents = bias + hasBias;
    bool inPlace = true;
    std::size_t at = 0;
    ((inPlace &= std::is_same_v<S, BiasSpan> == (hasBias && at == bias) &&
                 std::is_same_v<S, DocumentsSpan> == (hasDocuments && at == documents),
      ++at),
     ...);
    return inPlace && (isPacked || leftOut == 0) && (hasBias || results != 1);
  }

  /// Calls `kernel(shape, q, k, v, bias, documents, others...)`. `p`: the addresses of the call's
  /// operands, and on a device its stream.
  template <class Kernel, class T, class... P>
  static auto call(const Kernel &kernel, const AttentionShape &shape, const T *q, P... p) {
    if constexpr (!isPacked)
      return withAll(kernel, shape, q, p...);
    else if constexpr (results != 3)
      return withAll(kernel, shape, q, q + shape.part, q + 2 * shape.part, p...);
    else
      return withAll(
          [&](const AttentionShape &s, const T *q, const T *k, const T *v, const float *bias,
              const std::int32_t *documents, const T *out, const float *logSumExp, const T *dOut,
              T *dQkv, auto... stream) {
            return kernel(s, q, k, v, bias, documents, out, logSumExp, dOut, dQkv, dQkv + s.part,
                          dQkv + 2 * s.part, stream...);
          },
          shape, q, q + shape.part, q + 2 * shape.part, p...);
  }

private:
  static constexpr const float *noBias = nullptr;
  static constexpr const std::int32_t *noDocuments = nullptr;

  template <class Kernel, class T, class... P>
  static auto withAll(const Kernel &kernel, const AttentionShape &shape, const T *q, const T *k,
                      const T *v, P... p) {
    if constexpr (hasBias && hasDocuments)
      return kernel(shape, q, k, v, p...);
    else if constexpr (hasBias)
      return [&](const float *bias, auto... others) {
        return kernel(shape, q, k, v, bias, noDocuments, others...);
      }(p...);
    else if constexpr (hasDocuments)
      return kernel(shape, q, k, v, noBias, p...);
    else
      return kernel(shape, q, k, v, noBias, noDocuments, p...);
  }
};

} // namespace detail

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_ATTENTION_H
