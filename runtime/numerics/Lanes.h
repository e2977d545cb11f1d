//===- Lanes.h - vectors of floats ------------------------------*- C++ -*-===//
//
// For kernels whose inner loops are written out; others are left to the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_NUMERICS_LANES_H
#define FSDP_RUNTIME_NUMERICS_LANES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

// The intrinsics of gcc 12 begin with registers that are not set, and it warns of them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace fsdp::rt::lanes {

#ifdef __AVX512F__
constexpr std::size_t kLanes = 16;
#elif defined(__AVX__)
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif
using Vector = float __attribute__((vector_size(kLanes * sizeof(float))));

/// The first `count` of a vector's numbers at `from`, which may be followed by inaccessible memory.
template <bool Partial> Vector load(const float *from, std::size_t count) {
  Vector value{};
  if constexpr (!Partial)
    std::memcpy(&value, from, sizeof(value));
  else
#ifdef __AVX512F__
    value = reinterpret_cast<Vector>(
        _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from));
#else
    std::memcpy(&value, from, count * sizeof(float));
#endif
  return value;
}
inline Vector load(const float *from) { return load<false>(from, kLanes); }

template <bool Partial> void store(float *to, Vector value, std::size_t count) {
  std::memcpy(to, &value, Partial ? count * sizeof(float) : sizeof(value));
}
inline void store(float *to, Vector value) { store<false>(to, value, kLanes); }

inline Vector broadcast(float value) { return value - Vector{}; }

/// a * b + c, rounded once where the processor has an instruction for it.
inline Vector multiplyAdd(Vector a, Vector b, Vector c) {
#ifdef __AVX512F__
  return reinterpret_cast<Vector>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#else
  return a * b + c;
#endif
}

/// The larger of two numbers; the second if the first is NaN.
inline Vector larger(Vector a, Vector b) {
#ifdef __AVX512F__
  return reinterpret_cast<Vector>(
      _mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#else
  return a > b ? a : b;
#endif
}

/// 2^x to within 2 units in the last place; 0 for -infinity, NaN for NaN. Below 2^-126 it may be 0.
inline Vector exp2(Vector x) {
  // 2^n times 2^r with r in [0, 1]: the polynomial that is 1 at 0 and otherwise nearest to 2^r,
  // relatively (Remez).
  const auto power = [](Vector r) {
    Vector p = broadcast(1.867130072e-3f);
    p = multiplyAdd(p, r, broadcast(9.017030316e-3f));
    p = multiplyAdd(p, r, broadcast(5.579991311e-2f));
    p = multiplyAdd(p, r, broadcast(2.401644502e-1f));
    p = multiplyAdd(p, r, broadcast(6.931513118e-1f));
    p = multiplyAdd(p, r, broadcast(1.0f));
    return p;
  };
#ifdef __AVX512DQ__
  const auto wide = reinterpret_cast<__m512>(x);
  const __m512 r = _mm512_reduce_ps(wide, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  return reinterpret_cast<Vector>(
      _mm512_scalef_ps(reinterpret_cast<__m512>(power(reinterpret_cast<Vector>(r))), wide));
#else
  using Bits = std::int32_t __attribute__((vector_size(sizeof(Vector))));
  const Vector least = broadcast(-126.0f), most = broadcast(128.0f);
  const Vector inside = larger(x, least) > most ? most : larger(x, least);
  const Vector rounded = (inside - 0.5f) + 12582912.0f; // n is in its last bits
  const Vector p = power(inside - (rounded - 12582912.0f));
  const auto value =
      reinterpret_cast<Vector>(reinterpret_cast<Bits>(p) + (reinterpret_cast<Bits>(rounded) << 23));
  return x < least ? Vector{} : (x == x ? value : x);
#endif
}

} // namespace fsdp::rt::lanes

#endif // FSDP_RUNTIME_NUMERICS_LANES_H
