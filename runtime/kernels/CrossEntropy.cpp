//===- CrossEntropy.cpp ---------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/IndexRange.h"
#include "runtime/device/Workers.h"
#include "runtime/kernels/RowReduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fsdp::rt::kernels {

namespace {

template <typename Label> std::size_t checked(Label label, std::size_t row, std::size_t classes) {
  if (label < 0 || static_cast<std::uint64_t>(label) >= classes)
    throw labelOutOfRange(row, label, classes);
  return static_cast<std::size_t>(label);
}

/// The label of a class of another rank, as a column.
constexpr std::size_t kElsewhere = std::numeric_limits<std::size_t>::max();

template <typename Label>
std::size_t checkedPart(Label label, std::size_t row, std::size_t classes) {
  return label == -1 ? kElsewhere : checked(label, row, classes);
}

std::size_t columns(LogitRows shape, std::int64_t count) {
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(shape.classes)));
}

template <class T>
void gradientOfRow(const T *row, std::size_t classes, std::size_t label, float base, float factor,
                   T *out) {
  // Of the label, before it may be overwritten; subtracted before it is rounded.
  const float ofLabel =
      label == kElsewhere ? 0.0f : factor * (vectorExp(float(row[label]) - base) - 1.0f);
#pragma omp simd
  for (std::size_t j = 0; j < classes; ++j)
    out[j] = factor * vectorExp(float(row[j]) - base);
  if (label != kElsewhere)
    out[label] = ofLabel;
}

} // namespace

template <class T, typename Label>
void crossEntropy(LogitRows shape, const T *logits, const Label *labels, float *losses,
                  float *logSumExp) {
  forEachPart(shape.rows, shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const T *row = logits + r * shape.classes;
      const std::size_t label = checked(labels[r], r, shape.classes);
      const float top = largest(row, shape.classes);
      const double value = std::log(sumOfExponentials(row, shape.classes, top)) + double(top);
      if (logSumExp)
        logSumExp[r] = static_cast<float>(value);
      losses[r] = static_cast<float>(value - double(row[label]));
    }
  });
}

template <class T, typename Label>
void crossEntropyLosses(LogitRows shape, const T *logits, const Label *labels, float *losses) {
  crossEntropy(shape, logits, labels, losses, nullptr);
}

template <class T, typename Label>
void crossEntropyGrad(LogitRows shape, const T *logits, const Label *labels, const float *logSumExp,
                      const float *upstream, T *gradients) {
  forEachPart(shape.rows, shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const std::size_t at = r * shape.classes;
      gradientOfRow(logits + at, shape.classes, checked(labels[r], r, shape.classes), logSumExp[r],
                    upstream[r], gradients + at);
    }
  });
}

template <class T, typename Label>
void partialCrossEntropy(LogitRows shape, const T *logits, const Label *labels,
                         const std::int64_t *count, float *top, float *sums, float *picked) {
  const std::size_t classes = columns(shape, *count);
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  forEachPart(shape.rows, shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const T *row = logits + r * shape.classes;
      const std::size_t label = checkedPart(labels[r], r, classes);
      top[r] = classes ? largest(row, classes) : nothing;
      // No number may be subtracted from -infinity: other ranks may have larger logits.
      sums[r] =
          static_cast<float>(sumOfExponentials(row, classes, top[r] == nothing ? 0.0f : top[r]));
      picked[r] = label == kElsewhere ? 0.0f : float(row[label]);
    }
  });
}

template <class T, typename Label>
void partialCrossEntropyGrad(LogitRows shape, const T *logits, const Label *labels,
                             const float *logSumExp, const float *upstream,
                             const std::int64_t *count, T *gradients) {
  const std::size_t classes = columns(shape, *count);
  forEachPart(shape.rows, shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const std::size_t at = r * shape.classes;
      gradientOfRow(logits + at, classes, checkedPart(labels[r], r, classes), logSumExp[r],
                    upstream[r], gradients + at);
      std::fill(gradients + at + classes, gradients + at + shape.classes, T(0.0f));
    }
  });
}

#define INSTANTIATE(T, Label)                                                                      \
  template void crossEntropy(LogitRows, const T *, const Label *, float *, float *);               \
  template void crossEntropyLosses(LogitRows, const T *, const Label *, float *);                  \
  template void crossEntropyGrad(LogitRows, const T *, const Label *, const float *,               \
                                 const float *, T *);                                              \
  template void partialCrossEntropy(LogitRows, const T *, const Label *, const std::int64_t *,     \
                                    float *, float *, float *);                                    \
  template void partialCrossEntropyGrad(LogitRows, const T *, const Label *, const float *,        \
                                        const float *, const std::int64_t *, T *);
INSTANTIATE(float, std::int32_t)
INSTANTIATE(float, std::int64_t)
INSTANTIATE(bf16, std::int32_t)
INSTANTIATE(bf16, std::int64_t)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
