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
#include "runtime/program/ShardUpdates.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fsdp::rt::device {

/// Consecutive elements [begin, end) of a shard, whose members have rates of one scale.
template <int N> struct UpdatePiece {
  ShardParts parts;
  const float *gradient;
  float *updated[N]; ///< the parameter, then the states
  std::size_t begin, end;
  unsigned blocks; ///< up to its end, with those of the pieces before it
  bool vectors;    ///< all addresses are aligned
};

/// Pieces for one kernel, few enough to be its argument.
template <int N> struct UpdatePieces {
  static constexpr int kMax = 8;

  UpdatePiece<N> pieces[kMax];
  const float *lr, *scale; ///< scale null: 1
  const bool *ok;
  const StepState *state;
  std::int32_t *firstBad; ///< see BadGradients
  bool deferred;          ///< the step state has counted the updates already
};

constexpr unsigned kUpdateThreads = 256;
constexpr std::size_t kUpdateChunk = 8192; ///< elements of a block

/// W elements from i on. A rule takes an index and the arrays of the elements: parameter, gradient,
/// states, then where the new parameter and states go.
template <int W, class Rule, int N, std::size_t... S>
__device__ void updateAt(const Rule &rule, const UpdatePiece<N> &piece, std::size_t i, int &part,
                         std::index_sequence<S...>) {
  float gradient[W], values[N][W];
  loadFloats(piece.gradient + i, true, gradient);
#pragma unroll
  for (int n = 0; n < N; ++n)
    loadFloats(static_cast<const float *>(piece.updated[n]) + i, true, values[n]);
#pragma unroll
  for (int k = 0; k < W; ++k) {
    part = piece.parts.partOf(i + k, part);
    rule.apply(k, piece.parts.decays(part), values[0], gradient, values[1 + S]..., values[0],
               values[1 + S]...);
  }
#pragma unroll
  for (int n = 0; n < N; ++n)
    storeFloats(values[n], piece.updated[n] + i);
}

/// A block has up to kUpdateChunk elements of one piece.
template <class Rule, int N>
__global__ void __launch_bounds__(kUpdateThreads) updateKernel(UpdatePieces<N> all) {
  int number = 0;
  while (blockIdx.x >= all.pieces[number].blocks)
    ++number;
  const UpdatePiece<N> &piece = all.pieces[number];
  const unsigned before = number > 0 ? all.pieces[number - 1].blocks : 0;
  const std::size_t first = piece.begin + (blockIdx.x - before) * kUpdateChunk;
  const std::size_t last = first + kUpdateChunk < piece.end ? first + kUpdateChunk : piece.end;
  int part = 0;
  if (!*all.ok) {
    // The first parameter with a gradient that is not finite, for the message that ends the job.
    for (std::size_t i = first + threadIdx.x; i < last; i += kUpdateThreads)
      if (!isfinite(piece.gradient[i])) {
        part = piece.parts.partOf(i, part);
        // -1, for none, is the largest unsigned number.
        atomicMin(reinterpret_cast<unsigned *>(all.firstBad),
                  static_cast<unsigned>(piece.parts.firstParameter + part));
      }
    return;
  }
  // Values that depend on the step alone are computed once per block.
  __shared__ Rule prepared;
  if (threadIdx.x == 0) {
    Rule rule;
    rule.step.lr = *all.lr * piece.parts.rateScale;
    rule.step.scale = all.scale ? *all.scale : 1.0f;
    rule.step.count = static_cast<double>(all.state->updates + !all.deferred);
    for (std::size_t k = 0; k < limits::kMaxUpdateConstants; ++k)
      rule.step.constants[k] = all.state->constants[k];
    rule.prepare();
    prepared = rule;
  }
  __syncthreads();
  const Rule rule = prepared;
  const std::make_index_sequence<N - 1> states;
  const std::size_t whole = piece.vectors ? first + (last - first) / 4 * 4 : first;
  for (std::size_t i = first + threadIdx.x * 4; i < whole; i += kUpdateThreads * 4)
    updateAt<4>(rule, piece, i, part, states);
  for (std::size_t i = whole + threadIdx.x; i < last; i += kUpdateThreads)
    updateAt<1>(rule, piece, i, part, states);
}

/// Applies `Rule` to shards: a generated type with a member `UpdateStep step`, a function prepare()
/// that runs once a block, and apply (see updateAt).
template <class Rule, int N>
cudaError_t update(const ShardUpdates<N> &updates, cudaStream_t stream) {
  UpdatePieces<N> all{
      {}, updates.lr, updates.scale, updates.ok, updates.state, updates.firstBad, updates.deferred};
  int count = 0;
  const auto launch = [&] {
    const unsigned blocks = count > 0 ? all.pieces[count - 1].blocks : 0;
    count = 0;
    return launchKernel(updateKernel<Rule, N>, dim3(blocks), kUpdateThreads, 0, stream, all);
  };
  bool vectors = true;
  for (std::size_t u = 0; u < updates.count; ++u) {
    const auto &shard = updates.shards[u];
    bool aligned = aligned16(shard.gradient);
    for (float *address : shard.updated)
      aligned = aligned && aligned16(address);
    vectors = vectors && aligned;
    const std::size_t size = shard.shard.storage->shard.count;
    for (std::size_t begin = 0; begin < size;) {
      if (count == UpdatePieces<N>::kMax)
        if (cudaError_t status = launch())
          return status;
      UpdatePiece<N> &piece = all.pieces[count];
      piece.begin = begin;
      piece.end = begin = piece.parts.fill(shard.shard, begin);
      piece.gradient = shard.gradient;
      for (int n = 0; n < N; ++n)
        piece.updated[n] = shard.updated[n];
      piece.vectors = aligned && piece.begin % 4 == 0;
      const auto blocks = static_cast<unsigned>(ceilDiv(piece.end - piece.begin, kUpdateChunk));
      piece.blocks = blocks + (count > 0 ? all.pieces[count - 1].blocks : 0);
      ++count;
    }
  }
  noteVectors(vectors);
  return launch();
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_UPDATE_H
