//===- RoundingNoise.cpp --------------------------------------------------===//

#include "interpreter/RoundingNoise.h"
#include "interpreter/Rounding.h"

#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp::interpreter;

static thread_local RoundingNoise *current = nullptr;

RoundingNoise::RoundingNoise(uint64_t seed, double units, Narrow narrow)
    : seed(seed), units(units), narrow(narrow), outer(current) {
  current = this;
}
RoundingNoise::~RoundingNoise() { current = outer; }

/// The unit in the last place of `value` with `precision` bits of significand.
static double unitOf(double value, int precision) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, exponent - precision);
}

double RoundingNoise::round(double value, Type type) {
  double rounded = roundTo(value, type);
  if (!current || rounded == value || !std::isfinite(rounded))
    return rounded;
  uint64_t bits = current->draw(value);
  if (type.getIntOrFloatBitWidth() == 16 && current->narrow == Narrow::store && bits % 2 == 0) {
    double unit = unitOf(rounded, static_cast<int>(cast<FloatType>(type).getFPMantissaWidth()));
    return roundTo(rounded + (bits % 4 == 0 ? unit : -unit), type);
  }
  return roundTo(current->disturbed(value, bits), type);
}

double RoundingNoise::held(double value, Type type) {
  float single = static_cast<float>(value);
  if (!current || single == value || !std::isfinite(single))
    return value;
  if (type && type.getIntOrFloatBitWidth() == 16 && current->narrow == Narrow::store)
    return round(value, type);
  return static_cast<float>(current->disturbed(value, current->draw(value)));
}

uint64_t RoundingNoise::draw(double value) const {
  // SplitMix64.
  uint64_t bits = llvm::bit_cast<uint64_t>(value) + seed * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

double RoundingNoise::disturbed(double value, uint64_t bits) const {
  double share = static_cast<double>(bits >> 11) * 0x1p-52 - 1; // from -1 to 1
  return value + share * units * unitOf(value, 24);
}

double mlir::fsdp::interpreter::roundTo(double value, Type type, Numerics numerics) {
  if (numerics == Numerics::exact)
    return value;
  bool wide = numerics == Numerics::kernel && type.getIntOrFloatBitWidth() == 16;
  if (wide)
    type = Float32Type::get(type.getContext());
  return RoundingNoise::round(value, type);
}
