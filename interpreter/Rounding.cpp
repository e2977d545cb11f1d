//===- Rounding.cpp -------------------------------------------------------===//

#include "interpreter/Rounding.h"

#include "interpreter/RoundingNoise.h"

using namespace mlir;
using namespace mlir::fsdp::interpreter;

double mlir::fsdp::interpreter::roundTo(double value, Type type, Numerics numerics) {
  if (numerics == Numerics::exact)
    return value;
  bool wide = numerics == Numerics::kernel && type.getIntOrFloatBitWidth() == 16;
  if (wide)
    type = Float32Type::get(type.getContext());
  return RoundingNoise::round(value, type);
}
