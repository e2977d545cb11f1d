//===- TestRules.h - update rules written by hand ---------------*- C++ -*-===//
//
// As the compiler prints them (codegen/CudaUpdatePrinter.cpp): what runtime/kernels/cuda/Update.h
// does around a rule is tested with these.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_CUDA_TESTRULES_H
#define FSDP_TEST_UNIT_CUDA_TESTRULES_H

#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"

#include <cuda_runtime.h>

namespace fsdp::rt {

inline constexpr float kTestDecay = 0.5f;

/// p -= lr * (g * scale + decay * p)
cudaError_t descend(ShardOf shard, bool deferred, const float *gradient, const float *lr,
                    const float *scale, const bool *ok, const StepState *state, float *parameter,
                    std::int32_t *firstBad, cudaStream_t stream);

/// first = (first + g * scale) / count; second = first * second; p -= lr * second + decay * p
cudaError_t average(ShardOf shard, bool deferred, const float *gradient, const float *lr,
                    const float *scale, const bool *ok, const StepState *state, float *parameter,
                    float *first, float *second, std::int32_t *firstBad, cudaStream_t stream);

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_CUDA_TESTRULES_H
