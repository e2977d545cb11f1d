//===- VectorMath.h - functions that loops vectorize over -------*- C++ -*-===//
//
// The C library's expf and tanhf are calls, one element at a time; these are
// straight-line arithmetic that a compiler turns into vector code: no branches,
// no tables, both sides of a choice computed. The f64 forms are the library's.
// Errors are in units in the last place (ulp), the largest seen over all f32
// arguments (test/unit/runtime/VectorMathTest.cpp samples them).
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_VECTORMATH_H
#define FSDP_RUNTIME_VECTORMATH_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace fsdp::rt {

namespace detail {
inline float floatOf(std::int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline std::int32_t bitsOf(float value) {
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// The n and r of x = n log 2 + r with |r| <= log(2) / 2, for |x| < 2^20.
inline float splitExponent(float x, float &n) {
  const float shifted = x * 1.44269504f + 12582912.0f; // rounds to an integer
  n = shifted - 12582912.0f;
  // log 2 in two parts, of which the first is exact in a product with any n.
  return (x - n * 0.693359375f) + n * 2.12194440e-4f;
}

/// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2: Taylor's polynomial.
inline float exponentialTail(float r) {
  float p = 2.48015873e-5f;
  p = p * r + 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  return p * r + 0.5f;
}

/// exp(x) - 1 for -20 <= x <= 20, to within 2 ulp.
inline float expMinusOne(float x) {
  float n;
  const float r = splitExponent(x, n);
  const float small = r + exponentialTail(r) * (r * r); // exp(r) - 1
  const float power = floatOf((static_cast<std::int32_t>(n) + 127) << 23);
  return power * small + (power - 1.0f);
}
} // namespace detail

/// The larger of two; NaN if one is.
template <typename T> inline T maximum(T a, T b) { return a > b || a != a ? a : b; }
/// The smaller of two; NaN if one is.
template <typename T> inline T minimum(T a, T b) { return a < b || a != a ? a : b; }

/// exp(x) to within 1.5 ulp; 0 below -87.3 (where expf is subnormal), infinity above 88.7, NaN for
/// NaN.
inline float vectorExp(float x) {
  const float clamped = x < -87.33654f ? -87.33654f : (x > 88.72283f ? 88.72283f : x);
  float n;
  const float r = detail::splitExponent(clamped, n);
  const float p = detail::exponentialTail(r) * (r * r) + r + 1.0f;
  // 2^n as two factors, as n may be 128.
  const auto integer = static_cast<std::int32_t>(n);
  const std::int32_t half = integer >> 1;
  const float value = p * detail::floatOf((half + 127) << 23) *
                      detail::floatOf((integer - half + 127) << 23);
  return x < -87.33654f ? 0.0f : (x > 88.72283f ? __builtin_inff() : (x == x ? value : x));
}

/// log(x) to within 1.5 ulp; -infinity at 0, NaN below, also for subnormal x.
inline float vectorLog(float x) {
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s) with s = (m - 1) / (m + 1).
  const bool subnormal = x < 1.17549435e-38f;
  const std::int32_t bits = detail::bitsOf(subnormal ? x * 16777216.0f : x);
  const std::int32_t shifted = bits - 0x3f3504f3; // sqrt(1/2)
  const auto e = static_cast<float>((shifted >> 23) - (subnormal ? 24 : 0));
  const float f = detail::floatOf((shifted & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const float s = f / (2.0f + f), z = s * s;
  float p = 0.24279078841f;
  p = p * z + 0.28498786688f;
  p = p * z + 0.40000972152f;
  p = p * z + 0.66666662693f;
  const float half = 0.5f * f * f;
  // log(1 + f) = f - (f^2/2 - s (f^2/2 + z p)), with e log 2 added in two parts.
  const float value =
      e * 0.693359375f + (f - (half - (s * (half + z * p) - e * 2.12194440e-4f)));
  const float normal = x < 3.4028235e38f || x != x ? value : x;
  return x > 0.0f ? normal : (x == 0.0f ? -__builtin_inff() : __builtin_nanf(""));
}

/// log(1 + x) to within 3 ulp.
inline float vectorLog1p(float x) {
  // Rounding 1 + x to u changes logarithm and argument alike (Kahan).
  const float u = 1.0f + x, d = u - 1.0f;
  const float value = vectorLog(u) * (x / d);
  return u == 1.0f ? x : (x > -1.0f && x < 1e30f ? value : vectorLog(u));
}

/// tanh(x) to within 2.5 ulp.
inline float vectorTanh(float x) {
  const float size = x < 0.0f ? -x : x;
  const float clamped = size > 10.0f ? 10.0f : size;
  const float q = detail::expMinusOne(2.0f * clamped); // tanh = q / (q + 2)
  const float value = size > 10.0f ? 1.0f : q / (q + 2.0f);
  const float sign = detail::floatOf(detail::bitsOf(value) | (detail::bitsOf(x) & INT32_MIN));
  return x == x ? sign : x;
}

/// The error function to within 1.5 ulp.
inline float vectorErf(float x) {
  // Near 0 an odd polynomial; farther out 1 - exp of a polynomial in |x| (N. Juffa's fit).
  const float size = x < 0.0f ? -x : x, square = x * x;
  const float t = size > 4.0f ? 4.0f : size;
  float far = -1.72853470e-5f;
  far = far * t + 3.83197126e-4f;
  far = far * t + -3.88396438e-3f;
  far = far * t + 2.42546219e-2f;
  far = far * t + -1.06777877e-1f;
  far = far * t + -6.34846687e-1f;
  far = far * t + -1.28717512e-1f;
  far = 1.0f - vectorExp(far * t - t);
  float near = -5.96761703e-4f;
  near = near * square + 4.99119423e-3f;
  near = near * square + -2.67681349e-2f;
  near = near * square + 1.12819925e-1f;
  near = near * square + -3.76125336e-1f;
  near = near * square + 1.28379166e-1f;
  near = near * x + x;
  const float signedFar = x < 0.0f ? -far : far;
  return size > 0.921875f ? signedFar : (x == x ? near : x);
}

inline double vectorExp(double x) { return std::exp(x); }
inline double vectorLog(double x) { return std::log(x); }
inline double vectorLog1p(double x) { return std::log1p(x); }
inline double vectorTanh(double x) { return std::tanh(x); }
inline double vectorErf(double x) { return std::erf(x); }

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_VECTORMATH_H
