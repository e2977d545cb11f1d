//===- Comparisons.cpp - setp, selp and mov -----------------------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

template <class T> void addRelations(Rows &rows, const std::string &type) {
  const auto add = [&](const char *name, auto function) { rows.add({name, type}, row(function)); };
  add("setp.eq.", [](T a, T b) -> bool { return a == b; });
  add("setp.ne.", [](T a, T b) -> bool { return a < b || a > b; });
  add("setp.lt.", [](T a, T b) -> bool { return a < b; });
  add("setp.le.", [](T a, T b) -> bool { return a <= b; });
  add("setp.gt.", [](T a, T b) -> bool { return a > b; });
  add("setp.ge.", [](T a, T b) -> bool { return a >= b; });
  if constexpr (std::is_floating_point_v<T>) { // or unordered
    add("setp.equ.", [](T a, T b) -> bool { return !(a < b || a > b); });
    add("setp.neu.", [](T a, T b) -> bool { return !(a == b); });
    add("setp.ltu.", [](T a, T b) -> bool { return !(a >= b); });
    add("setp.leu.", [](T a, T b) -> bool { return !(a > b); });
    add("setp.gtu.", [](T a, T b) -> bool { return !(a <= b); });
    add("setp.geu.", [](T a, T b) -> bool { return !(a < b); });
    add("setp.num.", [](T a, T b) -> bool { return a == a && b == b; });
    add("setp.nan.", [](T a, T b) -> bool { return a != a || b != b; });
  }
}

template <class T> void addMoves(Rows &rows, const std::string &type) {
  rows.add({"mov.", type}, row([](T a) -> T { return a; }));
  rows.add({"selp.", type}, row([](T a, T b, bool isFirst) -> T { return isFirst ? a : b; }));
}

/// mov.b64 d, {a, b}: the first part has the lowest bits.
template <class Whole, class Part> void pack(Warp &warp, const Instruction &in, Lanes lanes) {
  Whole results[32] = {};
  for (std::uint32_t part = 0; part < in.count; ++part) {
    const Part *from = warp.at<Part>(warp.code.lists[in.first + part]);
    for (unsigned i = 0; i < 32; ++i)
      results[i] |= static_cast<Whole>(Whole(from[i]) << (8 * sizeof(Part) * part));
  }
  setNumbers(warp, in.d, lanes, sizeof(Whole), results);
}

template <class Whole, class Part> void unpack(Warp &warp, const Instruction &in, Lanes lanes) {
  Whole from[32];
  std::copy_n(warp.at<Whole>(in.a), 32, from);
  for (std::uint32_t part = 0; part < in.count; ++part) {
    Part *d = warp.at<Part>(warp.code.lists[in.first + part]);
    each(lanes, [&](unsigned i) { d[i] = static_cast<Part>(from[i] >> 8 * sizeof(Part) * part); });
  }
}

} // namespace

void addComparisons(Rows &rows) {
  addRelations<std::int16_t>(rows, "s16");
  addRelations<std::int32_t>(rows, "s32");
  addRelations<std::int64_t>(rows, "s64");
  addRelations<float>(rows, "f32");
  addRelations<double>(rows, "f64");
  for (const char *kind : {"u", "b"}) {
    addRelations<std::uint16_t>(rows, kind + std::string("16"));
    addRelations<std::uint32_t>(rows, kind + std::string("32"));
    addRelations<std::uint64_t>(rows, kind + std::string("64"));
  }
  for (const char *kind : {"u", "s", "b", "f"}) {
    addMoves<std::uint16_t>(rows, kind + std::string("16"));
    addMoves<std::uint32_t>(rows, kind + std::string("32"));
    addMoves<std::uint64_t>(rows, kind + std::string("64"));
  }
  rows.add({"mov.pred"}, row([](bool a) -> bool { return a; }));
}

bool decodeVectorMove(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  if (statement.opcode() != "mov")
    return false;
  const bool isPack = decoder.operand(1).kind == Operand::Vector;
  const Operand &vector = decoder.operand(isPack ? 1 : 0);
  if (vector.kind != Operand::Vector)
    return false;
  const auto parts = static_cast<unsigned>(vector.parts.size());
  const unsigned bytes = bytesOfType(statement.type()), part = parts ? bytes / parts : 0;
  if (part < 2 || part * parts != bytes)
    decoder.refuse("got " + std::to_string(parts) + " parts, expected parts of 16 or 32 bits");
  decoder.take(isPack ? "d" + std::to_string(bytes) + " S" + std::to_string(part)
                      : "D" + std::to_string(part) + " a" + std::to_string(bytes));
  decoder.in.run = ofWidth(bytes, [&](auto whole) {
    using Whole = decltype(whole);
    return ofWidth(part, [&](auto x) -> Instruction::Run {
      return isPack ? pack<Whole, decltype(x)> : unpack<Whole, decltype(x)>;
    });
  });
  return true;
}

} // namespace emulator::ptx
