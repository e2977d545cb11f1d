//===- ReportBoundsError.h - how a kernel notes an index out of range ----*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_REPORTBOUNDSERROR_H
#define FSDP_RUNTIME_KERNELS_CUDA_REPORTBOUNDSERROR_H

#include "runtime/device/cuda/BoundsError.h"

#include <cuda_runtime.h>

namespace fsdp::rt::device {

/// Keeps the first that comes; `fault` may be null.
__device__ inline void reportBoundsError(BoundsError *fault, BoundsError::Kind kind,
                                         std::uint64_t place, std::int64_t got,
                                         std::uint64_t limit) {
  if (!fault || atomicAdd(&fault->count, 1u) > 0)
    return;
  fault->kind = kind;
  fault->place = place;
  fault->got = got;
  fault->limit = limit;
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_REPORTBOUNDSERROR_H
