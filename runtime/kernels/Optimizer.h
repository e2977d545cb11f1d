//===- Optimizer.h - updates of parameter shards ----------------*- C++ -*-===//
//
// All updates are in place, elementwise on a shard, and skipped as a whole when
// `ok` is false. The gradient is multiplied by `scale` (the clipping
// coefficient) first; an empty slice stands for 1 and is not read. Padding has
// gradient zero and stays zero.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_OPTIMIZER_H
#define FSDP_RUNTIME_KERNELS_OPTIMIZER_H

#include "runtime/program/KernelArguments.h"
#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>
#include <tuple>

namespace fsdp::rt {

namespace kernels {
/// `buffer` is null when momentum is 0; `scale` null stands for 1.
void sgd(ShardOf shard, Sgd options, float *parameter, const float *gradient, float *buffer,
         float lr, const float *scale);
/// `update` is the number of this update, from 1; that of the next one where it is deferred.
void adam(ShardOf shard, Adam options, float *parameter, const float *gradient, float *first,
          float *second, float lr, const float *scale, std::int64_t update);
void adamw(ShardOf shard, Adam options, float *parameter, const float *gradient, float *first,
           float *second, float lr, const float *scale, std::int64_t update);
/// Notes the first parameter of the shard whose gradient is not finite in `firstBad` (see
/// BadGradients), unless that is an earlier one.
void noteBadGradient(ShardOf shard, const float *gradient, std::int32_t &firstBad);
/// The sum of squares in double, in index order within fixed lanes.
double squareSum(const float *values, std::size_t count);
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_OPTIMIZER_H
