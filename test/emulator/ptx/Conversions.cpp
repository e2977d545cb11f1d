//===- Conversions.cpp - cvt ------------------------------------------------------------===//
//
// Operands may be wider than the types of the instruction: of a source the lower bits count, a
// result is extended, by its sign where its type has one.
//
//===----------------------------------------------------------------------===//

#include "Lanewise.h"

#include <limits>

namespace emulator::ptx {

namespace {

struct Bf16 {
  std::uint16_t bits;
};
enum class Rounding : std::uint8_t { Nearest, Zero, Down, Up };
struct Modes {
  Rounding rounding = Rounding::Nearest;
  bool isToInteger = false; ///< .rni and its like between floats
  bool isFlushing = false, isSaturating = false, isRelu = false;
};
static_assert(sizeof(Modes) <= sizeof(Instruction::offset));

double roundToInteger(double x, Rounding rounding) {
  return rounding == Rounding::Nearest ? std::nearbyint(x)
         : rounding == Rounding::Zero  ? std::trunc(x)
         : rounding == Rounding::Down  ? std::floor(x)
                                       : std::ceil(x);
}

/// To f32 with a rounding: a long double has all bits of 64-bit integers and of f64.
float toFloat(long double exact, Rounding rounding) {
  const float near = static_cast<float>(exact);
  if (rounding == Rounding::Nearest || std::isinf(near) || near != near)
    return near;
  const bool isUp = rounding == Rounding::Up || (rounding == Rounding::Zero && exact < 0);
  return isUp && near < exact    ? std::nextafter(near, HUGE_VALF)
         : !isUp && near > exact ? std::nextafter(near, -HUGE_VALF)
                                 : near;
}

/// Too large and too small numbers become the limits. NaN becomes 0 as 32 bits and fewer, and the
/// highest bit as 64.
template <class To> To toInteger(double x, Rounding rounding) {
  using Limits = std::numeric_limits<To>;
  if (x != x)
    return sizeof(To) == 8 ? static_cast<To>(std::uint64_t(1) << 63) : To(0);
  x = roundToInteger(x, rounding);
  return x >= std::ldexp(1.0, Limits::digits) ? Limits::max()
         : x <= double(Limits::min())         ? Limits::min()
                                              : static_cast<To>(x);
}

template <class To> To saturated(__int128 x) {
  using Limits = std::numeric_limits<To>;
  return static_cast<To>(std::min<__int128>(std::max<__int128>(x, Limits::min()), Limits::max()));
}

template <class To, class From> To converted(From from, const Modes &modes) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    return modes.isSaturating ? saturated<To>(from) : static_cast<To>(from);
  } else if constexpr (std::is_same_v<To, Bf16> && std::is_integral_v<From>) {
    return {toBf16(static_cast<float>(from))}; // refused where it would round twice
  } else if constexpr (std::is_same_v<To, float> && std::is_integral_v<From>) {
    const float near = modes.rounding == Rounding::Nearest ? static_cast<float>(from)
                                                           : toFloat(from, modes.rounding);
    return modes.isSaturating ? std::min(std::max(near, 0.0f), 1.0f) : near;
  } else {
    double x;
    if constexpr (std::is_same_v<From, Bf16>)
      x = ofBf16(from.bits);
    else
      x = static_cast<double>(from);
    if (std::is_same_v<From, float> && modes.isFlushing)
      x = flushed(static_cast<float>(x));
    if constexpr (std::is_integral_v<To>) {
      return toInteger<To>(x, modes.rounding);
    } else {
      x = modes.isToInteger ? roundToInteger(x, modes.rounding) : x;
      if constexpr (std::is_same_v<To, Bf16>) {
        const std::uint16_t near = toBf16(static_cast<float>(x));
        return {modes.isRelu && near >> 15 && x == x ? std::uint16_t(0) : near};
      } else {
        To near = static_cast<To>(x);
        if constexpr (std::is_same_v<To, float>) {
          near = withOneNan(modes.rounding == Rounding::Nearest || modes.isToInteger
                                ? near
                                : toFloat(x, modes.rounding));
          near = modes.isFlushing ? flushed(near) : near;
        }
        return modes.isSaturating ? (near > 0 ? std::min(near, To(1)) : To(0)) : near;
      }
    }
  }
}

