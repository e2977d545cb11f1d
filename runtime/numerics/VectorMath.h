//===- VectorMath.h - vectorizable functions --------------------*- C++ -*-===//
//
// The C library's expf and tanhf are calls, one element at a time; these are
// straight-line arithmetic that a compiler turns into vector code: additions,
// multiplications, and fused ones where the processor has them, so that results
// are the same bits on every machine that does. Coefficients are those of Cephes
// (S. Moshier) unless said otherwise; double goes to the C library.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_NUMERICS_VECTORMATH_H
#define FSDP_RUNTIME_NUMERICS_VECTORMATH_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace fsdp::rt {

namespace detail {

template <typename To, typename From> To sameBits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits need the same size");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// a * b + c, rounded once where the processor has an instruction for it.
inline float multiplyAdd(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

/// The value at x of a polynomial of the given coefficients, that of the highest power first.
template <typename... Rest> float polynomial(float x, float first, Rest... rest) {
  float value = first;
  ((value = multiplyAdd(value, x, rest)), ...);
  return value;
}

} // namespace detail

/// exp(x) to within 1.5 units in the last place; 0 below -87.3 (where expf is subnormal), infinity
/// above 88.7, NaN for NaN.
inline float vectorExp(float x) {
  // x = n log 2 + r with |r| <= log(2) / 2; the polynomial is Taylor's, of degree 7, on r.
  const float clamped = x < -87.33654f ? -87.33654f : (x > 88.72283f ? 88.72283f : x);
  const float rounded = detail::multiplyAdd(clamped, 1.44269504f, 12582912.0f); // to an integer
  const float n = rounded - 12582912.0f;
  // log 2 in two parts, of which the first is exact in a product with any n.
  const float r =
      detail::multiplyAdd(n, 2.12194440e-4f, detail::multiplyAdd(n, -0.693359375f, clamped));
  const float p = detail::polynomial(r, 1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f,
                                     4.16666667e-2f, 1.66666667e-1f, 0.5f, 1.0f, 1.0f);
  // Times 2^n, through the exponent: n is in the last bits of `rounded`. It is at least -126, where
  // p >= 1, and at most 128, where p < 1 (or the result infinite).
  const float value = detail::sameBits<float>(detail::sameBits<std::uint32_t>(p) +
                                              (detail::sameBits<std::uint32_t>(rounded) << 23));
  return x < -87.33654f ? 0.0f : (x > 88.72283f ? __builtin_inff() : (x == x ? value : x));
}

/// log(x) to within 1.5 units in the last place; -infinity for 0, NaN below.
inline float vectorLog(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const std::int32_t bits = detail::sameBits<std::int32_t>(subnormal ? x * 8388608.0f : x);
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const std::int32_t shifted = bits - 0x3f3504f3;
  const float e = static_cast<float>((shifted >> 23) - (subnormal ? 23 : 0));
  const float r = detail::sameBits<float>((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  const float z = r * r;
  const float p = detail::polynomial(r, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f,
                                     -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f,
                                     2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  const float small = (r * z * p - e * 2.12194440e-4f) - 0.5f * z;
  const float value = (r + small) + e * 0.693359375f;
  const float special = x == 0.0f ? -__builtin_inff() : (x < 0.0f ? __builtin_nanf("") : x);
  return x > 0.0f && x < __builtin_inff() ? value : special;
}

/// log(1 + x) to within 3 units in the last place.
inline float vectorLog1p(float x) {
  const float u = 1.0f + x;
  // Restores the rounding error of u to first order.
  const float value = vectorLog(u) + (x - (u - 1.0f)) / u;
  return u == 1.0f ? x : (x > -1.0f && x < __builtin_inff() ? value : vectorLog(u));
}

/// tanh(x) to within 2.5 units in the last place.
inline float vectorTanh(float x) {
  // e / (e + 2), where e = exp(2 |x|) - 1 is as exact near 0 as elsewhere: one formula for all x,
  // without a choice for vectors to make. From 2 |x| = 20 on it is 1.
  const std::uint32_t bits = detail::sameBits<std::uint32_t>(x), sign = bits & 0x80000000u;
  const float twice = 2.0f * detail::sameBits<float>(bits & 0x7fffffffu);
  const float y = 20.0f < twice ? 20.0f : twice; // NaN stays
  // As in vectorExp, but with the polynomial of exp(r) - 1.
  const float rounded = detail::multiplyAdd(y, 1.44269504f, 12582912.0f);
  const float n = rounded - 12582912.0f;
  const float r = detail::multiplyAdd(n, 2.12194440e-4f, detail::multiplyAdd(n, -0.693359375f, y));
  const float q = detail::polynomial(r, 1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f,
                                     4.16666667e-2f, 1.66666667e-1f, 0.5f);
  const float p = detail::multiplyAdd(r * r, q, r);
  const float scale =
      detail::sameBits<float>((detail::sameBits<std::uint32_t>(rounded) << 23) + 0x3f800000u);
  const float e = detail::multiplyAdd(scale, p, scale - 1.0f);
  return detail::sameBits<float>(detail::sameBits<std::uint32_t>(e / (e + 2.0f)) | sign);
}

/// erf(x) to within 2.5 units in the last place.
inline float vectorErf(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float z = x * x;
  const float p = detail::polynomial(
      z, 7.853861353153693e-5f, -8.010193625184903e-4f, 5.188327685732524e-3f,
      -2.685381193529856e-2f, 1.128358514861418e-1f, -3.761262582423300e-1f, 1.128379165726710f);
  // From 1 on it is 1 - erfc; from 2 on the first polynomial for erfc, which holds below, is still
  // good enough, as erfc is below 0.005 there.
  const float inverse = 1.0f / (magnitude < 1.0f ? 1.0f : magnitude);
  const float y = inverse * inverse;
  const float q =
      detail::polynomial(y, 2.326819970068386e-2f, -1.387039388740657e-1f, 3.687424674597105e-1f,
                         -5.824733027278666e-1f, 6.210004621745983e-1f, -4.944515323274145e-1f,
                         3.404879937665872e-1f, -2.741127028184656e-1f, 5.638259427386472e-1f);
  const float far = 1.0f - vectorExp(-z) * inverse * q;
  return magnitude < 1.0f ? x * p : (x < 0.0f ? -far : (x == x ? far : x));
}

/// The sine and cosine of `turn` * 2^-32 turns, to within 1e-7.
inline void vectorSineCosine(std::uint32_t turn, float &sine, float &cosine) {
  // Quarter turns, and at most half of one beside them, to either side.
  const std::uint32_t quarters = (turn + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(turn - (quarters << 30));
  const float x = static_cast<float>(rest) * 1.46291807926716e-9f; // 2 pi 2^-32
  const float z = x * x;
  const float p = detail::polynomial(z, -1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f);
  const float q =
      detail::polynomial(z, 2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f);
  const float s = detail::multiplyAdd(p * z, x, x);
  const float c = detail::multiplyAdd(q * z, z, detail::multiplyAdd(-0.5f, z, 1.0f));
  const float first = quarters & 1 ? c : s, second = quarters & 1 ? s : c;
  sine = quarters & 2 ? -first : first;
  cosine = (quarters + 1) & 2 ? -second : second;
}

inline double vectorExp(double x) { return std::exp(x); }
inline double vectorLog(double x) { return std::log(x); }
inline double vectorLog1p(double x) { return std::log1p(x); }
inline double vectorTanh(double x) { return std::tanh(x); }
inline double vectorErf(double x) { return std::erf(x); }

/// The larger and the smaller of two numbers; NaN if either is.
template <typename T> T maximum(T a, T b) { return a != a ? a : (a > b ? a : b); }
template <typename T> T minimum(T a, T b) { return a != a ? a : (a < b ? a : b); }

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_NUMERICS_VECTORMATH_H
