//===- Lanewise.h - runs a function of numbers in each lane --------------------------===//
#ifndef FSDP_EMULATOR_PTX_LANEWISE_H
#define FSDP_EMULATOR_PTX_LANEWISE_H

#include "Decode.h"
#include "Machine.h"

#include <cmath>

namespace emulator::ptx {

template <class D, class A, class F> void runOne(Warp &warp, const Instruction &in, Lanes lanes) {
  D *d = warp.at<D>(in.d);
  const A *a = warp.at<A>(in.a);
  each(lanes, [&](unsigned i) { d[i] = static_cast<D>(F()(a[i])); });
}

template <class D, class A, class B, class F>
void runTwo(Warp &warp, const Instruction &in, Lanes lanes) {
  D *d = warp.at<D>(in.d);
  const A *a = warp.at<A>(in.a);
  const B *b = warp.at<B>(in.b);
  each(lanes, [&](unsigned i) { d[i] = static_cast<D>(F()(a[i], b[i])); });
}

template <class D, class A, class B, class C, class F>
void runThree(Warp &warp, const Instruction &in, Lanes lanes) {
  D *d = warp.at<D>(in.d);
  const A *a = warp.at<A>(in.a);
  const B *b = warp.at<B>(in.b);
  const C *c = warp.at<C>(in.c);
  each(lanes, [&](unsigned i) { d[i] = static_cast<D>(F()(a[i], b[i], c[i])); });
}

template <class To, class From> To bitsOf(From from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// Every NaN that an operation on f32 gives is this one (PTX ISA, "Floating Point Instructions").
inline float withOneNan(float x) { return x == x ? x : bitsOf<float>(0x7fffffffu); }
inline double withOneNan(double x) { return x; }

/// .ftz: subnormal operands and results become zero with their sign.
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// A functor of f32 with .ftz.
template <class F> struct Flushing {
  template <class... X> float operator()(X... x) const { return flushed(F()(flushed(x)...)); }
};

inline float ofBf16(std::uint16_t bits) { return bitsOf<float>(std::uint32_t(bits) << 16); }
inline std::uint16_t toBf16(float x) {
  if (x != x)
    return 0x7fff;
  const auto bits = bitsOf<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_LANEWISE_H
