//===- Kernels.h - the device's kernels as functions -------------*- C++ -*-===//
//
// For each row of Kernels.def `name(shape, read..., written..., stream)`, which enqueues its
// kernels and returns. The row has its semantics; the CPU's functions are the reference for tests.
// Results are the same bits in every run.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_KERNELS_H
#define FSDP_RUNTIME_KERNELS_CUDA_KERNELS_H

#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/kernels/ElementTypes.h"
#include "runtime/kernels/cuda/DropoutDraw.h"
#include "runtime/program/Limits.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fsdp::rt {

namespace signatures {

template <class Signature, class Stream> struct Enqueues;
template <class... P, class Stream> struct Enqueues<void(P...), Stream> {
  using Function = cudaError_t(P..., Stream);
};

#define FSDP_KERNEL(name, function, types, flops, parameters, Stream)                              \
  FSDP_TEMPLATE_ALL using function##OnDevice = typename Enqueues<void parameters, Stream>::Function;
#include "runtime/program/Kernels.def"

} // namespace signatures

#define FSDP_INSTANCE(name, function, T, Id, Sum)                                                  \
  signatures::function##OnDevice<T, Id, Sum, 1> name;
#define FSDP_KERNEL(name, function, types, flops, parameters, Stream)                              \
  FSDP_INSTANCES_##types(FSDP_INSTANCE, name, function)
#include "runtime/program/Kernels.def"
#undef FSDP_INSTANCE

/// Whether this program holds kernels that the calling thread's device can run:
/// cudaErrorNoKernelImageForDevice where it does not.
cudaError_t find_kernels();

//===----------------------------------------------------------------------===//
// Kernels for any number of operands, and for elements of any type
//===----------------------------------------------------------------------===//

namespace device {
template <class T>
cudaError_t dropout(const DropoutRuns &runs, const StepState *state, const T *x, T *y,
                    cudaStream_t stream);
cudaError_t slice(Part part, std::size_t elementBytes, const void *whole, void *piece,
                  cudaStream_t stream);
cudaError_t pad(Part part, std::size_t elementBytes, const void *piece, void *whole,
                cudaStream_t stream);
cudaError_t insert(Part part, std::size_t elementBytes, const void *piece, void *whole,
                   cudaStream_t stream);
} // namespace device

template <std::size_t N, class T>
cudaError_t dropout(const DropoutMask<N> &mask, const StepState *state, const T *x, T *y,
                    cudaStream_t stream) {
  return device::dropout(device::DropoutRuns::of(mask), state, x, y, stream);
}
template <class T> cudaError_t slice(Part part, const T *whole, T *piece, cudaStream_t stream) {
  return device::slice(part, sizeof(T), whole, piece, stream);
}
template <class T> cudaError_t pad(Part part, const T *piece, T *whole, cudaStream_t stream) {
  return device::pad(part, sizeof(T), piece, whole, stream);
}

/// Tensors whose squares are added up.
struct SquaredShards {
  static constexpr int kMax = limits::kMaxSquaredShards;
  int count = 0;
  std::size_t counts[kMax];
  const float *values[kMax];
};
namespace device {
cudaError_t square_sums(const SquaredShards &shards, double *sum, WorkStream stream);
}
/// square_sums(counts, values..., sum, stream)
template <std::size_t N, class... Rest>
cudaError_t square_sums(const Counts<N> &counts, Rest... rest) {
  static_assert(sizeof...(Rest) == N + 2 && N <= limits::kMaxSquaredShards,
                "the tensors, the result and a stream");
  SquaredShards shards;
  double *sum = nullptr;
  WorkStream on{};
  const auto visit = [&](auto operand) {
    if constexpr (std::is_convertible_v<decltype(operand), const float *>) {
      shards.counts[shards.count] = counts.of[shards.count];
      shards.values[shards.count++] = operand;
    } else if constexpr (std::is_convertible_v<decltype(operand), double *>) {
      sum = operand;
    } else {
      on = operand;
    }
  };
  (visit(rest), ...);
  return device::square_sums(shards, sum, on);
}

/// concat(join, input..., joined, stream): one after another in each of `outer` runs of `joined`.
template <std::size_t N, class... Rest> cudaError_t concat(const Join<N> &join, Rest... rest) {
  static_assert(sizeof...(Rest) == N + 2, "the inputs, the result and a stream");
  const void *inputs[N];
  void *joined = nullptr;
  std::size_t count = 0, elementBytes = 0;
  cudaStream_t on = nullptr;
  const auto visit = [&](auto operand) {
    if constexpr (std::is_convertible_v<decltype(operand), cudaStream_t>)
      on = operand;
    else if (count < N)
      inputs[count++] = operand, elementBytes = sizeof *operand;
    else
      joined = const_cast<void *>(static_cast<const void *>(operand));
  };
  (visit(rest), ...);
  Part part = {join.outer, 0, 0, 0};
  for (std::size_t size : join.sizes)
    part.whole += size;
  for (std::size_t i = 0; i < N; part.start += part.size, ++i) {
    part.size = join.sizes[i];
    if (cudaError_t status = device::insert(part, elementBytes, inputs[i], joined, on))
      return status;
  }
  return cudaSuccess;
}

/// The part of `whole` that the rank of index `rank` keeps, into `piece`, zeros in its padding.
cudaError_t slice_piece(ShardLayout tile, std::size_t rank, std::size_t elementBytes,
                        const void *whole, void *piece, cudaStream_t stream);
template <class T>
cudaError_t all_slice(RankPiece part, const T *whole, T *piece, cudaStream_t stream) {
  return slice_piece(part.layout(), static_cast<std::size_t>(part.index), sizeof(T), whole, piece,
                     stream);
}
/// The pieces of all ranks, one after another, padding included as zeros: the operand of a plain
/// reduce-scatter.
cudaError_t pack_pieces(ShardLayout tile, std::size_t ranks, std::size_t elementBytes,
                        const void *whole, void *pieces, cudaStream_t stream);
/// The opposite, for the result of a plain all-gather; padding is left out.
cudaError_t unpack_pieces(ShardLayout tile, std::size_t ranks, std::size_t elementBytes,
                          const void *pieces, void *whole, cudaStream_t stream);

//===----------------------------------------------------------------------===//
// Ranks that share a device
//===----------------------------------------------------------------------===//

/// The address of each rank's operand, in rank order.
struct RankSources {
  static constexpr int kMax = limits::kMaxLoopbackRanks;
  int count;
  const void *address[kMax];
};
/// target[i] = ((source 0 [i] + source 1 [i]) + ...), or the largest, which is NaN if one is; bf16
/// sums are rounded once. `target` may be one of the sources.
cudaError_t reduce_in_rank_order(const RankSources &sources, void *target, std::size_t count,
                                 DType type, ReduceOp op, cudaStream_t stream);

// Templates have the types of their rows too.
namespace signatures {
#define FSDP_KERNEL(name, function, types, flops, parameters, Stream)                              \
  using function##Checked =                                                                        \
      decltype(static_cast<function##OnDevice<float, std::int32_t, float, 1> *>(                   \
          ::fsdp::rt::name));
#include "runtime/program/Kernels.def"
} // namespace signatures

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CUDA_KERNELS_H
