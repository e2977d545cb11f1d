//===- Lanewise.h - runs a function of numbers in each lane --------------------------===//
//
// A row of the table of instructions is a function of one to four numbers: the types of its result
// and its arguments say the widths of the operands. A bool is a predicate.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_PTX_LANEWISE_H
#define FSDP_EMULATOR_PTX_LANEWISE_H

#include "Decode.h"
#include "Machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

namespace emulator::ptx {

/// Numbers of 32 lanes, at first undefined.
template <class T> struct OfLanes {
  OfLanes() {}
  T numbers[32];
};

/// Predicates as bools, and the lower bytes of wider registers.
void copyNumbers(const Warp &warp, Ref ref, std::size_t bytes, void *numbers);
/// Of some lanes; of predicates from bools.
void setNumbers(Warp &warp, Ref ref, Lanes lanes, std::size_t bytes, const void *numbers);

/// The numbers of an operand: where they lie, or in `copy`.
template <class T> const T *numbersOf(const Warp &warp, Ref ref, OfLanes<T> &&copy) {
  if (ref.width == sizeof(T))
    return warp.at<T>(ref);
  copyNumbers(warp, ref, sizeof(T), copy.numbers);
  return copy.numbers;
}

/// In all lanes, whose numbers are defined: the results of `lanes` are kept.
template <class F, class D, class... S> struct Lanewise {
  static void run(Warp &warp, const Instruction &in, Lanes lanes) {
    runWith(warp, in, lanes, std::index_sequence_for<S...>());
  }

private:
  static void compute(D *results, const S *...from) {
    for (unsigned i = 0; i < 32; ++i)
      results[i] = F()(from[i]...);
  }
  template <std::size_t... I>
  static void runWith(Warp &warp, const Instruction &in, Lanes lanes, std::index_sequence<I...>) {
    const Ref operands[] = {in.a, in.b, in.c, in.e};
    D results[32];
    compute(results, numbersOf(warp, operands[I], OfLanes<S>())...);
    setNumbers(warp, in.d, lanes, sizeof(D), results);
  }
};

template <class T> constexpr char digitOf = std::is_same_v<T, bool> ? '0' : char('0' + sizeof(T));
/// Row::operands of numbers of these types.
template <class... T>
constexpr std::array<char, 3 * sizeof...(T)> operandsOf = [] {
  std::array<char, 3 * sizeof...(T)> words{};
  const char digits[] = {digitOf<T>...};
  for (std::size_t i = 0; i < sizeof...(T); ++i) {
    words[3 * i] = "dabce"[i];
    words[3 * i + 1] = digits[i];
    words[3 * i + 2] = i + 1 < sizeof...(T) ? ' ' : '\0';
  }
  return words;
}();

template <class F, class D, class... S> Row rowOf(D (F::*)(S...) const) {
  return {Lanewise<F, D, S...>::run, operandsOf<D, S...>.data()};
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

/// Of a pair of bf16.
inline float lowHalf(std::uint32_t pair) { return bitsOf<float>(pair << 16); }
inline float highHalf(std::uint32_t pair) { return bitsOf<float>(pair & 0xffff0000u); }
inline std::uint16_t toBf16(float x) {
  const auto bits = bitsOf<std::uint32_t>(x);
  return x == x ? static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16) : 0x7fff;
}

/// Calls `make` with a number without a sign of so many bytes.
template <class Make> auto ofWidth(unsigned bytes, Make make) {
  return bytes == 1   ? make(std::uint8_t())
         : bytes == 2 ? make(std::uint16_t())
         : bytes == 4 ? make(std::uint32_t())
                      : make(std::uint64_t());
}

} // namespace emulator::ptx

#endif // FSDP_EMULATOR_PTX_LANEWISE_H
