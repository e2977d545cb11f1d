//===- Bits.cpp - logic, shifts, and what selects bits ---------------------------------===//

#include "Lanewise.h"

#include <algorithm>
#include <type_traits>

namespace emulator::ptx {

namespace {

struct And {
  template <class T> T operator()(T a, T b) const { return a & b; }
};
struct Or {
  template <class T> T operator()(T a, T b) const { return a | b; }
};
struct Xor {
  template <class T> T operator()(T a, T b) const { return a ^ b; }
};
struct Not {
  template <class T> T operator()(T a) const { return static_cast<T>(~a); }
};
struct ShiftLeft { // by at least the width: 0
  template <class T> T operator()(T a, std::uint32_t by) const {
    return by < 8 * sizeof(T) ? static_cast<T>(std::uint64_t(a) << by) : T(0);
  }
};
struct ShiftRight { // by at least the width: the sign, or 0
  template <class T> T operator()(T a, std::uint32_t by) const {
    constexpr std::uint32_t last = 8 * sizeof(T) - 1;
    if (by > last)
      return std::is_signed_v<T> ? static_cast<T>(a >> last) : T(0);
    return static_cast<T>(a >> by);
  }
};
struct CountOnes {
  template <class T> std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(__builtin_popcountll(a));
  }
};
struct CountZeros {
  template <class T> std::uint32_t operator()(T a) const {
    return a ? static_cast<std::uint32_t>(__builtin_clzll(a)) - (64 - 8 * sizeof(T))
             : 8 * sizeof(T);
  }
};
template <class T, class S> void add(std::map<std::string, Row> &table, const std::string &bits) {
  table["and.b" + bits] = two<And, T, T, T>();
  table["or.b" + bits] = two<Or, T, T, T>();
  table["xor.b" + bits] = two<Xor, T, T, T>();
  table["not.b" + bits] = one<Not, T, T>();
  table["shl.b" + bits] = two<ShiftLeft, T, T, std::uint32_t>();
  table["shr.b" + bits] = two<ShiftRight, T, T, std::uint32_t>();
  table["shr.u" + bits] = two<ShiftRight, T, T, std::uint32_t>();
  table["shr.s" + bits] = two<ShiftRight, S, S, std::uint32_t>();
  if constexpr (sizeof(T) > 2) {
    table["popc.b" + bits] = one<CountOnes, std::uint32_t, T>();
    table["clz.b" + bits] = one<CountZeros, std::uint32_t, T>();
  }
}

std::map<std::string, Row> makeTable() {
  std::map<std::string, Row> table;
  add<std::uint16_t, std::int16_t>(table, "16");
  add<std::uint32_t, std::int32_t>(table, "32");
  add<std::uint64_t, std::int64_t>(table, "64");
  return table;
}

/// bfi d, a, b, start, length: `length` bits of a into b.
template <class T> void insertBits(Warp &warp, const Instruction &in, Lanes lanes) {
  const std::uint32_t *starts = warp.at<std::uint32_t>(in.c),
                      *lengths = warp.at<std::uint32_t>(in.e);
  each(lanes, [&](unsigned i) {
    T result = warp.at<T>(in.b)[i];
    const T from = warp.at<T>(in.a)[i];
    const std::uint32_t start = starts[i] & 255, length = lengths[i] & 255;
    for (std::uint32_t bit = 0; bit < length && start + bit < 8 * sizeof(T); ++bit) {
      const T mask = static_cast<T>(T(1) << (start + bit));
      result = from >> bit & 1 ? result | mask : result & static_cast<T>(~mask);
    }
    warp.at<T>(in.d)[i] = result;
  });
}

void logicOfPredicates(Warp &warp, const Instruction &in, Lanes lanes) {
  const Lanes a = warp.predicate(in.a), b = warp.predicate(in.b);
  warp.setPredicate(in.d, lanes,
                    in.option == 0   ? a & b
                    : in.option == 1 ? a | b
                    : in.option == 2 ? a ^ b
                                     : ~a);
}

} // namespace

bool decodeBits(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  const std::string name = statement.spelling();
  static const std::map<std::string, std::uint8_t> predicates = {
      {"and.pred", 0}, {"or.pred", 1}, {"xor.pred", 2}, {"not.pred", 3}};
  if (const auto found = predicates.find(name); found != predicates.end()) {
    decoder.in.run = logicOfPredicates;
    decoder.in.option = found->second;
    decoder.in.d = decoder.predicate(decoder.operand(0));
    decoder.in.a = decoder.predicate(decoder.operand(1));
    decoder.in.b = found->second == 3 ? decoder.in.a : decoder.predicate(decoder.operand(2));
    return true;
  }
  if (name == "bfi.b32" || name == "bfi.b64") {
    const unsigned width = name == "bfi.b32" ? 4 : 8;
    decoder.in.run = width == 4 ? insertBits<std::uint32_t> : insertBits<std::uint64_t>;
    decoder.operandsOf(width, width, width, 4);
    decoder.in.e = decoder.source(decoder.operand(4), 4);
    return true;
  }
  static const std::map<std::string, Row> table = makeTable();
  return decodeByTable(decoder, table, {});
}

} // namespace emulator::ptx
