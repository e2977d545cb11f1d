//===- Attention.h - attention by blocks ------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_ATTENTION_H
#define FSDP_RUNTIME_KERNELS_ATTENTION_H

#include "runtime/execution/Launch.h"
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

/// Scaled dot-product attention; `logSumExp` is kept for the gradient.
template <class T>
void attention(Context &c, int stream, const char *name, AttentionShape shape, ArenaSpan<T> q,
               ArenaSpan<T> k, ArenaSpan<T> v, ArenaSpan<T> out, ArenaSpan<float> logSumExp) {
  launch(
      c, stream, name, reads(q, k, v), writes(out, logSumExp),
      [shape](const T *q, const T *k, const T *v, T *out, float *logSumExp) {
        kernels::attention(shape, q, k, v, out, logSumExp);
      },
      attentionWork(shape));
}

/// The same where one operand holds queries, keys and values.
template <class T>
void attention(Context &c, int stream, const char *name, AttentionShape shape, ArenaSpan<T> qkv,
               ArenaSpan<T> out, ArenaSpan<float> logSumExp) {
  launch(
      c, stream, name, reads(qkv), writes(out, logSumExp),
      [shape](const T *qkv, T *out, float *logSumExp) {
        kernels::attention(shape, qkv, qkv + shape.part, qkv + 2 * shape.part, out, logSumExp);
      },
      Work{"attention", flopsOf(shape)});
}

/// The gradient of `attention`.
template <class T>
void attention_grad(Context &c, int stream, const char *name, AttentionShape shape, ArenaSpan<T> q,
                    ArenaSpan<T> k, ArenaSpan<T> v, ArenaSpan<T> out, ArenaSpan<float> logSumExp,
                    ArenaSpan<T> dOut, ArenaSpan<T> dQ, ArenaSpan<T> dK, ArenaSpan<T> dV) {
  launch(
      c, stream, name, reads(q, k, v, out, logSumExp, dOut), writes(dQ, dK, dV),
      [shape](const T *q, const T *k, const T *v, const T *out, const float *logSumExp,
              const T *dOut, T *dQ, T *dK,
              T *dV) { kernels::attentionGrad(shape, q, k, v, out, logSumExp, dOut, dQ, dK, dV); },
      attentionGradWork(shape));
}

/// The same where one operand holds queries, keys and values, and one result their gradients.
template <class T>
void attention_grad(Context &c, int stream, const char *name, AttentionShape shape,
                    ArenaSpan<T> qkv, ArenaSpan<T> out, ArenaSpan<float> logSumExp,
                    ArenaSpan<T> dOut, ArenaSpan<T> dQkv) {
  launch(
      c, stream, name, reads(qkv, out, logSumExp, dOut), writes(dQkv),
      [shape](const T *qkv, const T *out, const float *logSumExp, const T *dOut, T *dQkv) {
        const std::size_t part = shape.part;
        kernels::attentionGrad(shape, qkv, qkv + part, qkv + 2 * part, out, logSumExp, dOut, dQkv,
                               dQkv + part, dQkv + 2 * part);
      },
      Work{"attention_grad", 2.5 * flopsOf(shape)});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_ATTENTION_H
