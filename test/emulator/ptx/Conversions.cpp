//===- Conversions.cpp - cvt ------------------------------------------------------------===//
//
// Operands may be wider than the types of the instruction: of a source the lower bits count, a
// result is extended, by its sign where its type has one.
//
//===----------------------------------------------------------------------===//

#include "Lanewise.h"

#include <algorithm>
#include <tuple>

namespace emulator::ptx {

namespace {

enum class Class : std::uint8_t { Signed, Unsigned, F32, F64, Bf16 };
enum class Rounding : std::uint8_t { Nearest, Zero, Down, Up };

struct Conversion {
  Class to, from;
  unsigned toBytes, fromBytes;
  Rounding rounding = Rounding::Nearest;
  bool isToInteger = false; ///< .rni and its like between floats
  bool isFlushing = false, isSaturating = false, isRelu = false;
};

Class classOf(Decoder &decoder, const std::string &type) {
  if (type == "f32")
    return Class::F32;
  if (type == "f64")
    return Class::F64;
  if (type == "bf16")
    return Class::Bf16;
  if (type[0] == 's')
    return Class::Signed;
  if (type[0] == 'u')
    return Class::Unsigned;
  decoder.refuse("conversions of ." + type + " are not supported");
}

template <class T> T roundToInteger(T x, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(x);
  case Rounding::Zero:
    return std::trunc(x);
  case Rounding::Down:
    return std::floor(x);
  default:
    return std::ceil(x);
  }
}

/// To f32 with a rounding: `exact` as long double has all bits of 64-bit integers and of f64.
float toFloat(long double exact, Rounding rounding) {
  float near = static_cast<float>(exact);
  if (rounding == Rounding::Nearest || std::isinf(near) || near != near)
    return near;
  const bool isUp = rounding == Rounding::Up || (rounding == Rounding::Zero && exact < 0);
  if (isUp && near < exact)
    near = std::nextafter(near, HUGE_VALF);
  if (!isUp && near > exact)
    near = std::nextafter(near, -HUGE_VALF);
  return near;
}

/// Toward the nearest, below and above: NaN becomes 0 as 32 bits and fewer, and the smallest number
/// as signed 64, the highest bit as unsigned 64.
std::uint64_t toInteger(double x, const Conversion &c) {
  if (x != x)
    return c.toBytes == 8 ? 0x8000000000000000u : 0;
  x = roundToInteger(x, c.rounding);
  const int bits = 8 * static_cast<int>(c.toBytes);
  if (c.to == Class::Signed) {
    if (x >= std::ldexp(1.0, bits - 1))
      return (std::uint64_t(1) << (bits - 1)) - 1;
    return static_cast<std::uint64_t>(x < -std::ldexp(1.0, bits - 1)
                                          ? std::int64_t(~std::uint64_t(0) << (bits - 1))
                                          : static_cast<std::int64_t>(x));
  }
  if (x >= std::ldexp(1.0, bits))
    return bits == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1;
  return x <= 0 ? 0 : static_cast<std::uint64_t>(x);
}

std::uint64_t cut(std::uint64_t bits, unsigned bytes, bool isSigned) {
  if (bytes == 8)
    return bits;
  const unsigned shift = 64 - 8 * bytes;
  return isSigned ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift)
                  : bits << shift >> shift;
}

std::uint64_t fromDouble(double value, long double exact, const Conversion &c) {
  if (c.to == Class::F64)
    return bitsOf<std::uint64_t>(
        c.isSaturating ? std::min(std::max(value == value ? value : 0, 0.0), 1.0) : value);
  float near = withOneNan(toFloat(exact, c.rounding));
  if (c.isFlushing)
    near = flushed(near);
  if (c.isSaturating)
    near = near > 0 ? std::min(near, 1.0f) : 0.0f;
  return bitsOf<std::uint32_t>(near);
}

std::uint64_t converted(std::uint64_t bits, const Conversion &c) {
  bits = cut(bits, c.fromBytes, c.from == Class::Signed);
  const bool toInt = c.to == Class::Signed || c.to == Class::Unsigned;
  if (c.from == Class::Signed || c.from == Class::Unsigned) {
    if (toInt) {
      if (c.isSaturating) {
        const unsigned width = 8 * c.toBytes;
        const auto value = static_cast<__int128>(
            c.from == Class::Signed ? static_cast<__int128>(static_cast<std::int64_t>(bits))
                                    : static_cast<__int128>(bits));
        const __int128 most =
            (static_cast<__int128>(1) << (c.to == Class::Signed ? width - 1 : width)) - 1;
        const __int128 least = c.to == Class::Signed ? -most - 1 : 0;
        bits = static_cast<std::uint64_t>(std::min(std::max(value, least), most));
      }
      return cut(bits, c.toBytes, c.to == Class::Signed);
    }
    const long double exact = c.from == Class::Signed
                                  ? static_cast<long double>(static_cast<std::int64_t>(bits))
                                  : static_cast<long double>(bits);
    if (c.to == Class::Bf16)
      return toBf16(static_cast<float>(exact)); // refused where it would round twice
    return fromDouble(static_cast<double>(exact), exact, c);
  }
  double value = c.from == Class::F64    ? bitsOf<double>(bits)
                 : c.from == Class::Bf16 ? double(ofBf16(static_cast<std::uint16_t>(bits)))
                                         : double(bitsOf<float>(static_cast<std::uint32_t>(bits)));
  if (c.isFlushing && c.from == Class::F32)
    value = flushed(static_cast<float>(value));
  if (toInt)
    return cut(toInteger(value, c), c.toBytes, c.to == Class::Signed);
  if (c.isToInteger)
    value = roundToInteger(value, c.rounding);
  if (c.to == Class::Bf16) {
    const auto near = toBf16(static_cast<float>(value));
    return c.isRelu && (near >> 15 || value != value) ? (value != value ? 0x7fff : 0) : near;
  }
  return fromDouble(value, value, c);
}

