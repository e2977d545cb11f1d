//===- CrossEntropy.h - softmax cross-entropy of rows -----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CROSSENTROPY_H
#define FSDP_RUNTIME_KERNELS_CROSSENTROPY_H

#include "runtime/numerics/BFloat16.h"
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

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CROSSENTROPY_H
