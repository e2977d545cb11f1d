//===- Gelu.h - GELU in its form with tanh ----------------------*- C++ -*-===//
//
// Recognized by the function that a chain of ops computes, not by the ops: models spell GELU out,
// and differentiation spells out its gradient.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_NN_GELU_H
#define DIALECT_NN_GELU_H

#include "mlir/IR/Value.h"
#include <optional>

namespace mlir::nn {

/// Whether `value` is GELU(x) = x/2 (1 + tanh(a x + b x^3)), where a = sqrt(2/pi), b = 0.044715 a.
bool isGelu(Value value, Value x);

/// Whether `value` is d GELU'(x).
bool isGeluGradient(Value value, Value d, Value x);

/// GELU of `x`, or its gradient there, times `cotangent`.
struct Gelu {
  Value x, cotangent; ///< cotangent null: the function
};
/// The GELU, or gradient of one, that `value` is; none if it is neither.
std::optional<Gelu> findGelu(Value value);

} // namespace mlir::nn

#endif // DIALECT_NN_GELU_H
