//===- Attention.h - attention by blocks ------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_ATTENTION_H
#define FSDP_RUNTIME_ATTENTION_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// out[t, :] = sum over s of p[t, s] * v[s, :], where p[t, :] is the softmax of scale * q[t] . k[s]
/// over the keys that t sees; logSumExp[t] = log(sum over those of exp(scale * q[t] . k[s])). A
/// query that sees no key has out = 0 and logSumExp = -infinity. Scratch memory does not grow with
/// the number of queries or keys. `out` is none of the others.
void attention(AttentionShape shape, const float *q, const float *k, const float *v, float *out,
               float *logSumExp);
/// The gradients of q, k and v; probabilities are computed again from logSumExp.
void attentionGrad(AttentionShape shape, const float *q, const float *k, const float *v,
                   const float *out, const float *logSumExp, const float *dOut, float *dQ,
                   float *dK, float *dV);
} // namespace kernels

/// Scaled dot-product attention; `logSumExp` is kept for the gradient.
inline void attention(Context &c, int stream, const char *name, AttentionShape shape,
                      Slice<float> q, Slice<float> k, Slice<float> v, Slice<float> out,
                      Slice<float> logSumExp) {
  launch(c, stream, name, reads(q, k, v), writes(out, logSumExp),
         [shape](const float *q, const float *k, const float *v, float *out, float *logSumExp) {
           kernels::attention(shape, q, k, v, out, logSumExp);
         });
}

/// The gradient of `attention`.
inline void attention_grad(Context &c, int stream, const char *name, AttentionShape shape,
                           Slice<float> q, Slice<float> k, Slice<float> v, Slice<float> out,
                           Slice<float> logSumExp, Slice<float> dOut, Slice<float> dQ,
                           Slice<float> dK, Slice<float> dV) {
  launch(c, stream, name, reads(q, k, v, out, logSumExp, dOut), writes(dQ, dK, dV),
         [shape](const float *q, const float *k, const float *v, const float *out,
                 const float *logSumExp, const float *dOut, float *dQ, float *dK, float *dV) {
           kernels::attentionGrad(shape, q, k, v, out, logSumExp, dOut, dQ, dK, dV);
         });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ATTENTION_H
