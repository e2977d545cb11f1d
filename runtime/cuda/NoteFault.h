//===- NoteFault.h - how a kernel notes an index out of range ----*- C++ -*-===//

#ifndef FSDP_RUNTIME_CUDA_NOTEFAULT_H
#define FSDP_RUNTIME_CUDA_NOTEFAULT_H

#include "runtime/cuda/IndexFault.h"

#include <cuda_runtime.h>

namespace fsdp::rt::device {

/// Keeps the first that comes; `fault` may be null.
__device__ inline void noteFault(IndexFault *fault, IndexFault::Kind kind, std::uint64_t place,
                                 std::int64_t got, std::uint64_t limit) {
  if (!fault || atomicAdd(&fault->count, 1u) > 0)
    return;
  fault->kind = kind;
  fault->place = place;
  fault->got = got;
  fault->limit = limit;
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_CUDA_NOTEFAULT_H
