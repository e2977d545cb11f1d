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

/// Launches `body(shape, addresses..., stream)`, of which the first `read` are read. `flops`: as in
/// the row of Kernels.def.
template <std::size_t read, class Body, class... S>
void launchCudnn(Context &c, int stream, ActionName name, Work work, const AttentionShape &shape,
                 const Body &body, ArenaSpan<S>... slices) {
  if (c.isPreparing())
    return c.prepareAttention(stream, name.text, shape, /*isGradient=*/read > 3);
  launchKernel<read>(std::index_sequence_for<S...>(), c, stream, name, work, body, shape,
                     slices...);
}

} // namespace detail

inline void attention(Context &c, int stream, ActionName name, const AttentionShape &shape,
                      const ArenaSpan<bf16> &q, const ArenaSpan<bf16> &k, const ArenaSpan<bf16> &v,
                      const ArenaSpan<bf16> &out, const ArenaSpan<float> &logSumExp) {
  if (!c.cudnn())
    return attention<>(c, stream, name, shape, q, k, v, out, logSumExp);
  detail::launchCudnn<3>(
      c, stream, name, Work{"attention", 1}, shape,
      [&c](const AttentionShape &s, const bf16 *q, const bf16 *k, const bf16 *v, bf16 *out,
           float *logSumExp,
           WorkStream on) { return c.cudnn()->forward(s, q, k, v, out, logSumExp, on); },
      q, k, v, out, logSumExp);
}

inline void attention(Context &c, int stream, ActionName name, const AttentionShape &shape,
                      const ArenaSpan<bf16> &qkv, const ArenaSpan<bf16> &out,
                      const ArenaSpan<float> &logSumExp) {
  if (!c.cudnn())
    return attention<>(c, stream, name, shape, qkv, out, logSumExp);
  detail::launchCudnn<1>(
      c, stream, name, Work{"attention", 1}, shape,
      [&c](const AttentionShape &s, const bf16 *qkv, bf16 *out, float *logSumExp, WorkStream on) {
        return c.cudnn()->forward(s, qkv, qkv + s.part, qkv + 2 * s.part, out, logSumExp, on);
      },
      qkv, out, logSumExp);
}

inline void attention_grad(Context &c, int stream, ActionName name, const AttentionShape &shape,
                           const ArenaSpan<bf16> &q, const ArenaSpan<bf16> &k,
                           const ArenaSpan<bf16> &v, const ArenaSpan<bf16> &out,
                           const ArenaSpan<float> &logSumExp, const ArenaSpan<bf16> &dOut,
                           const ArenaSpan<bf16> &dQ, const ArenaSpan<bf16> &dK,
                           const ArenaSpan<bf16> &dV) {
  if (!c.cudnn())
    return attention_grad<>(c, stream, name, shape, q, k, v, out, logSumExp, dOut, dQ, dK, dV);
  detail::launchCudnn<6>(
      c, stream, name, Work{"attention_grad", 2.5}, shape,
      [&c](const AttentionShape &s, const bf16 *q, const bf16 *k, const bf16 *v, const bf16 *out,
           const float *logSumExp, const bf16 *dOut, bf16 *dQ, bf16 *dK, bf16 *dV, WorkStream on) {
        return c.cudnn()->gradient(s, {q, k, v, out, dOut, logSumExp, dQ, dK, dV}, on);
      },
      q, k, v, out, logSumExp, dOut, dQ, dK, dV);
}

inline void attention_grad(Context &c, int stream, ActionName name, const AttentionShape &shape,
                           const ArenaSpan<bf16> &qkv, const ArenaSpan<bf16> &out,
                           const ArenaSpan<float> &logSumExp, const ArenaSpan<bf16> &dOut,
                           const ArenaSpan<bf16> &dQkv) {
  if (!c.cudnn())
    return attention_grad<>(c, stream, name, shape, qkv, out, logSumExp, dOut, dQkv);
  detail::launchCudnn<4>(
      c, stream, name, Work{"attention_grad", 2.5}, shape,
      [&c](const AttentionShape &s, const bf16 *qkv, const bf16 *out, const float *logSumExp,
           const bf16 *dOut, bf16 *dQkv, WorkStream on) {
        const std::size_t k = s.part, v = 2 * s.part;
        return c.cudnn()->gradient(
            s, {qkv, qkv + k, qkv + v, out, dOut, logSumExp, dQkv, dQkv + k, dQkv + v}, on);
      },
      qkv, out, logSumExp, dOut, dQkv);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_CUDA_ATTENTION_H
