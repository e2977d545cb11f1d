//===- Arithmetic.cpp - sums, products and quotients -----------------------------------===//

#include "Lanewise.h"

#include <algorithm>
#include <type_traits>

namespace emulator::ptx {

namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 2,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
using Signed128 = __int128;

// Integers wrap around: by unsigned numbers, and 16 bits by 32.
#define FSDP_WRAPPING(Name, op)                                                                    \
  struct Name {                                                                                    \
    template <class T> T operator()(T a, T b) const {                                              \
      if constexpr (std::is_floating_point_v<T>)                                                   \
        return withOneNan(a op b);                                                                 \
      else                                                                                         \
        return static_cast<T>(std::uint64_t(a) op std::uint64_t(b));                               \
    }                                                                                              \
  };
FSDP_WRAPPING(Add, +)
FSDP_WRAPPING(Subtract, -)
FSDP_WRAPPING(Multiply, *)
#undef FSDP_WRAPPING

struct MultiplyWide {
  template <class T> Wide<T> operator()(T a, T b) const { return Wide<T>(a) * Wide<T>(b); }
};
struct MultiplyHigh {
  template <class T> T operator()(T a, T b) const {
    return static_cast<T>(Signed128(a) * Signed128(b) >> (8 * sizeof(T)));
  }
};
struct MultiplyHigh64 { // of unsigned numbers the product has 128 bits without a sign
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
  }
};
struct AddProduct {
  template <class T> T operator()(T a, T b, T c) const { return Add()(Multiply()(a, b), c); }
};
struct AddWideProduct {
  template <class T> Wide<T> operator()(T a, T b, Wide<T> c) const {
    return Add()(MultiplyWide()(a, b), c);
  }
};
struct AddHighProduct {
  template <class T> T operator()(T a, T b, T c) const { return Add()(MultiplyHigh()(a, b), c); }
};

// By zero: machine-specific; all bits, as devices give.
struct Divide {
  template <class T> T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return withOneNan(a / b);
    } else {
      if (b == 0)
        return static_cast<T>(~T(0));
      if constexpr (std::is_signed_v<T>)
        if (b == -1)
          return static_cast<T>(0 - Unsigned<T>(a));
      return static_cast<T>(a / b);
    }
  }
};
struct Remainder {
  template <class T> T operator()(T a, T b) const {
    if (b == 0)
      return a;
    if constexpr (std::is_signed_v<T>)
      if (b == -1)
        return 0;
    return static_cast<T>(a % b);
  }
};

// The smaller or the larger of two numbers; of floats the other one if one is NaN, and -0 < +0.
template <bool isLarger> struct Extremum {
  template <class T> T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b)
        return a == a ? a : withOneNan(b);
      if (a == b)
        return std::signbit(a) != isLarger ? a : b;
    }
    return (a < b) != isLarger ? a : b;
  }
};
using Smaller = Extremum<false>;
using Larger = Extremum<true>;
template <class F> struct OrNan {
  float operator()(float a, float b) const {
    return a != a || b != b ? bitsOf<float>(0x7fffffffu) : F()(a, b);
  }
};

struct Magnitude {
  template <class T> T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else
      return a < 0 ? static_cast<T>(0 - Unsigned<T>(a)) : a;
  }
};
struct Negative {
  template <class T> T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return -a;
    else
      return static_cast<T>(0 - Unsigned<T>(a));
  }
};
struct FusedAdd {
  float operator()(float a, float b, float c) const { return withOneNan(std::fmaf(a, b, c)); }
  double operator()(double a, double b, double c) const { return std::fma(a, b, c); }
};
struct FusedAddDown { // .rm: toward minus infinity
  float operator()(float a, float b, float c) const {
    const double product = double(a) * double(b), sum = product + double(c); // the product is exact
    const double part = sum - product, rest = (product - (sum - part)) + (double(c) - part);
    float near = static_cast<float>(sum);
    if (near == near && !std::isinf(near) &&
        (double(near) > sum || (double(near) == sum && rest < 0)))
      near = std::nextafter(near, -HUGE_VALF);
    return withOneNan(near);
  }
};
struct Reciprocal {
  template <class T> T operator()(T a) const { return withOneNan(T(1) / a); }
};
struct SquareRoot {
  template <class T> T operator()(T a) const { return withOneNan(std::sqrt(a)); }
};
struct WithSign { // copysign.f32 d, a, b: the sign of a and the rest of b
  template <class T> T operator()(T a, T b) const { return std::copysign(b, a); }
};

