//===- Bits.cpp - logic, shifts, and what selects bits ---------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// By at least the width: the sign, or 0.
template <class T> T shiftedRight(T a, std::uint32_t by) {
  constexpr std::uint32_t last = 8 * sizeof(T) - 1;
  return by <= last ? T(a >> by) : std::is_signed_v<T> ? T(a >> last) : T(0);
}

template <class T> T shiftedLeft(T a, std::uint32_t by) {
  return by < 8 * sizeof(T) ? T(a << by) : T(0);
}

template <class T> void add(Rows &rows, const std::string &bits) {
  using S = std::make_signed_t<T>;
  using U = std::uint32_t;
  constexpr U width = 8 * sizeof(T);
  const auto add = [&](const char *name, auto function) { rows.add({name, bits}, row(function)); };
  add("and.b", [](T a, T b) -> T { return a & b; });
  add("or.b", [](T a, T b) -> T { return a | b; });
  add("xor.b", [](T a, T b) -> T { return a ^ b; });
  add("not.b", [](T a) -> T { return T(~a); });
  add("shl.b", [](T a, U by) -> T { return shiftedLeft(a, by); });
  add("shr.u", [](T a, U by) -> T { return shiftedRight(a, by); });
  add("shr.s", [](S a, U by) -> S { return shiftedRight(a, by); });
  add("popc.b", [](T a) -> U { return U(__builtin_popcountll(a)); });
  add("clz.b", [](T a) -> U { return a ? U(__builtin_clzll(a)) - (64 - width) : width; });
  // `length` bits of a into b.
  add("bfi.b", [](T a, T b, U start, U length) -> T {
    const T ones = T(shiftedLeft(T(1), length & 255) - 1);
    const T mask = shiftedLeft(ones, start & 255);
    return (b & ~mask) | (shiftedLeft(a, start & 255) & mask);
  });
}

} // namespace

void addBits(Rows &rows) {
  add<std::uint32_t>(rows, "32");
  add<std::uint64_t>(rows, "64");
  rows.add({"and.pred"}, row([](bool a, bool b) -> bool { return a && b; }));
  rows.add({"or.pred"}, row([](bool a, bool b) -> bool { return a || b; }));
  rows.add({"xor.pred"}, row([](bool a, bool b) -> bool { return a != b; }));
  rows.add({"not.pred"}, row([](bool a) -> bool { return !a; }));
}

} // namespace emulator::ptx
