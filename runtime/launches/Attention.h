//===- Attention.h - launches of kernels/Attention.h ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_ATTENTION_H
#define FSDP_RUNTIME_LAUNCHES_ATTENTION_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/Attention.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

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

#endif // FSDP_RUNTIME_LAUNCHES_ATTENTION_H
