//===- Attention.h - attention of either element type ------------*- C++ -*-===//
//
// The implementation of the kernels of Kernels.def for attention, with queries, keys and values in
// one operand or in three: `bias` and `documents` are null where there are none.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ATTENTION_H
#define FSDP_RUNTIME_KERNELS_CUDA_ATTENTION_H

#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace fsdp::rt::device {

#define FSDP_ATTENTION(T)                                                                          \
  cudaError_t attend(AttentionShape s, const T *q, const T *k, const T *v, const float *bias,      \
                     const std::int32_t *documents, T *out, float *logSumExp, WorkStream stream);  \
  cudaError_t attendGrad(AttentionShape s, const T *q, const T *k, const T *v, const float *bias,  \
                         const std::int32_t *documents, const T *out, const float *logSumExp,      \
                         const T *dOut, T *dQ, T *dK, T *dV, WorkStream stream);                   \
  cudaError_t attendBiasGrad(AttentionShape s, const T *q, const T *k, const T *v,                 \
                             const float *bias, const std::int32_t *documents, const T *out,       \
                             const float *logSumExp, const T *dOut, float *dBias,                  \
                             WorkStream stream);
FSDP_ATTENTION(float)
FSDP_ATTENTION(bf16)
#undef FSDP_ATTENTION

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ATTENTION_H
