//===- Kernels.h - the device's kernels as functions -------------*- C++ -*-===//
//
// Each enqueues its kernels on a stream and returns: the names, operands and meaning are those of
// the CPU's functions (runtime/kernels/RowNorm.h and so on), which are the reference for their
// tests; element types are float and bf16, where statistics, losses and sums over rows are float in
// both. Operands that the CPU may have in place may be so here. Results are the same bits in every
// run.
//
// What a kernel cannot do on a device is throw: a label or id out of range gives NaN, which the
// step's check of its loss finds.
//
// Those that need memory between their launches take a stream with its workspace.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_KERNELS_H
#define FSDP_RUNTIME_KERNELS_CUDA_KERNELS_H

#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/kernels/cuda/DropoutDraw.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/ShardLayout.h"
#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace fsdp::rt {

#define FSDP_FOR_ELEMENTS(T)                                                                       \
  cudaError_t layer_norm(NormRows shape, const T *x, const T *scale, const T *bias, T *y,          \
                         float *mean, float *rstd, cudaStream_t stream);                           \
  cudaError_t layer_norm_grad(NormRows shape, const T *x, const T *scale, const float *mean,       \
                              const float *rstd, const T *dY, T *dX, float *dScale, float *dBias,  \
                              WorkStream stream);                                                  \
  cudaError_t rms_norm(NormRows shape, const T *x, const T *scale, T *y, float *rstd,              \
                       cudaStream_t stream);                                                       \
  cudaError_t rms_norm_grad(NormRows shape, const T *x, const T *scale, const float *rstd,         \
                            const T *dY, T *dX, float *dScale, WorkStream stream);                 \
  /* Heads of up to 128 numbers; wider ones, and heads that are no multiple of the groups, are     \
     cudaErrorInvalidValue. */                                                                     \
  cudaError_t attention(AttentionShape shape, const T *q, const T *k, const T *v, T *out,          \
                        float *logSumExp, cudaStream_t stream);                                    \
  cudaError_t attention_grad(AttentionShape shape, const T *q, const T *k, const T *v,             \
                             const T *out, const float *logSumExp, const T *dOut, T *dQ, T *dK,    \
                             T *dV, WorkStream stream);
FSDP_FOR_ELEMENTS(float)
FSDP_FOR_ELEMENTS(bf16)
#undef FSDP_FOR_ELEMENTS

#define FSDP_UNARY(kernel, Shape)                                                                  \
  cudaError_t kernel(Shape shape, const float *x, float *y, cudaStream_t stream);                  \
  cudaError_t kernel(Shape shape, const bf16 *x, bf16 *y, cudaStream_t stream);
FSDP_UNARY_KERNELS(FSDP_UNARY)
#undef FSDP_UNARY

/// The same where one operand holds queries, keys and values, and one result their gradients.
template <class T>
cudaError_t attention(AttentionShape shape, const T *qkv, T *out, float *logSumExp,
                      cudaStream_t stream) {
  return attention(shape, qkv, qkv + shape.part, qkv + 2 * shape.part, out, logSumExp, stream);
}
template <class T>
cudaError_t attention_grad(AttentionShape shape, const T *qkv, const T *out, const float *logSumExp,
                           const T *dOut, T *dQkv, WorkStream stream) {
  const std::size_t part = shape.part;
  return attention_grad(shape, qkv, qkv + part, qkv + 2 * part, out, logSumExp, dOut, dQkv,
                        dQkv + part, dQkv + 2 * part, stream);
}

