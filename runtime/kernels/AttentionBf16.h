//===- AttentionBf16.h - attention by products of pairs --------*- C++ -*-===//
//
// Attention on bf16 by the processor's instructions for it, see Bf16MicroKernel.h. Scores, softmax
// and sums are floats; probabilities, and the gradients of scores, are rounded to bf16 as operands
// of the products that follow, as FlashAttention rounds them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_ATTENTIONBF16_H
#define FSDP_RUNTIME_KERNELS_ATTENTIONBF16_H

#include "runtime/kernels/AttentionVisibility.h"
#include "runtime/kernels/Bf16MicroKernel.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt::pairs {

/// Implement kernels::attention and kernels::attentionGrad. Without the processor's instructions
/// for it they do nothing and return false. `bias` and `documents` may be null. Scratch memory of
/// the gradient grows with the number of keys.
bool attention(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
               const float *bias, const std::int32_t *documents, bf16 *out, float *logSumExp);
bool attentionGrad(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                   const float *bias, const std::int32_t *documents, const bf16 *out,
                   const float *logSumExp, const bf16 *dOut, bf16 *dQ, bf16 *dK, bf16 *dV);

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
