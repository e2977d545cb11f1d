//===- Bits.cpp - logic, shifts, and what selects bits ---------------------------------===//

#include "Lanewise.h"

#include <type_traits>

namespace emulator::ptx {

namespace {

/// By at least the width: the sign, or 0.
template <class T> T shiftedRight(T a, std::uint32_t by) {
  constexpr std::uint32_t last = 8 * sizeof(T) - 1;
  return by <= last ? T(a >> by) : std::is_signed_v<T> ? T(a >> last) : T(0);
}

template <class T> void add(Rows &rows, const std::string &bits) {
  using S = std::make_signed_t<T>;
  using U = std::uint32_t;
  constexpr U width = 8 * sizeof(T);
  const auto add = [&](const char *name, auto function) { rows[name + bits] = row(function); };
  add("and.b", [](T a, T b) -> T { return a & b; });
  add("or.b", [](T a, T b) -> T { return a | b; });
  add("xor.b", [](T a, T b) -> T { return a ^ b; });
  add("not.b", [](T a) -> T { return T(~a); });
  add("shl.b", [](T a, U by) -> T { return by < width ? T(std::uint64_t(a) << by) : T(0); });
  add("shr.b", [](T a, U by) -> T { return shiftedRight(a, by); });
  add("shr.u", [](T a, U by) -> T { return shiftedRight(a, by); });
  add("shr.s", [](S a, U by) -> S { return shiftedRight(a, by); });
  if constexpr (sizeof(T) > 2) {
    add("popc.b", [](T a) -> U { return U(__builtin_popcountll(a)); });
    add("clz.b", [](T a) -> U { return a ? U(__builtin_clzll(a)) - (64 - width) : width; });
  }
}

/// bfi d, a, b, start, length: `length` bits of a into b.
template <class T> void insertBits(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned i) {
    const unsigned start = warp.at<std::uint32_t>(in.c)[i] & 255,
                   length = warp.at<std::uint32_t>(in.e)[i] & 255;
    const T ones = length < 8 * sizeof(T) ? T((T(1) << length) - 1) : T(~T(0));
    const T mask = start < 8 * sizeof(T) ? T(ones << start) : T(0);
    const T moved = start < 8 * sizeof(T) ? T(warp.at<T>(in.a)[i] << start) : T(0);
    warp.at<T>(in.d)[i] = (warp.at<T>(in.b)[i] & ~mask) | (moved & mask);
  });
}

void logicOfPredicates(Warp &warp, const Instruction &in, Lanes lanes) {
  const Lanes a = warp.predicate(in.a), b = warp.predicate(in.b);
  const Lanes results[] = {a & b, a | b, a ^ b, ~a};
  warp.setPredicate(in.d, lanes, results[in.option]);
}

} // namespace

void addBits(Rows &rows) {
  add<std::uint16_t>(rows, "16");
  add<std::uint32_t>(rows, "32");
  add<std::uint64_t>(rows, "64");
}

bool decodeBits(Decoder &decoder) {
  const std::string &name = decoder.statement->opcode, &type = decoder.statement->last();
  if (name == "bfi" && (type == "b32" || type == "b64")) {
    const unsigned width = bytesOfType(type);
    decoder.in.run = width == 4 ? insertBits<std::uint32_t> : insertBits<std::uint64_t>;
    decoder.operandsOf({width, width, width, 4});
    decoder.in.e = decoder.source(decoder.operand(4), 4);
    return true;
  }
  const int option = decoder.optionOf(name, "and or xor not");
  if (type != "pred" || option < 0)
    return false;
  decoder.in.run = logicOfPredicates;
  decoder.in.option = static_cast<std::uint8_t>(option);
  decoder.in.d = decoder.predicate(decoder.operand(0));
  decoder.in.a = decoder.predicate(decoder.operand(1));
  decoder.in.b = option == 3 ? decoder.in.a : decoder.predicate(decoder.operand(2));
  return true;
}

} // namespace emulator::ptx
