//===- TestRules.h - update rules written by hand ---------------*- C++ -*-===//
//
// As the compiler prints them (codegen/CudaUpdatePrinter.cpp): what runtime/kernels/cuda/Update.h
// does around a rule is tested with these.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_CUDA_TESTRULES_H
#define FSDP_TEST_UNIT_CUDA_TESTRULES_H

#include "runtime/program/ShardUpdates.h"

#include <cuda_runtime.h>

namespace fsdp::rt {

inline constexpr float kTestDecay = 0.5f;

/// p -= lr * (g * scale + decay * p)
cudaError_t descend(const ShardUpdates<1> &updates, cudaStream_t stream);

/// first = (first + g * scale) / count; second = first * second; p -= lr * second + decay * p
cudaError_t average(const ShardUpdates<3> &updates, cudaStream_t stream);

/// The same of one shard.
inline cudaError_t descend(ShardOf shard, bool deferred, const float *gradient, const float *lr,
                           const float *scale, const bool *ok, const StepState *state,
                           float *parameter, std::int32_t *firstBad, cudaStream_t stream) {
  return descend({1, {{shard, gradient, {parameter}}}, lr, scale, ok, state, firstBad, deferred},
                 stream);
}
inline cudaError_t average(ShardOf shard, bool deferred, const float *gradient, const float *lr,
                           const float *scale, const bool *ok, const StepState *state,
                           float *parameter, float *first, float *second, std::int32_t *firstBad,
                           cudaStream_t stream) {
  return average({1,
                  {{shard, gradient, {parameter, first, second}}},
                  lr,
                  scale,
                  ok,
                  state,
                  firstBad,
                  deferred},
                 stream);
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_CUDA_TESTRULES_H
