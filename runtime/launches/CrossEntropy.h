//===- CrossEntropy.h - launches of kernels/CrossEntropy.h ---*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_CROSSENTROPY_H
#define FSDP_RUNTIME_LAUNCHES_CROSSENTROPY_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/CrossEntropy.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// The loss of each row, which the caller sums, and the logarithm of its sum of exponentials.
template <class T, typename Label>
void cross_entropy(Context &c, int stream, const char *name, LogitRows shape, ArenaSpan<T> logits,
                   ArenaSpan<Label> labels, ArenaSpan<float> losses, ArenaSpan<float> logSumExp) {
  launch(
      c, stream, name, reads(logits, labels), writes(losses, logSumExp),
      [shape](const T *logits, const Label *labels, float *losses, float *logSumExp) {
        kernels::crossEntropy(shape, logits, labels, losses, logSumExp);
      },
      Work{"cross_entropy"});
}

/// The same where nobody needs the logarithms, as in an evaluation.
template <class T, typename Label>
void cross_entropy(Context &c, int stream, const char *name, LogitRows shape, ArenaSpan<T> logits,
                   ArenaSpan<Label> labels, ArenaSpan<float> losses) {
  launch(
      c, stream, name, reads(logits, labels), writes(losses),
      [shape](const T *logits, const Label *labels, float *losses) {
        kernels::crossEntropy(shape, logits, labels, losses, nullptr);
      },
      Work{"cross_entropy"});
}

/// The gradient of `cross_entropy`; `upstream` holds the gradient of each row's loss.
template <class T, typename Label>
void cross_entropy_grad(Context &c, int stream, const char *name, LogitRows shape,
                        ArenaSpan<T> logits, ArenaSpan<Label> labels, ArenaSpan<float> logSumExp,
                        ArenaSpan<float> upstream, ArenaSpan<T> gradients) {
  launch(
      c, stream, name, reads(logits, labels, logSumExp, upstream), writes(gradients),
      [shape](const T *logits, const Label *labels, const float *logSumExp, const float *upstream,
              T *gradients) {
        kernels::crossEntropyGrad(shape, logits, labels, logSumExp, upstream, gradients);
      },
      Work{"cross_entropy_grad"});
}

/// What a part of the classes contributes; `count` of the columns are classes.
template <class T, typename Label>
void partial_cross_entropy(Context &c, int stream, const char *name, LogitRows shape,
                           ArenaSpan<T> logits, ArenaSpan<Label> labels,
                           ArenaSpan<std::int64_t> count, ArenaSpan<float> top,
                           ArenaSpan<float> sums, ArenaSpan<float> picked) {
  launch(
      c, stream, name, reads(logits, labels, count), writes(top, sums, picked),
      [shape](const T *logits, const Label *labels, const std::int64_t *count, float *top,
              float *sums, float *picked) {
        kernels::partialCrossEntropy(shape, logits, labels, *count, top, sums, picked);
      },
      Work{"partial_cross_entropy"});
}

/// The gradient of a part of the classes.
template <class T, typename Label>
void cross_entropy_grad(Context &c, int stream, const char *name, LogitRows shape,
                        ArenaSpan<T> logits, ArenaSpan<Label> labels, ArenaSpan<float> logSumExp,
                        ArenaSpan<float> upstream, ArenaSpan<std::int64_t> count,
                        ArenaSpan<T> gradients) {
  launch(
      c, stream, name, reads(logits, labels, logSumExp, upstream, count), writes(gradients),
      [shape](const T *logits, const Label *labels, const float *logSumExp, const float *upstream,
              const std::int64_t *count, T *gradients) {
        kernels::partialCrossEntropyGrad(shape, logits, labels, logSumExp, upstream, *count,
                                         gradients);
      },
      Work{"cross_entropy_grad"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_CROSSENTROPY_H
