//===- AttentionBf16.h - attention by products of pairs --------*- C++ -*-===//
//
// Attention on bf16 by the processor's instructions for it, see Bf16MicroKernel.h. Scores, softmax
// and sums are floats; probabilities, and the gradients of scores, are rounded to bf16 as operands
// of the products that follow, as FlashAttention rounds them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_ATTENTIONBF16_H
#define FSDP_RUNTIME_KERNELS_ATTENTIONBF16_H

#include "runtime/kernels/Bf16MicroKernel.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fsdp::rt::pairs {

/// What kernels::attention and kernels::attentionGrad do. They do nothing and return false where
/// the processor has no instructions for it. `bias` and `documents` may be null. Scratch memory of
/// the gradient grows with the number of keys.
bool attention(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
               const float *bias, const std::int32_t *documents, bf16 *out, float *logSumExp);
bool attentionGrad(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                   const float *bias, const std::int32_t *documents, const bf16 *out,
                   const float *logSumExp, const bf16 *dOut, bf16 *dQ, bf16 *dK, bf16 *dV);

/// What the queries of a batch see of its keys.
struct Visibility {
  const AttentionShape &shape;
  const std::int32_t *ids; ///< of the documents of the batch's keys, or null

  Visibility(const AttentionShape &shape, const std::int32_t *documents, std::size_t batch)
      : shape(shape), ids(documents ? documents + batch * shape.keys : nullptr) {}

  /// The first key that a query may see, and the one behind the last.
  std::size_t firstSeen(std::size_t query) const {
    return shape.window ? keyAt(positionOf(query) + 1 - std::ptrdiff_t(shape.window)) : 0;
  }
  std::size_t endOfSeen(std::size_t query) const {
    return shape.causal ? keyAt(positionOf(query) + 1) : shape.keys;
  }
  /// The id of a query's document.
  std::int32_t idOf(std::size_t query) const {
    return ids[std::min<std::size_t>(keyAt(positionOf(query)), shape.keys - 1)];
  }

  struct Range {
    std::size_t begin, end;
  };
  /// Of [first, end) the part outside of which `idAt(i)` of no i lies between those of the range
  /// `others`, of `otherAt`.
  template <class IdAt, class OtherAt>
  static Range narrow(Range range, IdAt idAt, Range others, OtherAt otherAt) {
    std::int32_t least = otherAt(others.begin), most = least;
    for (std::size_t i = others.begin + 1; i < others.end; ++i) {
      const std::int32_t id = otherAt(i);
      least = std::min(least, id), most = std::max(most, id);
    }
    const auto may = [&](std::size_t i) { return idAt(i) >= least && idAt(i) <= most; };
    while (range.begin < range.end && !may(range.begin))
      ++range.begin;
    while (range.begin < range.end && !may(range.end - 1))
      --range.end;
    return range;
  }

private:
  std::ptrdiff_t positionOf(std::size_t query) const {
    return shape.positionOf(static_cast<std::int64_t>(query));
  }
  static std::size_t keyAt(std::ptrdiff_t key) { return key < 0 ? 0 : std::size_t(key); }
};

/// Rows of one head: contiguous, `stride` elements apart.
template <class T> struct RowsOf {
  T *first;
  std::ptrdiff_t stride;

  T *at(std::size_t row) const { return first + static_cast<std::ptrdiff_t>(row) * stride; }
};
using Rows = RowsOf<const bf16>;
using ResultRows = RowsOf<bf16>;

template <class T>
RowsOf<T> rowsOf(const HeadStrides &strides, T *operand, std::size_t batch, std::size_t head) {
  return {operand + batch * strides.batch + head * strides.head,
          static_cast<std::ptrdiff_t>(strides.row)};
}

} // namespace fsdp::rt::pairs

#endif // FSDP_RUNTIME_KERNELS_ATTENTIONBF16_H
