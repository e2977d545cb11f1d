//===- Rounding.h - results in the precision of their type ------*- C++ -*-===//

#ifndef INTERPRETER_ROUNDING_H
#define INTERPRETER_ROUNDING_H

#include "interpreter/Tensor.h"

namespace mlir::fsdp::interpreter {

/// `value` as a result of float type `type` in `numerics`.
double roundTo(double value, Type type, Numerics numerics);

/// Rounds results of the float type `type` as the numerics require; other types do not change.
struct Rounding {
  Type type;
  Numerics numerics;
  Rounding(Type element, Numerics numerics)
      : type(element), numerics(isa<FloatType>(element) ? numerics : Numerics::exact) {}
  double operator()(double value) const { return roundTo(value, type, numerics); }
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_ROUNDING_H
