//===- CrossEntropy.h - softmax cross-entropy of rows -----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CROSSENTROPY_H
#define FSDP_RUNTIME_KERNELS_CROSSENTROPY_H

#include "runtime/execution/Launch.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

// Logits and their gradients are float or bf16, everything of a row is float.

namespace kernels {
/// logSumExp[r] = log(sum over j of exp(logits[r, j])), unless it is null, and
/// losses[r] = logSumExp[r] - logits[r, labels[r]]. Throws an Error that names
/// row and label if a label is not in [0, classes).
template <class T, typename Label>
void crossEntropy(LogitRows shape, const T *logits, const Label *labels, float *losses,
                  float *logSumExp);
/// gradients[r, j] = upstream[r] * (exp(logits[r, j] - logSumExp[r]) - (j == labels[r])). In place
/// is fine.
template <class T, typename Label>
void crossEntropyGrad(LogitRows shape, const T *logits, const Label *labels, const float *logSumExp,
                      const float *upstream, T *gradients);
/// The logits are a rank's part of the classes, of which the first `count` columns are classes and
/// the others padding. top[r] = the largest of row r, -infinity without classes; sums[r] = sum over
/// j of exp(logits[r, j] - top[r]); picked[r] = logits[r, labels[r]], 0 for a label of -1 (of a
/// class elsewhere). Throws as above for other labels that are not in [0, count).
template <class T, typename Label>
void partialCrossEntropy(LogitRows shape, const T *logits, const Label *labels, std::int64_t count,
                         float *top, float *sums, float *picked);
/// The gradient of such a part, from the logSumExp of all classes; 0 in the padding.
template <class T, typename Label>
void partialCrossEntropyGrad(LogitRows shape, const T *logits, const Label *labels,
                             const float *logSumExp, const float *upstream, std::int64_t count,
                             T *gradients);
} // namespace kernels

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

#endif // FSDP_RUNTIME_KERNELS_CROSSENTROPY_H
