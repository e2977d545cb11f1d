//===- Update.h - updates of parameter shards -------------------*- C++ -*-===//
//
// The loop around a program's update rule. Floor for n elements of f32 and a rule of s states:
// (12 + 8 s) n bytes (parameter and states read and written, gradient read): one pass, in 16-byte
// accesses. Rate, scale, verdict and step number are read on the device.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_UPDATE_H
#define FSDP_RUNTIME_KERNELS_CUDA_UPDATE_H

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/ShardParts.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/StepState.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fsdp::rt::device {

/// Operands of all updates besides parameter and states.
struct UpdateOperands {
  const float *gradient, *lr, *scale; ///< scale null: 1
  const bool *ok;
  const StepState *state;
  std::int32_t *firstBad; ///< see BadGradients
  bool deferred;          ///< the step state has counted the update already
};

/// The parameter, then the states.
template <int N> struct Updated {
  float *address[N];
};

constexpr unsigned kUpdateThreads = 256;
constexpr std::size_t kUpdateChunk = 8192; ///< elements of a block

/// W elements from i on. A rule takes an index and the arrays of the elements: parameter, gradient,
/// states, then where the new parameter and states go.
template <int W, class Rule, int N, std::size_t... S>
__device__ void updateAt(const Rule &rule, const ShardParts &parts, const UpdateOperands &u,
                         const Updated<N> &updated, std::size_t i, int &part,
                         std::index_sequence<S...>) {
  float gradient[W], values[N][W];
  loadFloats(u.gradient + i, true, gradient);
#pragma unroll
  for (int n = 0; n < N; ++n)
    loadFloats(static_cast<const float *>(updated.address[n]) + i, true, values[n]);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    part = parts.partOf(i + k, part);
    rule.apply(k, parts.decays(part), values[0], gradient, values[1 + S]..., values[0],
               values[1 + S]...);
  }
#pragma unroll
  for (int n = 0; n < N; ++n)
    storeFloats(values[n], updated.address[n] + i);
}

/// Elements [begin, end) of the shard; `vectors`: all addresses are aligned.
template <class Rule, int N>
__global__ void __launch_bounds__(kUpdateThreads)
    updateKernel(ShardParts parts, UpdateOperands u, Updated<N> updated, std::size_t begin,
                 std::size_t end, bool vectors) {
  const std::size_t first = begin + blockIdx.x * kUpdateChunk;
  const std::size_t last = first + kUpdateChunk < end ? first + kUpdateChunk : end;
  int part = 0;
  if (!*u.ok) {
    // The first parameter with a gradient that is not finite, for the message that ends the job.
    for (std::size_t i = first + threadIdx.x; i < last; i += kUpdateThreads)
      if (!isfinite(u.gradient[i])) {
        part = parts.partOf(i, part);
        // -1, for none, is the largest unsigned number.
        atomicMin(reinterpret_cast<unsigned *>(u.firstBad),
                  static_cast<unsigned>(parts.firstParameter + part));
      }
    return;
  }
  // Values that depend on the step alone are computed once per block.
  __shared__ Rule prepared;
  if (threadIdx.x == 0) {
    Rule rule;
    rule.step.lr = *u.lr * parts.rateScale;
    rule.step.scale = u.scale ? *u.scale : 1.0f;
    rule.step.count = static_cast<double>(u.state->updates + !u.deferred);
    for (std::size_t k = 0; k < limits::kMaxUpdateConstants; ++k)
      rule.step.constants[k] = u.state->constants[k];
    rule.prepare();
    prepared = rule;
  }
  __syncthreads();
  const Rule rule = prepared;
  const std::make_index_sequence<N - 1> states;
  const std::size_t whole = vectors ? first + (last - first) / 4 * 4 : first;
  for (std::size_t i = first + threadIdx.x * 4; i < whole; i += kUpdateThreads * 4)
    updateAt<4>(rule, parts, u, updated, i, part, states);
  for (std::size_t i = whole + threadIdx.x; i < last; i += kUpdateThreads)
    updateAt<1>(rule, parts, u, updated, i, part, states);
}

/// Applies `Rule` to a shard: a generated type with a member `UpdateStep step`, a function
/// prepare() that runs once a block, and apply (see updateAt).
template <class Rule, int N>
cudaError_t update(ShardOf shard, const UpdateOperands &u, const Updated<N> &updated,
                   cudaStream_t stream) {
  const std::size_t count = shard.storage->shard.count;
  bool vectors = aligned16(u.gradient);
  for (float *address : updated.address)
    vectors = vectors && aligned16(address);
  noteVectors(vectors);
  ShardParts parts;
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t end = parts.fill(shard, begin);
    if (cudaError_t status = launchKernel(
            updateKernel<Rule, N>, dim3(ceilDiv(end - begin, kUpdateChunk)), kUpdateThreads, 0,
            stream, parts, u, updated, begin, end, vectors && begin % 4 == 0))
      return status;
    begin = end;
  }
  return cudaSuccess;
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_UPDATE_H
