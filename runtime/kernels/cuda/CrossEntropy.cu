//===- CrossEntropy.cu - softmax cross-entropy of rows --------------------===//
//
// A block takes a row. Floors (s: bytes of an element, n: logits): s n forward, which reads the
// logits once and keeps a running maximum and sum; 2 s n for the gradient, which writes them once,
// and for both at once. That kernel needs a row twice: it keeps packs of the row in shared memory,
// as many as fit, and reads the others again where the second-level cache may have them. Rows of an
// odd number of classes start at any address: elements before the first full 16 bytes are read one
// by one.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/ReportBoundsError.h"
#include "runtime/kernels/cuda/RowExponentials.h"

namespace fsdp::rt {

namespace {

using namespace device;

template <class Label> __device__ bool isClass(Label label, std::size_t classes) {
  return label >= 0 && static_cast<std::uint64_t>(label) < classes;
}

/// Rows of both are then vectors of 16 bytes at the same places.
__host__ __device__ inline bool lieAlike(const void *logits, const void *gradients) {
  return (reinterpret_cast<std::uintptr_t>(logits) - reinterpret_cast<std::uintptr_t>(gradients)) %
             16 ==
         0;
}

/// A row of a loss of whole rows. Its methods are thread 0's, with the sum over the row.
template <class T, class Label> struct WholeRow {
  std::size_t row, classes;
  const T *logits; ///< of the row
  Label label;
  float *losses, *logSumExp; ///< logSumExp null: nothing needs it

  /// The logarithm of the sum of exponentials.
  __device__ float put(const OnlineSum &all, BoundsError *fault) const {
    const double value = log(all.sum) + double(all.top);
    if (logSumExp)
      logSumExp[row] = static_cast<float>(value);
    if (!isClass(label, classes))
      reportBoundsError(fault, BoundsError::Label, row, static_cast<std::int64_t>(label), classes);
    losses[row] = isClass(label, classes)
                      ? static_cast<float>(value - double(toFloat(logits[label])))
                      : __uint_as_float(0x7fc00000u);
    return static_cast<float>(value);
  }
};

/// The same of a part of the classes.
template <class T, class Label> struct PartialRow {
  std::size_t row, classes;
  const T *logits;
  Label label;
  float *top, *sum, *picked;

  /// The logarithm of the sum of exponentials where the part is all classes.
  __device__ float put(const OnlineSum &all, BoundsError *fault) const {
    const auto total = static_cast<float>(all.sum);
    top[row] = all.top;
    sum[row] = total;
    if (label == -1) {
      picked[row] = 0;
    } else if (isClass(label, classes)) {
      picked[row] = toFloat(logits[label]);
    } else {
      reportBoundsError(fault, BoundsError::Label, row, static_cast<std::int64_t>(label), classes);
      picked[row] = __uint_as_float(0x7fc00000u);
    }
    return logf(total) + all.top;
  }
};

/// The maximum of `classes` logits and the sum of their exponentials, by a block. Of each pack,
/// load(p, from) has the elements.
template <class T, class Load>
__device__ OnlineSum sumOfRow(const T *row, std::size_t classes, bool vectors, Load load) {
  __shared__ float tops[kMaxWarps];
  __shared__ double sums[kMaxWarps];
  OnlineSum mine;
  scanPacks(
      row, classes, vectors,
      [&](std::size_t, float value) {
        const float values[1] = {value};
        mine.add(values);
      },
      [&](std::size_t p, std::size_t j) {
        const Packed<T, kPack<T>> pack = load(p, row + j);
        float values[kPack<T>];
#pragma unroll
        for (int i = 0; i < kPack<T>; ++i)
          values[i] = pack.get(i);
        mine.add(values);
      });
  return mine.overBlock(tops, sums);
}
template <class T> __device__ OnlineSum sumOfRow(const T *row, std::size_t classes) {
  return sumOfRow(row, classes, true,
                  [](std::size_t, const T *from) { return Packed<T, kPack<T>>::load(from); });
}

template <class T, class Label>
__global__ void __launch_bounds__(512)
    crossEntropyRows(LogitRows shape, const T *logits, const Label *labels, float *losses,
                     float *logSumExp, BoundsError *fault) {
  const std::size_t r = blockIdx.x;
  const T *row = logits + r * shape.classes;
  const OnlineSum all = sumOfRow(row, shape.classes);
  if (threadIdx.x == 0)
    WholeRow<T, Label>{r, shape.classes, row, labels[r], losses, logSumExp}.put(all, fault);
}

/// Of the first *count columns; the others are padding.
template <class T, class Label>
__global__ void __launch_bounds__(512)
    partialRows(LogitRows shape, const T *logits, const Label *labels, const std::int64_t *count,
                float *top, float *sum, float *picked, BoundsError *fault) {
  const std::size_t r = blockIdx.x, classes = static_cast<std::size_t>(*count);
  const T *row = logits + r * shape.classes;
  const OnlineSum all = sumOfRow(row, classes);
  if (threadIdx.x == 0)
    PartialRow<T, Label>{r, classes, row, labels[r], top, sum, picked}.put(all, fault);
}

/// The gradient of a row, whose columns from `classes` on are padding, with gradient 0.
struct RowGradient {
  std::size_t classes;
  std::uint64_t label; ///< a negative one is not a column
  float base, factor;

