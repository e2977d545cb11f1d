//===- Approximations.cpp - .approx and .full ------------------------------------------===//
//
// A result is the true one, moved by a part of the error that the PTX ISA documents; the arguments'
// bits say by how much and where to, so that it is the same in every run. A kernel or a test that
// needs more than the documentation promises therefore fails. Special arguments give what the
// documentation lists.
//
//===----------------------------------------------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// In [-1, 1], by the bits of the argument.
double direction(std::uint64_t bits) {
  bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 32) * 0x94d049bb133111ebu;
  return static_cast<double>(static_cast<std::int64_t>(bits ^ bits >> 31)) * 0x1p-63;
}

bool isSpecial(double x) { return x == 0 || std::isinf(x) || x != x; }

/// `exact` with an error of up to `relative` and `absolute`, rounded to f32: the rounding has half
/// a unit, which the bounds include.
float near(double exact, std::uint64_t bits, double relative, double absolute = 0) {
  if (isSpecial(exact))
    return withOneNan(static_cast<float>(exact));
  return static_cast<float>(exact + direction(bits) * (std::fabs(exact) * relative + absolute));
}

/// Of a number in [1, 2) one unit in the last place.
constexpr double kUnit = 0x1p-23;

float powerOfTwo(float x) { // ex2.approx: 2 units in the last place
  return x == 0 ? 1 : near(std::exp2(double(x)), bitsOf<std::uint32_t>(x), 0.75 * kUnit);
}
float logarithm(float x) { // lg2.approx: 2^-22 absolute in (0.5, 2), else as much of the result
  if (x < 0)
    return bitsOf<float>(0x7fffffffu);
  if (isSpecial(x) || x == 1)
    return withOneNan(std::log2(x));
  const bool isClose = x > 0.5f && x < 2;
  return near(std::log2(double(x)), bitsOf<std::uint32_t>(x), isClose ? 0 : 0x1p-23,
              isClose ? 0x1p-23 : 0);
}
float inverse(float x) { // rcp.approx: one unit
  return near(1 / double(x), bitsOf<std::uint32_t>(x), 0.25 * kUnit);
}
float root(float x) { // sqrt.approx: 2^-23 relative
  return near(std::sqrt(double(x)), bitsOf<std::uint32_t>(x), 0.5 * kUnit);
}
float inverseRoot(float x) { // rsqrt.approx: 2^-22.9 relative
  return x == 0 ? std::copysign(HUGE_VALF, x)
                : near(1 / std::sqrt(double(x)), bitsOf<std::uint32_t>(x), 0.5 * kUnit);
}
float hyperbolicTangent(float x) { // 2^-11 relative
  return near(std::tanh(double(x)), bitsOf<std::uint32_t>(x),
              std::isinf(x) ? 0 : 0x1p-11 - 0x1p-23);
}
/// rcp.approx.ftz.f64: the upper 32 bits, less than 2^-19 away; subnormal numbers are zero.
double upperInverse(double x) {
  const auto flush = [](double y) { return std::fabs(y) < 0x1p-1022 ? std::copysign(0.0, y) : y; };
  return bitsOf<double>(bitsOf<std::uint64_t>(flush(1 / flush(x))) & 0xffffffff00000000u);
}

} // namespace

void addApproximations(Rows &rows) {
  const auto add = [&](const char *name, auto function) {
    using F = decltype(function);
    rows.add({name, ".approx.f32"}, row(function));
    rows.add({name, ".approx.ftz.f32"}, flushingRowOf(&F::operator()));
  };
  add("ex2", [](float x) -> float { return powerOfTwo(x); });
  add("lg2", [](float x) -> float { return logarithm(x); });
  add("rcp", [](float x) -> float { return inverse(x); });
  add("sqrt", [](float x) -> float { return root(x); });
  add("rsqrt", [](float x) -> float { return inverseRoot(x); });
  rows.add({"tanh.approx.f32"}, row([](float x) -> float { return hyperbolicTangent(x); }));
  rows.add({"rcp.approx.ftz.f64"}, row([](double x) -> double { return upperInverse(x); }));
}

} // namespace emulator::ptx
