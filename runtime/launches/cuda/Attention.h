//===- Attention.h - launches of attention by cuDNN --------------*- C++ -*-===//
//
// The launches of attention in bf16, which cuDNN computes where a run asks for it (FSDP_ATTENTION).
// They are preferred to the templates of runtime/launches/Kernels.h, which they call where the
// program's own kernels are used.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LAUNCHES_CUDA_ATTENTION_H
#define FSDP_RUNTIME_LAUNCHES_CUDA_ATTENTION_H

#include "runtime/execution/cuda/Launch.h"
#include "runtime/kernels/cuda/CudnnAttention.h"
#include "runtime/launches/Kernels.h"

namespace fsdp::rt {

namespace detail {

/// The operands of a row of Kernels.def.
template <template <class, class, class, std::size_t> class Signature>
using RowOfBf16 = Operands<Signature<bf16, std::int32_t, float, 1>>;

/// Launches `kernel` as that of `Row`.
template <class Row, class Kernel, class... S>
void launchCudnn(Context &c, int stream, ActionName name, Work work, const Kernel &kernel,
                 const AttentionShape &shape, const S &...slices) {
  if (c.isPreparing())
    return c.prepareAttention(stream, name.text, shape, /*isGradient=*/Row::all - Row::read == 3);
  launchAttention<Row::all, Row::read>(c, stream, name, work, kernel, shape, slices...);
}
template <class... S>
void attentionByCudnn(Context &c, int stream, ActionName name, const AttentionShape &shape,
                      const S &...slices) {
  launchCudnn<RowOfBf16<signatures::attention>>(
      c, stream, name, Work{"attention", 1},
      [&c](const AttentionShape &s, const bf16 *q, const bf16 *k, const bf16 *v, const float *,
           const std::int32_t *, bf16 *out, float *logSumExp,
           WorkStream on) { return c.cudnn()->forward(s, q, k, v, out, logSumExp, on); },
      shape, slices...);
}
template <class... S>
void attentionGradByCudnn(Context &c, int stream, ActionName name, const AttentionShape &shape,
                          const S &...slices) {
  launchCudnn<RowOfBf16<signatures::attentionGrad>>(
      c, stream, name, Work{"attention_grad", 2.5},
      [&c](const AttentionShape &s, const bf16 *q, const bf16 *k, const bf16 *v, const float *,
           const std::int32_t *, const bf16 *out, const float *logSumExp, const bf16 *dOut,
           bf16 *dQ, bf16 *dK, bf16 *dV, WorkStream on) {
        return c.cudnn()->gradient(s, {q, k, v, out, dOut, logSumExp, dQ, dK, dV}, on);
      },
      shape, slices...);
}

} // namespace detail

inline void attention(Context &c, int stream, ActionName name, const AttentionShape &shape,
                      const ArenaSpan<bf16> &q, const ArenaSpan<bf16> &k, const ArenaSpan<bf16> &v,
                      const ArenaSpan<bf16> &out, const ArenaSpan<float> &logSumExp) {
  if (!c.cudnn())
    return attention<>(c, stream, name, shape, q, k, v, out, logSumExp);
  detail::attentionByCudnn(c, stream, name, shape, q, k, v, out, logSumExp);
}

inline void attention(Context &c, int stream, ActionName name, const AttentionShape &shape,
                      const ArenaSpan<bf16> &qkv, const ArenaSpan<bf16> &out,
                      const ArenaSpan<float> &logSumExp) {
  if (!c.cudnn())
    return attention<>(c, stream, name, shape, qkv, out, logSumExp);
  detail::attentionByCudnn(c, stream, name, shape, qkv, out, logSumExp);
}

inline void attention_grad(Context &c, int stream, ActionName name, const AttentionShape &shape,
                           const ArenaSpan<bf16> &q, const ArenaSpan<bf16> &k,
                           const ArenaSpan<bf16> &v, const ArenaSpan<bf16> &out,
                           const ArenaSpan<float> &logSumExp, const ArenaSpan<bf16> &dOut,
                           const ArenaSpan<bf16> &dQ, const ArenaSpan<bf16> &dK,
                           const ArenaSpan<bf16> &dV) {
  if (!c.cudnn())
    return attention_grad<>(c, stream, name, shape, q, k, v, out, logSumExp, dOut, dQ, dK, dV);
  detail::attentionGradByCudnn(c, stream, name, shape, q, k, v, out, logSumExp, dOut, dQ, dK, dV);
}

inline void attention_grad(Context &c, int stream, ActionName name, const AttentionShape &shape,
                           const ArenaSpan<bf16> &qkv, const ArenaSpan<bf16> &out,
                           const ArenaSpan<float> &logSumExp, const ArenaSpan<bf16> &dOut,
                           const ArenaSpan<bf16> &dQkv) {
  if (!c.cudnn())
    return attention_grad<>(c, stream, name, shape, qkv, out, logSumExp, dOut, dQkv);
  detail::attentionGradByCudnn(c, stream, name, shape, qkv, out, logSumExp, dOut, dQkv);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_CUDA_ATTENTION_H
