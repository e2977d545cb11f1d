//===- Rounding.h - results in the precision of their type ------*- C++ -*-===//

#ifndef INTERPRETER_ROUNDING_H
#define INTERPRETER_ROUNDING_H

#include "interpreter/Tensor.h"

namespace mlir::fsdp::interpreter {

/// Rounds to the float type `type` in typed numerics, and not at all in exact ones.
struct Rounding {
  Type type;
  bool active;
  Rounding(Type element, Numerics numerics)
      : type(element), active(numerics == Numerics::typed && isa<FloatType>(element)) {}
  double operator()(double value) const { return active ? roundTo(value, type) : value; }
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_ROUNDING_H