/// The conversion of an instruction, packed into its `offset`.
std::int64_t packed(const Conversion &c) {
  return std::int64_t(c.to) | std::int64_t(c.from) << 4 | std::int64_t(c.toBytes) << 8 |
         std::int64_t(c.fromBytes) << 12 | std::int64_t(c.rounding) << 16 |
         std::int64_t(c.isToInteger) << 20 | std::int64_t(c.isFlushing) << 21 |
         std::int64_t(c.isSaturating) << 22 | std::int64_t(c.isRelu) << 23;
}

Conversion unpacked(std::int64_t bits) {
  Conversion c{Class(bits & 15), Class(bits >> 4 & 15), unsigned(bits >> 8 & 15),
               unsigned(bits >> 12 & 15)};
  c.rounding = Rounding(bits >> 16 & 15);
  c.isToInteger = bits >> 20 & 1;
  c.isFlushing = bits >> 21 & 1;
  c.isSaturating = bits >> 22 & 1;
  c.isRelu = bits >> 23 & 1;
  return c;
}

void convert(Warp &warp, const Instruction &in, Lanes lanes) {
  const Conversion c = unpacked(in.offset);
  each(lanes,
       [&](unsigned lane) { warp.setNumber(in.d, lane, converted(warp.number(in.a, lane), c)); });
}

/// cvt.rn.bf16x2.f32 d, a, b: a is the upper half.
void convertPair(Warp &warp, const Instruction &in, Lanes lanes) {
  const float *upper = warp.at<float>(in.a), *lower = warp.at<float>(in.b);
  std::uint32_t *d = warp.at<std::uint32_t>(in.d);
  each(lanes, [&](unsigned i) { d[i] = std::uint32_t(toBf16(upper[i])) << 16 | toBf16(lower[i]); });
}

// Most conversions, without a case for each.
struct ToBf16 {
  std::uint16_t operator()(float x) const { return toBf16(x); }
};
struct Same {
  template <class T> T operator()(T x) const { return x; }
};
const std::map<std::string, Row> &fastRows() {
  static const std::map<std::string, Row> table = {
      {"cvt.rn.bf16.f32", one<ToBf16, std::uint16_t, float>()},
      {"cvt.f64.f32", one<Same, double, float>()},
      {"cvt.u64.u32", one<Same, std::uint64_t, std::uint32_t>()},
      {"cvt.s64.s32", one<Same, std::int64_t, std::int32_t>()},
      {"cvt.u32.u64", one<Same, std::uint32_t, std::uint64_t>()}};
  return table;
}

} // namespace

bool decodeConversions(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  if (statement.opcode != "cvt")
    return false;
  if (statement.spelling() == "cvt.rn.bf16x2.f32") {
    decoder.in.run = convertPair;
    decoder.operandsOf(4, 4, 4);
    return true;
  }
  const std::string &to = statement.last(1), &from = statement.last(0);
  Conversion c{classOf(decoder, to), classOf(decoder, from), bytesOfType(to), bytesOfType(from)};
  static const std::map<std::string, std::pair<Rounding, bool>> roundings = {
      {"rn", {Rounding::Nearest, false}}, {"rz", {Rounding::Zero, false}},
      {"rm", {Rounding::Down, false}},    {"rp", {Rounding::Up, false}},
      {"rni", {Rounding::Nearest, true}}, {"rzi", {Rounding::Zero, true}},
      {"rmi", {Rounding::Down, true}},    {"rpi", {Rounding::Up, true}}};
  for (std::size_t i = 0; i + 2 < statement.suffixes.size(); ++i) {
    const std::string &suffix = statement.suffixes[i];
    if (const auto found = roundings.find(suffix); found != roundings.end())
      std::tie(c.rounding, c.isToInteger) = found->second;
    else if (suffix == "ftz")
      c.isFlushing = true;
    else if (suffix == "sat")
      c.isSaturating = true;
    else if (suffix == "relu")
      c.isRelu = true;
    else
      decoder.refuse("the modifier ." + suffix + " is not supported");
  }
  const bool roundsTwice =
      c.to == Class::Bf16 &&
      (c.from == Class::F64 ||
       ((c.from == Class::Signed || c.from == Class::Unsigned) && c.fromBytes > 2));
  if (roundsTwice || (c.to == Class::Bf16 && c.rounding != Rounding::Nearest) ||
      (c.to == Class::F64 && c.rounding != Rounding::Nearest && !c.isToInteger))
    decoder.refuse("this conversion is not supported");
  decoder.in.run = convert;
  decoder.in.d = decoder.result(decoder.operand(0), 0);
  decoder.in.a = decoder.source(decoder.operand(1), c.fromBytes < 2 ? 2 : c.fromBytes);
  if (decoder.in.d.width < c.toBytes)
    decoder.refuse("the result needs a register of " + std::to_string(c.toBytes) + " bytes");
  decoder.in.offset = packed(c);
  // A source that is wider than its type has another stride.
  if (const auto fast = fastRows().find(statement.spelling());
      fast != fastRows().end() && fast->second.a == decoder.in.a.width &&
      fast->second.d == decoder.in.d.width)
    decoder.in.run = fast->second.run;
  return true;
}

} // namespace emulator::ptx
