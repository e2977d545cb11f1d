//===- CrossEntropy.cu - softmax cross-entropy of rows --------------------===//
//
// A block takes a row. Floors (s: bytes of an element, n: logits): s n forward, which reads the
// logits once and keeps a running maximum and sum; 2 s n for the gradient, which writes them once.
// Rows of an odd number of classes start at any address: elements before the first full 16 bytes
// are read one by one.
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

/// The maximum of `classes` logits and the sum of their exponentials, by a block.
template <class T> __device__ OnlineSum sumOfRow(const T *row, std::size_t classes) {
  __shared__ float tops[kMaxWarps];
  __shared__ double sums[kMaxWarps];
  OnlineSum mine;
  scanRow(
      row, classes, true,
      [&](std::size_t, float value) {
        const float values[1] = {value};
        mine.add(values);
      },
      [&](std::size_t, const float (&values)[kPack<T>]) { mine.add(values); });
  return mine.overBlock(tops, sums);
}

template <class T, class Label>
__global__ void __launch_bounds__(512)
    crossEntropyRows(LogitRows shape, const T *logits, const Label *labels, float *losses,
                     float *logSumExp, BoundsError *fault) {
  const std::size_t r = blockIdx.x;
  const T *row = logits + r * shape.classes;
  const OnlineSum all = sumOfRow(row, shape.classes);
  if (threadIdx.x > 0)
    return;
  const double value = log(all.sum) + double(all.top);
  const Label label = labels[r];
  if (logSumExp)
    logSumExp[r] = static_cast<float>(value);
  if (!isClass(label, shape.classes))
    reportBoundsError(fault, BoundsError::Label, r, static_cast<std::int64_t>(label),
                      shape.classes);
  losses[r] = isClass(label, shape.classes)
                  ? static_cast<float>(value - double(toFloat(row[label])))
                  : __uint_as_float(0x7fc00000u);
}

/// Of the first *count columns; the others are padding.
template <class T, class Label>
__global__ void __launch_bounds__(512)
    partialRows(LogitRows shape, const T *logits, const Label *labels, const std::int64_t *count,
                float *top, float *sum, float *picked, BoundsError *fault) {
  const std::size_t r = blockIdx.x, classes = static_cast<std::size_t>(*count);
  const T *row = logits + r * shape.classes;
  const OnlineSum all = sumOfRow(row, classes);
  if (threadIdx.x > 0)
    return;
  const Label label = labels[r];
  top[r] = all.top;
  sum[r] = static_cast<float>(all.sum);
  if (label == -1) {
    picked[r] = 0;
  } else if (isClass(label, classes)) {
    picked[r] = toFloat(row[label]);
  } else {
    reportBoundsError(fault, BoundsError::Label, r, static_cast<std::int64_t>(label), classes);
    picked[r] = __uint_as_float(0x7fc00000u);
  }
}

/// `count`: the columns before the padding, whose gradient is 0; null if there is no padding.
template <class T, class Label>
__global__ void __launch_bounds__(512)
    crossEntropyGradRows(LogitRows shape, const T *logits, const Label *labels,
                         const float *logSumExp, const float *upstream, const std::int64_t *count,
                         T *gradients) {
  const std::size_t classes = count ? static_cast<std::size_t>(*count) : shape.classes;
  const std::size_t r = blockIdx.x, start = r * shape.classes;
  const float base = logSumExp[r], factor = upstream[r];
  const auto label = static_cast<std::uint64_t>(labels[r]); // a negative one is not a column
  T *out = gradients + start;
  const bool vectors =
      (reinterpret_cast<std::uintptr_t>(logits) - reinterpret_cast<std::uintptr_t>(gradients)) %
          16 ==
      0;
  const auto gradient = [&](std::size_t j, float value) {
    return j < classes ? factor * exponential(value, base) - (j == label ? factor : 0.0f) : 0.0f;
  };
  scanRow(
      logits + start, shape.classes, vectors,
      [&](std::size_t j, float value) { out[j] = fromFloat<T>(gradient(j, value)); },
      [&](std::size_t j, float (&values)[kPack<T>]) {
        // Nearly all packs have neither padding nor the label.
        if (j + kPack<T> <= classes && label - j >= std::uint64_t(kPack<T>)) {
#pragma unroll
          for (int i = 0; i < kPack<T>; ++i)
            values[i] = factor * exponential(values[i], base);
        } else {
#pragma unroll
          for (int i = 0; i < kPack<T>; ++i)
            values[i] = gradient(j + i, values[i]);
        }
        storeFloats(values, out + j);
      });
}

/// Rows of both are then vectors of 16 bytes at the same places.
bool lieAlike(const void *logits, const void *gradients) {
  return (reinterpret_cast<std::uintptr_t>(logits) - reinterpret_cast<std::uintptr_t>(gradients)) %
             16 ==
         0;
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
  }
INSTANTIATE(float, std::int32_t)
INSTANTIATE(float, std::int64_t)
INSTANTIATE(bf16, std::int32_t)
INSTANTIATE(bf16, std::int64_t)
#undef INSTANTIATE

} // namespace fsdp::rt