/// What numbers nothing is noted as the stream says (BoundsError.h), and gives NaN.
#define FSDP_FOR_ELEMENTS_AND_IDS(T, Id)                                                           \
  cudaError_t cross_entropy(LogitRows shape, const T *logits, const Id *labels, float *losses,     \
                            float *logSumExp, WorkStream stream);                                  \
  cudaError_t cross_entropy(LogitRows shape, const T *logits, const Id *labels, float *losses,     \
                            WorkStream stream);                                                    \
  cudaError_t cross_entropy_grad(LogitRows shape, const T *logits, const Id *labels,               \
                                 const float *logSumExp, const float *upstream, T *gradients,      \
                                 cudaStream_t stream);                                             \
  cudaError_t cross_entropy_grad(LogitRows shape, const T *logits, const Id *labels,               \
                                 const float *logSumExp, const float *upstream,                    \
                                 const std::int64_t *count, T *gradients, cudaStream_t stream);    \
  cudaError_t partial_cross_entropy(LogitRows shape, const T *logits, const Id *labels,            \
                                    const std::int64_t *count, float *top, float *sum,             \
                                    float *picked, WorkStream stream);                             \
  cudaError_t embedding(EmbeddingShape shape, const T *table, const Id *ids, T *out,               \
                        WorkStream stream);                                                        \
  cudaError_t embedding_grad(EmbeddingShape shape, const Id *ids, const T *dOut, float *dTable,    \
                             WorkStream stream);
FSDP_FOR_ELEMENTS_AND_IDS(float, std::int32_t)
FSDP_FOR_ELEMENTS_AND_IDS(float, std::int64_t)
FSDP_FOR_ELEMENTS_AND_IDS(bf16, std::int32_t)
FSDP_FOR_ELEMENTS_AND_IDS(bf16, std::int64_t)
#undef FSDP_FOR_ELEMENTS_AND_IDS
/// Sums that are rounded to bf16 once.
cudaError_t embedding_grad(EmbeddingShape shape, const std::int32_t *ids, const bf16 *dOut,
                           bf16 *dTable, WorkStream stream);
cudaError_t embedding_grad(EmbeddingShape shape, const std::int64_t *ids, const bf16 *dOut,
                           bf16 *dTable, WorkStream stream);

/// Indices as this rank numbers its part of a dimension.
cudaError_t shard_indices(IndexShard shard, const std::int32_t *indices, std::int32_t *own,
                          WorkStream stream);
cudaError_t shard_indices(IndexShard shard, const std::int64_t *indices, std::int64_t *own,
                          WorkStream stream);
/// *count = size: how many elements of a dimension this rank has.
cudaError_t shard_size(std::int64_t size, std::int64_t *count, cudaStream_t stream);
/// *offset = first: the first element of a dimension that this rank has.
cudaError_t shard_offset(std::int64_t first, std::int64_t *offset, cudaStream_t stream);

//===----------------------------------------------------------------------===//
// The end of a step
//===----------------------------------------------------------------------===//

/// `count` values.
cudaError_t square_sum(std::size_t count, const float *values, double *out, WorkStream stream);

/// Whether this program holds kernels that the calling thread's device can run:
/// cudaErrorNoKernelImageForDevice where it does not.
cudaError_t find_kernels();

cudaError_t learning_rate(Schedule schedule, const StepState *state, float *lr,
                          cudaStream_t stream);
/// How many samples of the batch being performed count.
cudaError_t sample_count(const StepState *state, std::int64_t *count, cudaStream_t stream);
/// Moves the state on: `next` is `state`.
/// How many samples of the microbatch being performed count.
cudaError_t microbatch_samples(Microbatches batches, const StepState *state, std::int64_t *count,
                               cudaStream_t stream);
/// Goes on to the next of `count` microbatches of the step, after the last to the first.
cudaError_t next_microbatch(std::int64_t count, const StepState *state, StepState *next,
                            cudaStream_t stream);
cudaError_t advance(const StepState *state, const bool *ok, const BadGradients *bad,
                    StepState *next, BadGradients *nextBad, cudaStream_t stream);

namespace device {
/// Scalars that must be finite.
struct FiniteScalars {
  static constexpr int kMax = 16;
  int count;
  const void *address[kMax];
  bool isDouble[kMax];
};
cudaError_t all_finite(const FiniteScalars &scalars, bool *ok, cudaStream_t stream);

/// The last of `arguments`, after the first N.
template <std::size_t N, class... Arguments> cudaStream_t streamOf(const Arguments &...arguments) {
  static_assert(sizeof...(Arguments) == N + 1, "a stream follows the operands");
  return std::get<N>(std::tie(arguments...));
}
} // namespace device

