//===- AttentionForms.cu - the rows of Kernels.def for attention ----------===//
//
// An operand that a row does not have is null; one that holds queries, keys and values has them
// `part` numbers apart.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/Attention.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

#define FORMS(T)                                                                                   \
  cudaError_t attention(AttentionShape s, const T *q, const T *k, const T *v, T *out,              \
                        float *logSumExp, cudaStream_t stream) {                                   \
    return device::attend(s, q, k, v, nullptr, nullptr, out, logSumExp, {stream});                 \
  }                                                                                                \
  cudaError_t attention(AttentionShape s, const T *q, const T *k, const T *v,                      \
                        const std::int32_t *documents, T *out, float *logSumExp,                   \
                        cudaStream_t stream) {                                                     \
    return device::attend(s, q, k, v, nullptr, documents, out, logSumExp, {stream});               \
  }                                                                                                \
  cudaError_t attention(AttentionShape s, const T *qkv, T *out, float *logSumExp,                  \
                        cudaStream_t stream) {                                                     \
    return device::attend(s, qkv, qkv + s.part, qkv + 2 * s.part, nullptr, nullptr, out,           \
                          logSumExp, {stream});                                                    \
  }                                                                                                \
  cudaError_t attention(AttentionShape s, const T *qkv, const std::int32_t *documents, T *out,     \
                        float *logSumExp, cudaStream_t stream) {                                   \
    return device::attend(s, qkv, qkv + s.part, qkv + 2 * s.part, nullptr, documents, out,         \
                          logSumExp, {stream});                                                    \
  }                                                                                                \
  cudaError_t biased_attention(AttentionShape s, const T *q, const T *k, const T *v,               \
                               const float *bias, T *out, float *logSumExp, WorkStream stream) {   \
    return device::attend(s, q, k, v, bias, nullptr, out, logSumExp, stream);                      \
  }                                                                                                \
  cudaError_t biased_attention(AttentionShape s, const T *q, const T *k, const T *v,               \
                               const float *bias, const std::int32_t *documents, T *out,           \
                               float *logSumExp, WorkStream stream) {                              \
    return device::attend(s, q, k, v, bias, documents, out, logSumExp, stream);                    \
  }                                                                                                \
  cudaError_t biased_attention(AttentionShape s, const T *qkv, const float *bias, T *out,          \
                               float *logSumExp, WorkStream stream) {                              \
    return device::attend(s, qkv, qkv + s.part, qkv + 2 * s.part, bias, nullptr, out, logSumExp,   \
                          stream);                                                                 \
  }                                                                                                \
  cudaError_t biased_attention(AttentionShape s, const T *qkv, const float *bias,                  \
                               const std::int32_t *documents, T *out, float *logSumExp,            \
                               WorkStream stream) {                                                \
    return device::attend(s, qkv, qkv + s.part, qkv + 2 * s.part, bias, documents, out, logSumExp, \
                          stream);                                                                 \
  }                                                                                                \
  cudaError_t attention_grad(AttentionShape s, const T *q, const T *k, const T *v, const T *out,   \
                             const float *logSumExp, const T *dOut, T *dQ, T *dK, T *dV,           \
                             WorkStream stream) {                                                  \
    return device::attendGrad(s, q, k, v, nullptr, nullptr, out, logSumExp, dOut, dQ, dK, dV,      \
                              stream);                                                             \
  }                                                                                                \
  cudaError_t attention_grad(AttentionShape s, const T *q, const T *k, const T *v,                 \
                             const std::int32_t *documents, const T *out, const float *logSumExp,  \
                             const T *dOut, T *dQ, T *dK, T *dV, WorkStream stream) {              \
    return device::attendGrad(s, q, k, v, nullptr, documents, out, logSumExp, dOut, dQ, dK, dV,    \
                              stream);                                                             \
  }                                                                                                \
  cudaError_t attention_grad(AttentionShape s, const T *qkv, const T *out, const float *logSumExp, \
                             const T *dOut, T *dQkv, WorkStream stream) {                          \
    return device::attendGrad(s, qkv, qkv + s.part, qkv + 2 * s.part, nullptr, nullptr, out,       \
                              logSumExp, dOut, dQkv, dQkv + s.part, dQkv + 2 * s.part, stream);    \
  }                                                                                                \
  cudaError_t attention_grad(AttentionShape s, const T *qkv, const std::int32_t *documents,        \
                             const T *out, const float *logSumExp, const T *dOut, T *dQkv,         \
                             WorkStream stream) {                                                  \
    return device::attendGrad(s, qkv, qkv + s.part, qkv + 2 * s.part, nullptr, documents, out,     \
                              logSumExp, dOut, dQkv, dQkv + s.part, dQkv + 2 * s.part, stream);    \
  }                                                                                                \
  cudaError_t biased_attention_grad(AttentionShape s, const T *q, const T *k, const T *v,          \
                                    const float *bias, const T *out, const float *logSumExp,       \
                                    const T *dOut, T *dQ, T *dK, T *dV, WorkStream stream) {       \
    return device::attendGrad(s, q, k, v, bias, nullptr, out, logSumExp, dOut, dQ, dK, dV,         \
                              stream);                                                             \
  }                                                                                                \
  cudaError_t biased_attention_grad(AttentionShape s, const T *q, const T *k, const T *v,          \
                                    const float *bias, const std::int32_t *documents,              \
                                    const T *out, const float *logSumExp, const T *dOut, T *dQ,    \
                                    T *dK, T *dV, WorkStream stream) {                             \
    return device::attendGrad(s, q, k, v, bias, documents, out, logSumExp, dOut, dQ, dK, dV,       \
                              stream);                                                             \
  }                                                                                                \
  cudaError_t biased_attention_grad(AttentionShape s, const T *qkv, const float *bias,             \
                                    const T *out, const float *logSumExp, const T *dOut, T *dQkv,  \
                                    WorkStream stream) {                                           \
    return device::attendGrad(s, qkv, qkv + s.part, qkv + 2 * s.part, bias, nullptr, out,          \
                              logSumExp, dOut, dQkv, dQkv + s.part, dQkv + 2 * s.part, stream);    \
  }                                                                                                \
  cudaError_t biased_attention_grad(                                                               \
      AttentionShape s, const T *qkv, const float *bias, const std::int32_t *documents,            \
      const T *out, const float *logSumExp, const T *dOut, T *dQkv, WorkStream stream) {           \
    return device::attendGrad(s, qkv, qkv + s.part, qkv + 2 * s.part, bias, documents, out,        \
                              logSumExp, dOut, dQkv, dQkv + s.part, dQkv + 2 * s.part, stream);    \
  }                                                                                                \
  cudaError_t attention_bias_grad(AttentionShape s, const T *q, const T *k, const T *v,            \
                                  const float *bias, const T *out, const float *logSumExp,         \
                                  const T *dOut, float *dBias, WorkStream stream) {                \
    return device::attendBiasGrad(s, q, k, v, bias, nullptr, out, logSumExp, dOut, dBias, stream); \
  }                                                                                                \
  cudaError_t attention_bias_grad(AttentionShape s, const T *q, const T *k, const T *v,            \
                                  const float *bias, const std::int32_t *documents, const T *out,  \
                                  const float *logSumExp, const T *dOut, float *dBias,             \
                                  WorkStream stream) {                                             \
    return device::attendBiasGrad(s, q, k, v, bias, documents, out, logSumExp, dOut, dBias,        \
                                  stream);                                                         \
  }                                                                                                \
  cudaError_t attention_bias_grad(AttentionShape s, const T *qkv, const float *bias, const T *out, \
                                  const float *logSumExp, const T *dOut, float *dBias,             \
                                  WorkStream stream) {                                             \
    return device::attendBiasGrad(s, qkv, qkv + s.part, qkv + 2 * s.part, bias, nullptr, out,      \
                                  logSumExp, dOut, dBias, stream);                                 \
  }                                                                                                \
  cudaError_t attention_bias_grad(                                                                 \
      AttentionShape s, const T *qkv, const float *bias, const std::int32_t *documents,            \
      const T *out, const float *logSumExp, const T *dOut, float *dBias, WorkStream stream) {      \
    return device::attendBiasGrad(s, qkv, qkv + s.part, qkv + 2 * s.part, bias, documents, out,    \
                                  logSumExp, dOut, dBias, stream);                                 \
  }
FORMS(float)
FORMS(bf16)
#undef FORMS

} // namespace fsdp::rt
