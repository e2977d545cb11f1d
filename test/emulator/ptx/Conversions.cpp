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
  std::uint8_t toBytes, fromBytes;
  Rounding rounding;
  bool isToInteger; ///< .rni and its like between floats
  bool isFlushing : 1, isSaturating : 1, isRelu : 1;

  bool isFromInteger() const { return from == Class::Signed || from == Class::Unsigned; }
  bool becomesInteger() const { return to == Class::Signed || to == Class::Unsigned; }
};
static_assert(sizeof(Conversion) <= sizeof(Instruction::offset));

Class classOf(Decoder &decoder, const std::string &type) {
  static const std::map<std::string, Class> classes = {
      {"f32", Class::F32}, {"f64", Class::F64}, {"bf16", Class::Bf16}};
  if (const auto found = classes.find(type); found != classes.end())
    return found->second;
  if (type[0] != 's' && type[0] != 'u')
    decoder.refuse("conversions of ." + type + " are not supported");
  return type[0] == 's' ? Class::Signed : Class::Unsigned;
}

double roundToInteger(double x, Rounding rounding) {
  return rounding == Rounding::Nearest ? std::nearbyint(x)
         : rounding == Rounding::Zero  ? std::trunc(x)
         : rounding == Rounding::Down  ? std::floor(x)
                                       : std::ceil(x);
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

/// Of an integer, whose bits are extended to 64.
std::uint64_t saturated(std::uint64_t bits, const Conversion &c) {
  const auto value = c.from == Class::Signed ? __int128(static_cast<std::int64_t>(bits)) : bits;
  const __int128 most = (__int128(1) << (8 * c.toBytes - (c.to == Class::Signed))) - 1;
  const __int128 least = c.to == Class::Signed ? -most - 1 : 0;
  return static_cast<std::uint64_t>(std::min(std::max(value, least), most));
}

std::uint64_t converted(std::uint64_t bits, const Conversion &c) {
  bits = cut(bits, c.fromBytes, c.from == Class::Signed);
  if (c.isFromInteger()) {
    if (c.becomesInteger())
      return cut(c.isSaturating ? saturated(bits, c) : bits, c.toBytes, c.to == Class::Signed);
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
  if (c.becomesInteger())
    return cut(toInteger(value, c), c.toBytes, c.to == Class::Signed);
  if (c.isToInteger)
    value = roundToInteger(value, c.rounding);
  if (c.to == Class::Bf16) {
    const auto near = toBf16(static_cast<float>(value));
    return c.isRelu && near >> 15 && value == value ? 0 : near;
  }
  return fromDouble(value, value, c);
}

/// The conversion is in `offset`.
void convert(Warp &warp, const Instruction &in, Lanes lanes) {
  Conversion c;
  std::memcpy(&c, &in.offset, sizeof c);
  each(lanes,
       [&](unsigned lane) { warp.setNumber(in.d, lane, converted(warp.number(in.a, lane), c)); });
}

// Most conversions, without a case for each.
const Rows &fastRows() {
  static const Rows rows = {
      {"cvt.rn.bf16x2.f32", row([](float upper, float lower) -> std::uint32_t {
         return std::uint32_t(toBf16(upper)) << 16 | toBf16(lower);
       })},
      {"cvt.rn.bf16.f32", row([](float x) -> std::uint16_t { return toBf16(x); })},
      {"cvt.f32.bf16", row([](std::uint16_t x) -> float { return withOneNan(ofBf16(x)); })},
      {"cvt.rn.f32.s32", row([](std::int32_t x) -> float { return float(x); })},
      {"cvt.rn.f32.u32", row([](std::uint32_t x) -> float { return float(x); })},
      {"cvt.f64.f32", row([](float x) -> double { return x; })},
      {"cvt.u64.u32", row([](std::uint32_t x) -> std::uint64_t { return x; })},
      {"cvt.s64.s32", row([](std::int32_t x) -> std::int64_t { return x; })},
      {"cvt.u32.u16", row([](std::uint16_t x) -> std::uint32_t { return x; })},
      {"cvt.u16.u32", row([](std::uint32_t x) -> std::uint16_t { return std::uint16_t(x); })},
      {"cvt.u32.u64", row([](std::uint64_t x) -> std::uint32_t { return std::uint32_t(x); })}};
  return rows;
}

} // namespace

bool decodeConversions(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  if (statement.opcode != "cvt")
    return false;
  const auto fast = fastRows().find(statement.spelling());
  if (fast != fastRows().end() && fast->second.widths[2]) { // a pair: bf16x2 has no conversion
    decoder.in.run = fast->second.run;
    decoder.operandsOf(fast->second.widths);
    return true;
  }
  const std::string &to = statement.last(1), &from = statement.last(0);
  Conversion c{};
  c.to = classOf(decoder, to);
  c.from = classOf(decoder, from);
  c.toBytes = static_cast<std::uint8_t>(bytesOfType(to));
  c.fromBytes = static_cast<std::uint8_t>(bytesOfType(from));
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
      c.to == Class::Bf16 && (c.from == Class::F64 || (c.isFromInteger() && c.fromBytes > 2));
  if (roundsTwice || (c.to == Class::Bf16 && c.rounding != Rounding::Nearest) ||
      (c.to == Class::F64 && c.rounding != Rounding::Nearest && !c.isToInteger))
    decoder.refuse("this conversion is not supported");
  decoder.in.run = convert;
  decoder.in.d = decoder.result(decoder.operand(0), 0);
  decoder.in.a = decoder.source(decoder.operand(1), c.fromBytes < 2 ? 2 : c.fromBytes);
  if (decoder.in.d.width < c.toBytes)
    decoder.refuse("the result needs a register of " + std::to_string(c.toBytes) + " bytes");
  std::memcpy(&decoder.in.offset, &c, sizeof c);
  // A source that is wider than its type has another stride.
  if (fast != fastRows().end() && fast->second.widths[1] == decoder.in.a.width &&
      fast->second.widths[0] == decoder.in.d.width)
    decoder.in.run = fast->second.run;
  return true;
}

} // namespace emulator::ptx