  __device__ float of(std::size_t j, float value) const {
    return j < classes ? factor * exponential(value, base) - (j == label ? factor : 0.0f) : 0.0f;
  }
  /// Of N logits from column j on, in their place.
  template <int N> __device__ void of(std::size_t j, float (&values)[N]) const {
    // Nearly all packs have neither padding nor the label.
    if (j + N <= classes && label - j >= std::uint64_t(N)) {
#pragma unroll
      for (int i = 0; i < N; ++i)
        values[i] = factor * exponential(values[i], base);
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        values[i] = of(j + i, values[i]);
    }
  }
};

/// `count`: the columns before the padding; null if there is no padding.
template <class T, class Label>
__global__ void __launch_bounds__(512)
    crossEntropyGradRows(LogitRows shape, const T *logits, const Label *labels,
                         const float *logSumExp, const float *upstream, const std::int64_t *count,
                         T *gradients) {
  const std::size_t r = blockIdx.x, start = r * shape.classes;
  const RowGradient gradient = {count ? static_cast<std::size_t>(*count) : shape.classes,
                                static_cast<std::uint64_t>(labels[r]), logSumExp[r], upstream[r]};
  T *out = gradients + start;
  scanRow(
      logits + start, shape.classes, lieAlike(logits, gradients),
      [&](std::size_t j, float value) { out[j] = fromFloat<T>(gradient.of(j, value)); },
      [&](std::size_t j, float (&values)[kPack<T>]) {
        gradient.of(j, values);
        storeFloats(values, out + j);
      });
}

/// Operands and results of a loss with its gradient. Results of rows: the loss and the logarithm of
/// a whole row, the largest, the sum and the picked logit of a part.
template <class T, class Label> struct LossAndGradient {
  LogitRows shape;
  const T *logits;
  const Label *labels;
  const float *upstream;
  const std::int64_t *count; ///< null: all columns are classes
  float *results[3];
  T *gradients;
  std::size_t kept; ///< packs of a row for which the block has shared memory
};

template <class T, class Label, bool kPart>
__global__ void __launch_bounds__(512, 2)
    lossAndGradientRows(LossAndGradient<T, Label> at, BoundsError *fault) {
  using Pack = Packed<T, kPack<T>>;
  __shared__ float logarithm;
  FSDP_DYNAMIC_SHARED(uint4, kept);
  const std::size_t r = blockIdx.x, columns = at.shape.classes, start = r * columns,
                    classes = kPart ? static_cast<std::size_t>(*at.count) : columns;
  const T *row = at.logits + start;
  T *out = at.gradients + start;
  const bool vectors = lieAlike(at.logits, at.gradients);
  const OnlineSum all = sumOfRow(row, classes, vectors, [&](std::size_t p, const T *from) {
    const Pack pack = Pack::load(from);
    if (p < at.kept)
      kept[p] = make_uint4(pack.word[0], pack.word[1], pack.word[2], pack.word[3]);
    return pack;
  });
  const Label label = at.labels[r];
  // Reads the logit of the label, before any thread may overwrite it.
  if (threadIdx.x == 0) {
    if constexpr (kPart)
      logarithm =
          PartialRow<T, Label>{r, classes, row, label, at.results[0], at.results[1], at.results[2]}
              .put(all, fault);
    else
      logarithm =
          WholeRow<T, Label>{r, classes, row, label, at.results[0], at.results[1]}.put(all, fault);
  }
  __syncthreads();
  const RowGradient gradient = {classes, static_cast<std::uint64_t>(label), logarithm,
                                at.upstream[r]};
  // Packs that have padding were not kept. A thread has the packs that it kept.
  const std::size_t read = packsOf(row, classes, vectors).packs,
                    have = read < at.kept ? read : at.kept;
  scanPacks(
      row, columns, vectors,
      [&](std::size_t j, float value) { out[j] = fromFloat<T>(gradient.of(j, value)); },
      [&](std::size_t p, std::size_t j) {
        Pack pack;
        if (p < have) {
          const uint4 bits = kept[p];
          pack.word[0] = bits.x, pack.word[1] = bits.y, pack.word[2] = bits.z,
          pack.word[3] = bits.w;
        } else {
          pack = Pack::load(row + j);
        }
        float values[kPack<T>];
#pragma unroll
        for (int i = 0; i < kPack<T>; ++i)
          values[i] = pack.get(i);
        gradient.of(j, values);
        storeFloats(values, out + j);
      });
}

/// Shared memory of a block that lossAndGradientRows uses besides packs, and that the system
/// reserves.
constexpr std::size_t kLossShared = 1024;

template <bool kPart, class T, class Label>
cudaError_t launchBoth(LossAndGradient<T, Label> at, WorkStream stream) {
  const bool vectors = lieAlike(at.logits, at.gradients);
  noteVectors(vectors);
  std::size_t most = 0;
  if (cudaError_t status = findShared(most))
    return status;
  const std::size_t packs = vectors ? at.shape.classes / kPack<T> : 0,
                    room = (most - kLossShared) / sizeof(uint4);
  at.kept = packs < room ? packs : room;
  return launchKernel(lossAndGradientRows<T, Label, kPart>, dim3(at.shape.rows),
                      scanThreads<T>(at.shape.classes), at.kept * sizeof(uint4), stream, at,
                      stream.fault());
}

} // namespace

#define INSTANTIATE(T, Label)                                                                      \
  cudaError_t cross_entropy(LogitRows shape, const T *logits, const Label *labels, float *losses,  \
                            float *logSumExp, WorkStream stream) {                                 \
    return launchKernel(crossEntropyRows<T, Label>, dim3(shape.rows),                              \
                        scanThreads<T>(shape.classes), 0, stream, shape, logits, labels, losses,   \
                        logSumExp, stream.fault());                                                \
  }                                                                                                \
  cudaError_t cross_entropy(LogitRows shape, const T *logits, const Label *labels, float *losses,  \
                            WorkStream stream) {                                                   \
    return cross_entropy(shape, logits, labels, losses, nullptr, stream);                          \
  }                                                                                                \
  cudaError_t cross_entropy(LogitRows shape, const T *logits, const Label *labels,                 \
                            const float *upstream, float *losses, float *logSumExp, T *gradients,  \
                            WorkStream stream) {                                                   \
    return launchBoth<false>(                                                                      \
        LossAndGradient<T, Label>{                                                                 \
            shape, logits, labels, upstream, nullptr, {losses, logSumExp}, gradients, 0},          \
        stream);                                                                                   \
  }                                                                                                \
  cudaError_t cross_entropy_grad(LogitRows shape, const T *logits, const Label *labels,            \
                                 const float *logSumExp, const float *upstream, T *gradients,      \
                                 cudaStream_t stream) {                                            \
    noteVectors(lieAlike(logits, gradients));                                                      \
    return launchKernel(crossEntropyGradRows<T, Label>, dim3(shape.rows),                          \
                        scanThreads<T>(shape.classes), 0, stream, shape, logits, labels,           \
                        logSumExp, upstream, static_cast<const std::int64_t *>(nullptr),           \
                        gradients);                                                                \
  }                                                                                                \
  cudaError_t cross_entropy_grad(LogitRows shape, const T *logits, const Label *labels,            \
                                 const float *logSumExp, const float *upstream,                    \
                                 const std::int64_t *count, T *gradients, cudaStream_t stream) {   \
    noteVectors(lieAlike(logits, gradients));                                                      \
    return launchKernel(crossEntropyGradRows<T, Label>, dim3(shape.rows),                          \
                        scanThreads<T>(shape.classes), 0, stream, shape, logits, labels,           \
                        logSumExp, upstream, count, gradients);                                    \
  }                                                                                                \
  cudaError_t partial_cross_entropy(LogitRows shape, const T *logits, const Label *labels,         \
                                    const std::int64_t *count, float *top, float *sum,             \
                                    float *picked, WorkStream stream) {                            \
    return launchKernel(partialRows<T, Label>, dim3(shape.rows), scanThreads<T>(shape.classes), 0, \
                        stream, shape, logits, labels, count, top, sum, picked, stream.fault());   \
  }                                                                                                \
  cudaError_t partial_cross_entropy(LogitRows shape, const T *logits, const Label *labels,         \
                                    const std::int64_t *count, const float *upstream, float *top,  \
                                    float *sum, float *picked, T *gradients, WorkStream stream) {  \
    return launchBoth<true>(                                                                       \
        LossAndGradient<T, Label>{                                                                 \
            shape, logits, labels, upstream, count, {top, sum, picked}, gradients, 0},             \
        stream);                                                                                   \
  }
INSTANTIATE(float, std::int32_t)
INSTANTIATE(float, std::int64_t)
INSTANTIATE(bf16, std::int32_t)
INSTANTIATE(bf16, std::int64_t)
#undef INSTANTIATE

} // namespace fsdp::rt
