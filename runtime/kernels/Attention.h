//===- Attention.h - attention by blocks ------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_ATTENTION_H
#define FSDP_RUNTIME_KERNELS_ATTENTION_H

#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

// Everything is float or bf16 but logSumExp, which is float.

namespace kernels {
/// out[t, :] = sum over s of p[t, s] * v[s, :], where p[t, :] is the softmax of scale * q[t] . k[s]
/// over the keys that t sees; logSumExp[t] = log(sum over those of exp(scale * q[t] . k[s])). A
/// query that sees no key has out = 0 and logSumExp = -infinity. Scratch memory does not grow with
/// the number of queries, and with that of keys at most by a copy of one group's keys and values.
/// `out` is none of the others. Operands lie as the shape's strides say.
template <class T>
void attention(AttentionShape shape, const T *q, const T *k, const T *v, T *out, float *logSumExp);
/// The gradients of q, k and v; probabilities are computed again from logSumExp. Scratch memory
/// grows with the number of keys, not with that of heads.
template <class T>
void attentionGrad(AttentionShape shape, const T *q, const T *k, const T *v, const T *out,
                   const float *logSumExp, const T *dOut, T *dQ, T *dK, T *dV);
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_ATTENTION_H
