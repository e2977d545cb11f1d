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

constexpr double kUnit =
    0x1p-23; ///< of a mantissa of f32: of a number in [1, 2) one unit in the last place

struct PowerOfTwo { // ex2.approx: 2 units in the last place
  float operator()(float x) const {
    if (x == 0)
      return 1;
    return near(std::exp2(double(x)), bitsOf<std::uint32_t>(x), 0.75 * kUnit);
  }
};
struct Logarithm { // lg2.approx: 2^-22 absolute in (0.5, 2), else as much of the result
  float operator()(float x) const {
    if (x < 0)
      return bitsOf<float>(0x7fffffffu);
    if (x == 0 || std::isinf(x) || x != x || x == 1)
      return withOneNan(std::log2(x));
    const bool isClose = x > 0.5f && x < 2;
    return near(std::log2(double(x)), bitsOf<std::uint32_t>(x), isClose ? 0 : 0x1p-23,
                isClose ? 0x1p-23 : 0);
  }
};
struct Inverse { // rcp.approx: one unit
  float operator()(float x) const {
    return near(1 / double(x), bitsOf<std::uint32_t>(x), 0.25 * kUnit);
  }
};
struct Root { // sqrt.approx: 2^-23 relative
  float operator()(float x) const {
    return near(std::sqrt(double(x)), bitsOf<std::uint32_t>(x), 0.5 * kUnit);
  }
};
struct InverseRoot { // rsqrt.approx: 2^-22.9 relative
  float operator()(float x) const {
    return x == 0 ? std::copysign(HUGE_VALF, x)
                  : near(1 / std::sqrt(double(x)), bitsOf<std::uint32_t>(x), 0.5 * kUnit);
  }
};
struct HyperbolicTangent { // 2^-11 relative
  float operator()(float x) const {
    return near(std::tanh(double(x)), bitsOf<std::uint32_t>(x),
                std::isinf(x) ? 0 : 0x1p-11 - 0x1p-23);
  }
};
struct UpperInverse { // rcp.approx.ftz.f64: the upper 32 bits, less than 2^-19 away; subnormal
                      // numbers are zero
  double operator()(double x) const {
    if (std::fabs(x) < 0x1p-1022)
      x = std::copysign(0.0, x);
    const double exact = 1 / x;
    if (std::fabs(exact) < 0x1p-1022)
      return std::copysign(0.0, exact);
    return bitsOf<double>(bitsOf<std::uint64_t>(exact) & 0xffffffff00000000u);
  }
};

std::map<std::string, Row> makeTable() {
  std::map<std::string, Row> table;
  table["rcp.approx.ftz.f64"] = one<UpperInverse, double, double>();
  table["tanh.approx.f32"] = one<HyperbolicTangent, float, float>();
#define FSDP_APPROXIMATION(name, Functor)                                                          \
  table[name ".approx.f32"] = one<Functor, float, float>();                                        \
  table[name ".approx.ftz.f32"] = one<Flushing<Functor>, float, float>();
  FSDP_APPROXIMATION("ex2", PowerOfTwo)
  FSDP_APPROXIMATION("lg2", Logarithm)
  FSDP_APPROXIMATION("rcp", Inverse)
  FSDP_APPROXIMATION("sqrt", Root)
  FSDP_APPROXIMATION("rsqrt", InverseRoot)
#undef FSDP_APPROXIMATION
  return table;
}

} // namespace

bool decodeApproximations(Decoder &decoder) {
  static const std::map<std::string, Row> table = makeTable();
  return decodeByTable(decoder, table, {});
}

} // namespace emulator::ptx
