//===- RoundingNoise.cpp --------------------------------------------------===//

#include "interpreter/RoundingNoise.h"

#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp::interpreter;

static thread_local RoundingNoise *current = nullptr;

RoundingNoise::RoundingNoise(uint64_t seed, double units)
    : seed(seed), units(units), outer(current) {
  current = this;
}
RoundingNoise::~RoundingNoise() { current = outer; }

double RoundingNoise::apply(double value, Type type) {
  // What is 0 is so in every implementation: a mask, padding, a difference of equals.
  if (!current || value == 0 || !std::isfinite(value) || type.isF64())
    return value;
  // SplitMix64.
  uint64_t bits = llvm::bit_cast<uint64_t>(value) + current->seed * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  int exponent = 0;
  std::frexp(value, &exponent);
  double unit = std::ldexp(1.0, exponent - static_cast<int>(cast<FloatType>(type).getFPMantissaWidth()));
  if (type.getIntOrFloatBitWidth() == 16)
    return roundTo(value + (bits % 4 == 0 ? unit : bits % 4 == 1 ? -unit : 0.0), type);
  double share = static_cast<double>(bits >> 11) * 0x1p-52 - 1; // from -1 to 1
  return static_cast<float>(value + share * current->units * unit);
}
