//===- VectorMath.h - functions that loops vectorize over -------*- C++ -*-===//
//
// The C library's expf and tanhf are calls, one element at a time; these are
// straight-line arithmetic that a compiler turns into vector code.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_VECTORMATH_H
#define FSDP_RUNTIME_VECTORMATH_H

#include <cstdint>
#include <cstring>

namespace fsdp::rt {

/// exp(x) to within 1.5 units in the last place; 0 below -87.3 (where expf is subnormal), infinity
/// above 88.7, NaN for NaN.
inline float vectorExp(float x) {
  // x = n log 2 + r with |r| <= log(2) / 2; the polynomial is Taylor's, of degree 7, on r.
  const float clamped = x < -87.33654f ? -87.33654f : (x > 88.72283f ? 88.72283f : x);
  const float shifted = clamped * 1.44269504f + 12582912.0f; // rounds to an integer
  const float n = shifted - 12582912.0f;
  // log 2 in two parts, of which the first is exact in a product with any n.
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // 2^n as two factors, as n may be 128.
  const auto integer = static_cast<std::int32_t>(n);
  const std::int32_t half = integer >> 1;
  const std::int32_t lowBits = (half + 127) << 23, highBits = (integer - half + 127) << 23;
  float low, high;
  std::memcpy(&low, &lowBits, sizeof(low));
  std::memcpy(&high, &highBits, sizeof(high));
  const float value = p * low * high;
  return x < -87.33654f ? 0.0f : (x > 88.72283f ? __builtin_inff() : (x == x ? value : x));
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_VECTORMATH_H