/// The modes are in `offset`.
template <class To, class From> void convert(Warp &warp, const Instruction &in, Lanes lanes) {
  Modes modes;
  std::memcpy(static_cast<void *>(&modes), &in.offset, sizeof modes);
  if (lanes == kAllLanes && in.a.width == sizeof(From) && in.d.width == sizeof(To)) {
    To results[32];
    for (unsigned i = 0; i < 32; ++i)
      results[i] = converted<To>(warp.at<From>(in.a)[i], modes);
    std::memcpy(warp.at<To>(in.d), results, sizeof results);
    return;
  }
  each(lanes, [&](unsigned lane) {
    From from;
    std::memcpy(&from, warp.at<char>(in.a) + lane * in.a.width, sizeof from);
    const To to = converted<To>(from, modes);
    std::uint64_t bits = 0;
    if constexpr (std::is_integral_v<To>)
      bits = static_cast<std::uint64_t>(to); // extends
    else
      std::memcpy(&bits, &to, sizeof to);
    warp.setNumber(in.d, lane, bits);
  });
}

template <class Make>
Instruction::Run ofNumber(Decoder &decoder, const std::string &type, Make make) {
  if (type == "bf16")
    return make(Bf16());
  if (type[0] != 's' && type[0] != 'u' && type != "f32" && type != "f64")
    decoder.refuse("conversions of ." + type + " are not supported");
  return ofType(decoder, type, make);
}

/// cvt.rn.bf16x2.f32 d, a, b: a is the upper half.
bool decodePair(Decoder &decoder) {
  const Row pair = row([](float upper, float lower) -> std::uint32_t {
    return std::uint32_t(toBf16(upper)) << 16 | toBf16(lower);
  });
  decoder.in.run = pair.run;
  decoder.operandsOf(pair.widths);
  return true;
}

} // namespace

bool decodeConversions(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  if (statement.opcode != "cvt")
    return false;
  if (statement.spelling() == "cvt.rn.bf16x2.f32")
    return decodePair(decoder);
  const std::string &to = statement.last(1), &from = statement.last(0);
  Instruction &in = decoder.in;
  in.run = ofNumber(decoder, to, [&](auto x) {
    return ofNumber(decoder, from,
                    [](auto y) -> Instruction::Run { return convert<decltype(x), decltype(y)>; });
  });
  Modes modes;
  for (std::size_t i = 0; i + 2 < statement.suffixes.size(); ++i) {
    const std::string &suffix = statement.suffixes[i];
    const int number = Decoder::optionOf(suffix, "rn rz rm rp rni rzi rmi rpi ftz sat relu");
    if (number < 0)
      decoder.refuse("the modifier ." + suffix + " is not supported");
    if (number < 8) {
      modes.rounding = static_cast<Rounding>(number % 4);
      modes.isToInteger = number >= 4;
    }
    modes.isFlushing |= suffix == "ftz";
    modes.isSaturating |= suffix == "sat";
    modes.isRelu |= suffix == "relu";
  }
  const unsigned toBytes = bytesOfType(to), fromBytes = bytesOfType(from);
  const bool isOther = modes.rounding != Rounding::Nearest;
  const bool roundsTwice = from == "f64" || (from[0] != 'f' && from != "bf16" && fromBytes > 2);
  if ((to == "bf16" && (roundsTwice || isOther)) || (to == "f64" && isOther && !modes.isToInteger))
    decoder.refuse("this conversion is not supported");
  in.d = decoder.result(decoder.operand(0), 0);
  in.a = decoder.source(decoder.operand(1), std::max(fromBytes, 2u));
  if (in.d.width < toBytes)
    decoder.refuse("the result needs a register of " + std::to_string(toBytes) + " bytes");
  std::memcpy(&in.offset, &modes, sizeof modes);
  return true;
}

} // namespace emulator::ptx
