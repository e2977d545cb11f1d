//===- Lanewise.h - runs a function of numbers in each lane --------------------------===//
//
// A row of the table of instructions is a function of one, two or three numbers: the types of its
// result and its arguments say the widths of the operands.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_LANEWISE_H
#define FSDP_EMULATOR_PTX_LANEWISE_H

#include "Decode.h"
#include "Machine.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace emulator::ptx {

template <class F, class D, class... S> struct Lanewise {
  static void run(Warp &warp, const Instruction &in, Lanes lanes) {
    runWith(warp, in, lanes, std::index_sequence_for<S...>());
  }

private:
  template <std::size_t... I>
  static void runWith(Warp &warp, const Instruction &in, Lanes lanes, std::index_sequence<I...>) {
    const Ref operands[] = {in.a, in.b, in.c};
    const std::tuple<const S *...> from(warp.at<S>(operands[I])...);
    D *d = warp.at<D>(in.d);
    if (lanes != kAllLanes)
      return each(lanes, [&](unsigned i) { d[i] = F()(std::get<I>(from)[i]...); });
    D results[32]; // vectorized: it is no operand
    for (unsigned i = 0; i < 32; ++i)
      results[i] = F()(std::get<I>(from)[i]...);
    std::copy_n(results, 32, d);
  }
};

template <class F, class D, class... S> Row rowOf(D (F::*)(S...) const) {
  return {Lanewise<F, D, S...>::run, {sizeof(D), sizeof(S)...}};
}
/// The row of a lambda without captures.
template <class F> Row row(F) { return rowOf(&F::operator()); }

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

/// A function of f32 with .ftz.
template <class F, class D, class... S> struct Flushing {
  D operator()(S... x) const { return flushed(F()(flushed(x)...)); }
};
template <class F, class D, class... S> Row flushingRowOf(D (F::*)(S...) const) {
  return rowOf(&Flushing<F, D, S...>::operator());
}

inline float ofBf16(std::uint16_t bits) { return bitsOf<float>(std::uint32_t(bits) << 16); }
inline std::uint16_t toBf16(float x) {
  const auto bits = bitsOf<std::uint32_t>(x);
  return x == x ? static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16) : 0x7fff;
}

/// Calls `make` with a number of the type.
template <class Make>
Instruction::Run ofType(Decoder &decoder, const std::string &type, Make make) {
  const unsigned bytes = bytesOfType(type);
  if (type == "f32")
    return make(float());
  if (type == "f64")
    return make(double());
  if (type[0] == 's')
    return bytes == 1   ? make(std::int8_t())
           : bytes == 2 ? make(std::int16_t())
           : bytes == 4 ? make(std::int32_t())
                        : make(std::int64_t());
  if ((type[0] == 'u' || type[0] == 'b') && type[1] != 'f')
    return bytes == 1   ? make(std::uint8_t())
           : bytes == 2 ? make(std::uint16_t())
           : bytes == 4 ? make(std::uint32_t())
                        : make(std::uint64_t());
  decoder.refuse("operands of ." + type + " are not supported");
}

/// Calls `make` with a number without a sign of so many bytes.
template <class Make> Instruction::Run ofWidth(unsigned bytes, Make make) {
  return bytes == 2   ? make(std::uint16_t())
         : bytes == 4 ? make(std::uint32_t())
                      : make(std::uint64_t());
}

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_LANEWISE_H