/// all_finite(ok, value..., stream): each value a scalar, const float * or const double *.
template <class... Rest> cudaError_t all_finite(bool *ok, Rest... rest) {
  constexpr std::size_t n = sizeof...(Rest) - 1;
  static_assert(n <= device::FiniteScalars::kMax, "more scalars than a kernel takes");
  device::FiniteScalars scalars = {};
  const auto add = [&](auto value) {
    constexpr bool isDouble = std::is_convertible_v<decltype(value), const double *>;
    if constexpr (isDouble || std::is_convertible_v<decltype(value), const float *>) {
      scalars.isDouble[scalars.count] = isDouble;
      scalars.address[scalars.count++] = value;
    }
  };
  (add(rest), ...);
  return device::all_finite(scalars, ok, device::streamOf<n>(rest...));
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

namespace device {
template <class T>
cudaError_t dropout(const DropoutRuns &runs, const StepState *state, const T *x, T *y,
                    cudaStream_t stream);
}

template <std::size_t N, class T>
cudaError_t dropout(const DropoutMask<N> &mask, const StepState *state, const T *x, T *y,
                    cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return device::dropout(device::DropoutRuns::of(mask), state, x, y, stream);
}

//===----------------------------------------------------------------------===//
// Copies: no arithmetic, so that only the size of an element matters
//===----------------------------------------------------------------------===//

namespace device {
cudaError_t slice(Part part, std::size_t elementBytes, const void *whole, void *piece,
                  cudaStream_t stream);
cudaError_t pad(Part part, std::size_t elementBytes, const void *piece, void *whole,
                cudaStream_t stream);
cudaError_t insert(Part part, std::size_t elementBytes, const void *piece, void *whole,
                   cudaStream_t stream);
} // namespace device

template <class T> cudaError_t slice(Part part, const T *whole, T *piece, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return device::slice(part, sizeof(T), whole, piece, stream);
}
template <class T> cudaError_t pad(Part part, const T *piece, T *whole, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return device::pad(part, sizeof(T), piece, whole, stream);
}

/// concat(join, joined, input..., stream): one after another in each of `outer` runs of `joined`.
template <std::size_t N, class T, class... Rest>
cudaError_t concat(const Join<N> &join, T *joined, Rest... rest) {
  FSDP_NOTE_WORK();
  Part part = {join.outer, 0, 0, 0};
  for (std::size_t size : join.sizes)
    part.whole += size;
  const cudaStream_t stream = device::streamOf<N>(rest...);
  std::size_t input = 0;
  cudaError_t status = cudaSuccess;
  const auto add = [&](auto operand) {
    if constexpr (std::is_convertible_v<decltype(operand), const T *>)
      if (status == cudaSuccess) {
        part.size = join.sizes[input++];
        status = device::insert(part, sizeof(T), operand, joined, stream);
        part.start += part.size;
      }
  };
  (add(rest), ...);
  return status;
}

/// The part of `whole` that the rank of index `rank` keeps, into `piece`, zeros in its padding.
cudaError_t slice_piece(ShardLayout tile, std::size_t rank, std::size_t elementBytes,
                        const void *whole, void *piece, cudaStream_t stream);
/// The pieces of all ranks, one after another, padding included as zeros: what a plain
/// reduce-scatter takes.
cudaError_t pack_pieces(ShardLayout tile, std::size_t ranks, std::size_t elementBytes,
                        const void *whole, void *pieces, cudaStream_t stream);
/// The opposite, for what a plain all-gather gave; padding is left out.
cudaError_t unpack_pieces(ShardLayout tile, std::size_t ranks, std::size_t elementBytes,
                          const void *pieces, void *whole, cudaStream_t stream);

//===----------------------------------------------------------------------===//
// Ranks that share a device
//===----------------------------------------------------------------------===//

/// Where each rank's operand stands, in rank order.
struct RankSources {
  static constexpr int kMax = 64;
  int count;
  const void *address[kMax];
};
/// target[i] = ((source 0 [i] + source 1 [i]) + ...), or the largest, which is NaN if one is; bf16
/// sums are rounded once. `target` may be one of the sources.
cudaError_t reduce_in_rank_order(const RankSources &sources, void *target, std::size_t count,
                                 DType type, ReduceOp op, cudaStream_t stream);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CUDA_KERNELS_H
