//===- CrossEntropy.h - softmax cross-entropy of rows -----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_CROSSENTROPY_H
#define FSDP_RUNTIME_CROSSENTROPY_H

#include "runtime/Launch.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// A matrix of logits, row-major, one row for each label.
struct LogitRows {
  std::size_t rows;
  std::size_t classes;
};

namespace kernels {
/// losses[r] = log(sum over j of exp(logits[r, j])) - logits[r, labels[r]].
/// Throws an Error that names row and label if a label is not in [0, classes).
template <typename Label>
void crossEntropy(LogitRows shape, const float *logits, const Label *labels, float *losses);
/// gradients[r, j] = upstream[r] * (softmax(logits[r])[j] - (j == labels[r])). In place is fine.
template <typename Label>
void crossEntropyGrad(LogitRows shape, const float *logits, const Label *labels,
                      const float *upstream, float *gradients);
} // namespace kernels

/// The loss of each row; the caller sums them.
template <typename Label>
void cross_entropy(Context &c, int stream, const char *name, LogitRows shape, Slice<float> logits,
                   Slice<Label> labels, Slice<float> losses) {
  launch(c, stream, name, reads(logits, labels), writes(losses),
         [shape](const float *logits, const Label *labels, float *losses) {
           kernels::crossEntropy(shape, logits, labels, losses);
         });
}

/// The gradient of `cross_entropy`; `upstream` holds the gradient of each row's loss.
template <typename Label>
void cross_entropy_grad(Context &c, int stream, const char *name, LogitRows shape,
                        Slice<float> logits, Slice<Label> labels, Slice<float> upstream,
                        Slice<float> gradients) {
  launch(
      c, stream, name, reads(logits, labels, upstream), writes(gradients),
      [shape](const float *logits, const Label *labels, const float *upstream, float *gradients) {
        kernels::crossEntropyGrad(shape, logits, labels, upstream, gradients);
      });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CROSSENTROPY_H
