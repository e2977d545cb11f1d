//===- Arithmetic.cpp - sums, products and quotients -----------------------------------===//

#include "Lanewise.h"

#include <tuple>

namespace emulator::ptx {

namespace {

using Signed128 = __int128;
using Unsigned128 = unsigned __int128;
/// Twice the bits.
template <class T>
using Wide = std::tuple_element_t<(sizeof(T) + std::is_unsigned_v<T> * 8) / 2 - 1,
                                  std::tuple<std::int32_t, std::int64_t, void, Signed128,
                                             std::uint32_t, std::uint64_t, void, Unsigned128>>;

// The smaller or the larger of two floats: the other one if one is NaN, and -0 < +0.
template <bool isLarger, class T> T extremum(T a, T b) {
  if (a != a || b != b)
    return a == a ? a : withOneNan(b);
  if (a == b)
    return std::signbit(a) != isLarger ? a : b;
  return (a < b) != isLarger ? a : b;
}

/// fma.rm: toward minus infinity.
float addProductDown(float a, float b, float c) {
  const double product = double(a) * double(b), sum = product + double(c); // the product is exact
  const double part = sum - product, rest = (product - (sum - part)) + (double(c) - part);
  const float near = static_cast<float>(sum);
  const bool isAbove = double(near) > sum || (double(near) == sum && rest < 0);
  return withOneNan(isAbove && !std::isinf(near) ? std::nextafter(near, -HUGE_VALF) : near);
}

// Sums and products wrap around: by unsigned numbers.
template <class T> void addIntegers(Rows &rows, const std::string &type) {
  using U = std::uint64_t;
  const auto add = [&](const char *name, auto function) { rows.add({name, type}, row(function)); };
  add("add.", [](T a, T b) -> T { return T(U(a) + U(b)); });
  add("sub.", [](T a, T b) -> T { return T(U(a) - U(b)); });
  add("mul.lo.", [](T a, T b) -> T { return T(U(a) * U(b)); });
  add("mul.hi.", [](T a, T b) -> T { return T(Wide<T>(a) * b >> 8 * sizeof(T)); });
  add("mad.lo.", [](T a, T b, T c) -> T { return T(U(a) * U(b) + U(c)); });
  add("mad.hi.", [](T a, T b, T c) -> T { return T(U(Wide<T>(a) * b >> 8 * sizeof(T)) + U(c)); });
  add("min.", [](T a, T b) -> T { return std::min(a, b); });
  add("max.", [](T a, T b) -> T { return std::max(a, b); });
  // By zero: machine-specific; all bits, as devices give.
  add("div.", [](T a, T b) -> T {
    return b == 0 ? T(~U(0)) : std::is_signed_v<T> && b == T(-1) ? T(0 - U(a)) : T(a / b);
  });
  add("rem.", [](T a, T b) -> T {
    return b == 0 ? a : std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  });
  if constexpr (sizeof(T) < 8) {
    using W = Wide<T>;
    add("mul.wide.", [](T a, T b) -> W { return W(W(a) * W(b)); });
    add("mad.wide.", [](T a, T b, W c) -> W { return W(U(W(a) * W(b)) + U(c)); });
  }
  if constexpr (std::is_signed_v<T>) {
    add("abs.", [](T a) -> T { return a < 0 ? T(0 - U(a)) : a; });
    add("neg.", [](T a) -> T { return T(0 - U(a)); });
  }
}

template <class T, bool isFlushing = false> void addFloats(Rows &rows, const std::string &type) {
  const auto add = [&](const char *name, auto function) {
    using F = decltype(function);
    if constexpr (isFlushing)
      rows.add({name, type}, flushingRowOf(&F::operator()));
    else
      rows.add({name, type}, row(function));
  };
  add("add.", [](T a, T b) -> T { return withOneNan(a + b); });
  add("sub.", [](T a, T b) -> T { return withOneNan(a - b); });
  add("mul.", [](T a, T b) -> T { return withOneNan(a * b); });
  add("div.", [](T a, T b) -> T { return withOneNan(a / b); });
  add("fma.", [](T a, T b, T c) -> T { return withOneNan(std::fma(a, b, c)); });
  add("min.", [](T a, T b) -> T { return extremum<false>(a, b); });
  add("max.", [](T a, T b) -> T { return extremum<true>(a, b); });
  add("abs.", [](T a) -> T { return std::fabs(a); });
  add("neg.", [](T a) -> T { return -a; });
  add("rcp.", [](T a) -> T { return withOneNan(1 / a); });
  add("sqrt.", [](T a) -> T { return withOneNan(std::sqrt(a)); });
  // The sign of a and the rest of b.
  add("copysign.", [](T a, T b) -> T { return std::copysign(b, a); });
}

/// Of u32, with the carry of the lane, which addc, subc and madc read and .cc writes.
template <class F, bool isRead, bool isWritten>
void runWithCarry(Warp &warp, const Instruction &in, Lanes lanes) {
  const auto *a = warp.at<std::uint32_t>(in.a), *b = warp.at<std::uint32_t>(in.b),
             *c = warp.at<std::uint32_t>(in.c);
  each(lanes, [&](unsigned i) {
    const std::uint64_t carry = isRead ? warp.carry >> i & 1 : 0;
    const std::uint64_t sum = F()(a[i], b[i], in.c.width == 4 ? c[i] : 0, carry);
    warp.at<std::uint32_t>(in.d)[i] = static_cast<std::uint32_t>(sum);
    if (isWritten)
      warp.carry = (warp.carry & ~(Lanes(1) << i)) | Lanes(sum >> 32 & 1) << i;
  });
}

void addCarries(Rows &rows) {
  using U = std::uint64_t;
  const auto add = [&](const char *name, const char *part, const char *operands, auto function) {
    using F = decltype(function);
    rows.add({name, part, ".cc.u32"}, {runWithCarry<F, false, true>, operands});
    rows.add({name, "c", part, ".u32"}, {runWithCarry<F, true, false>, operands});
    rows.add({name, "c", part, ".cc.u32"}, {runWithCarry<F, true, true>, operands});
  };
  add("add", "", "d4 a4 b4", [](U a, U b, U, U carry) -> U { return a + b + carry; });
  add("sub", "", "d4 a4 b4", [](U a, U b, U, U carry) -> U { return a - b - carry; });
  add("mad", ".lo", "d4 a4 b4 c4",
      [](U a, U b, U c, U carry) -> U { return std::uint32_t(a * b) + c + carry; });
  add("mad", ".hi", "d4 a4 b4 c4",
      [](U a, U b, U c, U carry) -> U { return (a * b >> 32) + c + carry; });
}

} // namespace

void addArithmetic(Rows &rows) {
  addIntegers<std::int16_t>(rows, "s16");
  addIntegers<std::uint16_t>(rows, "u16");
  addIntegers<std::int32_t>(rows, "s32");
  addIntegers<std::uint32_t>(rows, "u32");
  addIntegers<std::int64_t>(rows, "s64");
  addIntegers<std::uint64_t>(rows, "u64");
  addFloats<float>(rows, "f32");
  addFloats<double>(rows, "f64");
  addFloats<float, true>(rows, "ftz.f32");
  addCarries(rows);
  rows.add({"fma.rm.f32"},
           row([](float a, float b, float c) -> float { return addProductDown(a, b, c); }));
}

} // namespace emulator::ptx
