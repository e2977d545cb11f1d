//===- Conversions.cpp - cvt ------------------------------------------------------------===//
//
// Sources may be wider than the types of the instruction: their lower bits count.
//
//===----------------------------------------------------------------------===//

#include "Lanewise.h"

#include <limits>

namespace emulator::ptx {

namespace {

/// Too large and too small numbers become the limits. NaN becomes 0 as 32 bits and fewer, and the
/// highest bit as 64.
template <class To> To toInteger(double whole) {
  using Limits = std::numeric_limits<To>;
  if (whole != whole)
    return sizeof(To) == 8 ? static_cast<To>(std::uint64_t(1) << 63) : To(0);
  return whole >= std::ldexp(1.0, Limits::digits) ? Limits::max()
         : whole <= double(Limits::min())         ? Limits::min()
                                                  : static_cast<To>(whole);
}

/// Of an integer: to others, of which further bits are its sign or zero, and to the nearest float.
template <class From> void addFromInteger(Rows &rows, const std::string &from) {
  const auto add = [&](const char *to, auto function) {
    rows.add({"cvt.", to, from}, row(function));
  };
  for (const char *to : {"u16.", "s16."})
    add(to, [](From x) -> std::uint16_t { return static_cast<std::uint16_t>(x); });
  for (const char *to : {"u32.", "s32."})
    add(to, [](From x) -> std::uint32_t { return static_cast<std::uint32_t>(x); });
  for (const char *to : {"u64.", "s64."})
    add(to, [](From x) -> std::uint64_t { return static_cast<std::uint64_t>(x); });
  add("f32.", [](From x) -> float { return static_cast<float>(x); });
  add("f64.", [](From x) -> double { return static_cast<double>(x); });
}

/// Of a float: to integers and whole floats with each rounding, and into [0, 1].
template <class From> void addFromFloat(Rows &rows, const std::string &from) {
  const std::string own = from + ".";
  const auto addRounding = [&](const char *mode, auto rounding) {
    using Round = decltype(rounding);
    const auto add = [&](const char *to, auto function) {
      rows.add({"cvt.", mode, to, from}, row(function));
    };
    add("s32.", [](From x) -> std::int32_t { return toInteger<std::int32_t>(Round()(x)); });
    add("u32.", [](From x) -> std::uint32_t { return toInteger<std::uint32_t>(Round()(x)); });
    add("s64.", [](From x) -> std::int64_t { return toInteger<std::int64_t>(Round()(x)); });
    add("u64.", [](From x) -> std::uint64_t { return toInteger<std::uint64_t>(Round()(x)); });
    add(own.c_str(), [](From x) -> From { return withOneNan(From(Round()(x))); });
  };
  addRounding("rni.", [](double x) { return std::nearbyint(x); });
  addRounding("rzi.", [](double x) { return std::trunc(x); });
  addRounding("rmi.", [](double x) { return std::floor(x); });
  addRounding("rpi.", [](double x) { return std::ceil(x); });
  rows.add({"cvt.sat.", from, ".", from},
           row([](From x) -> From { return x > 0 ? std::min(x, From(1)) : From(0); }));
}

} // namespace

void addConversions(Rows &rows) {
  addFromInteger<std::int8_t>(rows, "s8");
  addFromInteger<std::uint8_t>(rows, "u8");
  addFromInteger<std::int16_t>(rows, "s16");
  addFromInteger<std::uint16_t>(rows, "u16");
  addFromInteger<std::int32_t>(rows, "s32");
  addFromInteger<std::uint32_t>(rows, "u32");
  addFromInteger<std::int64_t>(rows, "s64");
  addFromInteger<std::uint64_t>(rows, "u64");
  addFromFloat<float>(rows, "f32");
  addFromFloat<double>(rows, "f64");
  rows.add({"cvt.f64.f32"}, row([](float x) -> double { return x; }));
  rows.add({"cvt.f32.f64"}, row([](double x) -> float { return withOneNan(float(x)); }));
  rows.add({"cvt.bf16.f32"}, row([](float x) -> std::uint16_t { return toBf16(x); }));
  // The first operand is the upper half.
  rows.add({"cvt.bf16x2.f32"}, row([](float upper, float lower) -> std::uint32_t {
             return std::uint32_t(toBf16(upper)) << 16 | toBf16(lower);
           }));
}

} // namespace emulator::ptx