template <class T> void addIntegers(std::map<std::string, Row> &table, const std::string &type) {
  table["add." + type] = two<Add, T, T, T>();
  table["sub." + type] = two<Subtract, T, T, T>();
  table["mul.lo." + type] = two<Multiply, T, T, T>();
  table["mad.lo." + type] = three<AddProduct, T, T, T, T>();
  table["div." + type] = two<Divide, T, T, T>();
  table["rem." + type] = two<Remainder, T, T, T>();
  table["min." + type] = two<Smaller, T, T, T>();
  table["max." + type] = two<Larger, T, T, T>();
  table["mul.hi." + type] = two<MultiplyHigh, T, T, T>();
  table["mad.hi." + type] = three<AddHighProduct, T, T, T, T>();
  if constexpr (sizeof(T) < 8) {
    table["mul.wide." + type] = two<MultiplyWide, Wide<T>, T, T>();
    table["mad.wide." + type] = three<AddWideProduct, Wide<T>, T, T, Wide<T>>();
  }
  if constexpr (std::is_signed_v<T>) {
    table["abs." + type] = one<Magnitude, T, T>();
    table["neg." + type] = one<Negative, T, T>();
  }
}

template <class T> void addFloats(std::map<std::string, Row> &table, const std::string &type) {
  table["add." + type] = two<Add, T, T, T>();
  table["sub." + type] = two<Subtract, T, T, T>();
  table["mul." + type] = two<Multiply, T, T, T>();
  table["fma." + type] = three<FusedAdd, T, T, T, T>();
  table["min." + type] = two<Smaller, T, T, T>();
  table["max." + type] = two<Larger, T, T, T>();
  table["abs." + type] = one<Magnitude, T, T>();
  table["neg." + type] = one<Negative, T, T>();
  table["div." + type] = two<Divide, T, T, T>();
  table["rcp." + type] = one<Reciprocal, T, T>();
  table["sqrt." + type] = one<SquareRoot, T, T>();
  table["copysign." + type] = two<WithSign, T, T, T>();
}

std::map<std::string, Row> makeTable() {
  std::map<std::string, Row> table;
  addIntegers<std::int16_t>(table, "s16");
  addIntegers<std::uint16_t>(table, "u16");
  addIntegers<std::int32_t>(table, "s32");
  addIntegers<std::uint32_t>(table, "u32");
  addIntegers<std::int64_t>(table, "s64");
  addIntegers<std::uint64_t>(table, "u64");
  table["mul.hi.u64"] = two<MultiplyHigh64, std::uint64_t, std::uint64_t, std::uint64_t>();
  addFloats<float>(table, "f32");
  addFloats<double>(table, "f64");
  table["min.NaN.f32"] = two<OrNan<Smaller>, float, float, float>();
  table["max.NaN.f32"] = two<OrNan<Larger>, float, float, float>();
  table["add.ftz.f32"] = two<Flushing<Add>, float, float, float>();
  table["sub.ftz.f32"] = two<Flushing<Subtract>, float, float, float>();
  table["mul.ftz.f32"] = two<Flushing<Multiply>, float, float, float>();
  table["fma.ftz.f32"] = three<Flushing<FusedAdd>, float, float, float, float>();
  table["min.ftz.f32"] = two<Flushing<Smaller>, float, float, float>();
  table["max.ftz.f32"] = two<Flushing<Larger>, float, float, float>();
  table["abs.ftz.f32"] = one<Flushing<Magnitude>, float, float>();
  table["neg.ftz.f32"] = one<Flushing<Negative>, float, float>();
  table["fma.rm.f32"] = three<FusedAddDown, float, float, float, float>();
  return table;
}

} // namespace

bool decodeArithmetic(Decoder &decoder) {
  static const std::map<std::string, Row> table = makeTable();
  return decodeByTable(decoder, table, {"rn"});
}

} // namespace emulator::ptx
