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
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

namespace emulator::ptx {

/// Numbers of 32 lanes, at first undefined.
template <class T> struct OfLanes {
  OfLanes() {}
  T numbers[32];
};

/// The numbers of an operand: where they lie or, of predicates and the lower bits of wider
/// registers, in `copy`.
template <class T> const T *numbersOf(const Warp &warp, Ref ref, OfLanes<T> &copy) {
  if (ref.width == sizeof(T))
    return warp.at<T>(ref);
  for (unsigned i = 0; i < 32; ++i)
    if constexpr (std::is_same_v<T, bool>)
      copy.numbers[i] = warp.predicate(ref) >> i & 1;
    else
      std::memcpy(&copy.numbers[i], warp.at<char>(ref) + i * ref.width, sizeof(T));
  return copy.numbers;
}

template <class T> void setNumbers(Warp &warp, Ref ref, Lanes lanes, const T *numbers) {
  if constexpr (std::is_same_v<T, bool>) {
    Lanes holds = 0;
    for (unsigned i = 0; i < 32; ++i)
      holds |= Lanes(numbers[i]) << i;
    warp.setPredicate(ref, lanes, holds);
  } else if (T *to = warp.at<T>(ref); lanes == kAllLanes) {
    std::copy_n(numbers, 32, to);
  } else {
    each(lanes, [&](unsigned i) { to[i] = numbers[i]; });
  }
}

/// In all lanes, whose numbers are defined: the results of `lanes` are kept.
template <class F, class D, class... S> struct Lanewise {
  static void run(Warp &warp, const Instruction &in, Lanes lanes) {
    runWith(warp, in, lanes, std::index_sequence_for<S...>());
  }

private:
  template <std::size_t... I>
  static void runWith(Warp &warp, const Instruction &in, Lanes lanes, std::index_sequence<I...>) {
    const Ref operands[] = {in.a, in.b, in.c, in.e};
    std::tuple<OfLanes<S>...> copies;
    const std::tuple<const S *...> from(numbersOf(warp, operands[I], std::get<I>(copies))...);
    D results[32];
    for (unsigned i = 0; i < 32; ++i)
      results[i] = F()(std::get<I>(from)[i]...);
    setNumbers(warp, in.d, lanes, results);
  }
};

template <class F, class D, class... S> Row rowOf(D (F::*)(S...) const) {
  std::string words;
  const char *letter = "dabce";
  for (const unsigned bytes : {std::is_same_v<D, bool> ? 0u : unsigned(sizeof(D)),
                               std::is_same_v<S, bool> ? 0u : unsigned(sizeof(S))...})
    words += *letter++ + std::to_string(bytes) + " ";
  return {Lanewise<F, D, S...>::run, words};
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
