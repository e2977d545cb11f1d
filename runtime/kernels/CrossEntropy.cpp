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

/// The loss of row r, and the logarithm of the sum of its exponentials.
template <class T, typename Label>
float lossOfRow(LogitRows shape, const T *logits, const Label *labels, std::size_t r,
                float &logSumExp) {
  const T *row = logits + r * shape.classes;
  const std::size_t label = checked(labels[r], r, shape.classes);
  const float top = largest(row, shape.classes);
  const double value = std::log(sumOfExponentials(row, shape.classes, top)) + double(top);
  logSumExp = static_cast<float>(value);
  return static_cast<float>(value - double(row[label]));
}

/// The largest of row r, the sum of its exponentials, and the logit of its label.
struct RowPart {
  float top, sum, picked;
};
template <class T, typename Label>
RowPart partOfRow(LogitRows shape, const T *logits, const Label *labels, std::size_t r,
                  std::size_t classes) {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  const T *row = logits + r * shape.classes;
  const std::size_t label = checkedPart(labels[r], r, classes);
  const float top = classes ? largest(row, classes) : nothing;
  // No number may be subtracted from -infinity: other ranks may have larger logits.
  const auto sum = static_cast<float>(sumOfExponentials(row, classes, top == nothing ? 0.0f : top));
  return {top, sum, label == kElsewhere ? 0.0f : float(row[label])};
}

/// That of a part: 0 in the padding.
template <class T, typename Label>
void gradientOfPart(LogitRows shape, const T *logits, const Label *labels, std::size_t r,
                    std::size_t classes, float base, float factor, T *gradients) {
  const std::size_t at = r * shape.classes;
  gradientOfRow(logits + at, classes, checkedPart(labels[r], r, classes), base, factor,
                gradients + at);
  std::fill(gradients + at + classes, gradients + at + shape.classes, T(0.0f));
}

} // namespace

template <class T, typename Label>
void crossEntropy(LogitRows shape, const T *logits, const Label *labels, float *losses,
                  float *logSumExp) {
  forEachPart(shape.rows, shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      float base;
      losses[r] = lossOfRow(shape, logits, labels, r, base);
      if (logSumExp)
        logSumExp[r] = base;
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
void crossEntropyWithGrad(LogitRows shape, const T *logits, const Label *labels,
                          const float *upstream, float *losses, float *logSumExp, T *gradients) {
  forEachPart(shape.rows, 2 * shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const std::size_t at = r * shape.classes;
      losses[r] = lossOfRow(shape, logits, labels, r, logSumExp[r]);
      gradientOfRow(logits + at, shape.classes, checked(labels[r], r, shape.classes), logSumExp[r],
                    upstream[r], gradients + at);
    }
  });
}

template <class T, typename Label>
void partialCrossEntropy(LogitRows shape, const T *logits, const Label *labels,
                         const std::int64_t *count, float *top, float *sums, float *picked) {
  const std::size_t classes = columns(shape, *count);
  forEachPart(shape.rows, shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const RowPart part = partOfRow(shape, logits, labels, r, classes);
      top[r] = part.top, sums[r] = part.sum, picked[r] = part.picked;
    }
  });
}

template <class T, typename Label>
void partialCrossEntropyWithGrad(LogitRows shape, const T *logits, const Label *labels,
                                 const std::int64_t *count, const float *upstream, float *top,
                                 float *sums, float *picked, T *gradients) {
  const std::size_t classes = columns(shape, *count);
  forEachPart(shape.rows, 2 * shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const RowPart part = partOfRow(shape, logits, labels, r, classes);
      top[r] = part.top, sums[r] = part.sum, picked[r] = part.picked;
      // As emitted loops compute it for the loss.
      gradientOfPart(shape, logits, labels, r, classes, vectorLog(part.sum) + part.top, upstream[r],
                     gradients);
    }
  });
}

template <class T, typename Label>
void partialCrossEntropyGrad(LogitRows shape, const T *logits, const Label *labels,
                             const float *logSumExp, const float *upstream,
                             const std::int64_t *count, T *gradients) {
  const std::size_t classes = columns(shape, *count);
  forEachPart(shape.rows, shape.classes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      gradientOfPart(shape, logits, labels, r, classes, logSumExp[r], upstream[r], gradients);
  });
}

#define INSTANTIATE(T, Label)                                                                      \
  template void crossEntropy(LogitRows, const T *, const Label *, float *, float *);               \
  template void crossEntropyLosses(LogitRows, const T *, const Label *, float *);                  \
  template void crossEntropyGrad(LogitRows, const T *, const Label *, const float *,               \
                                 const float *, T *);                                              \
  template void crossEntropyWithGrad(LogitRows, const T *, const Label *, const float *, float *,  \
                                     float *, T *);                                                \
  template void partialCrossEntropyWithGrad(LogitRows, const T *, const Label *,                   \
                                            const std::int64_t *, const float *, float *, float *, \
                                            float *, T *);                                         \
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
