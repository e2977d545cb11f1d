//===- Comparisons.cpp - setp, set, selp, slct, testp, and mov ----------------------------===//

#include "Lanewise.h"

#include <type_traits>

namespace emulator::ptx {

namespace {

enum class Relation : std::uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan
};

template <class T> bool holds(Relation relation, T a, T b) {
  bool isUnordered = false;
  if constexpr (std::is_floating_point_v<T>)
    isUnordered = a != a || b != b;
  switch (relation) {
  case Relation::Eq:
    return !isUnordered && a == b;
  case Relation::Ne:
    return !isUnordered && a != b;
  case Relation::Lt:
    return a < b;
  case Relation::Le:
    return a <= b;
  case Relation::Gt:
    return a > b;
  case Relation::Ge:
    return a >= b;
  case Relation::Equ:
    return isUnordered || a == b;
  case Relation::Neu:
    return isUnordered || a != b;
  case Relation::Ltu:
    return isUnordered || a < b;
  case Relation::Leu:
    return isUnordered || a <= b;
  case Relation::Gtu:
    return isUnordered || a > b;
  case Relation::Geu:
    return isUnordered || a >= b;
  case Relation::Num:
    return !isUnordered;
  default:
    return isUnordered;
  }
}

/// setp{.bool} p|q, a, b{, c}; option: relation, with 16 flushing. bytes: 0, or 1, 2, 3 for .and,
/// .or, .xor with the predicate c.
template <class T> void compare(Warp &warp, const Instruction &in, Lanes lanes) {
  const T *a = warp.at<T>(in.a), *b = warp.at<T>(in.b);
  const auto relation = static_cast<Relation>(in.option & 15);
  Lanes is = 0;
  each(lanes, [&](unsigned i) {
    T x = a[i], y = b[i];
    if constexpr (std::is_same_v<T, float>)
      if (in.option & 16)
        x = flushed(x), y = flushed(y);
    is |= static_cast<Lanes>(holds(relation, x, y)) << i;
  });
  Lanes isNot = ~is;
  if (in.bytes) {
    const Lanes other = in.isNegated ? ~warp.predicate(in.c) : warp.predicate(in.c);
    const auto combined = [&](Lanes x) {
      return in.bytes == 1 ? x & other : in.bytes == 2 ? x | other : x ^ other;
    };
    is = combined(is);
    isNot = combined(isNot);
  }
  if (in.d.width == 0)
    warp.setPredicate(in.d, lanes, is);
  if (in.e.width == 0)
    warp.setPredicate(in.e, lanes, isNot);
}

template <class T> void select(Warp &warp, const Instruction &in, Lanes lanes) {
  const Lanes chosen = in.isNegated ? ~warp.predicate(in.c) : warp.predicate(in.c);
  const T *a = warp.at<T>(in.a), *b = warp.at<T>(in.b);
  T *d = warp.at<T>(in.d);
  each(lanes, [&](unsigned i) { d[i] = chosen >> i & 1 ? a[i] : b[i]; });
}

template <class T> void move(Warp &warp, const Instruction &in, Lanes lanes) {
  const T *a = warp.at<T>(in.a);
  T *d = warp.at<T>(in.d);
  each(lanes, [&](unsigned i) { d[i] = a[i]; });
}

void movePredicate(Warp &warp, const Instruction &in, Lanes lanes) {
  warp.setPredicate(in.d, lanes, warp.predicate(in.a));
}

/// mov.b64 d, {a, b}: the first part has the lowest bits.
void pack(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    std::uint64_t bits = 0;
    unsigned at = 0;
    for (std::uint32_t i = 0; i < in.count; ++i) {
      const Ref part = warp.block.code.lists[in.first + i];
      bits |= warp.number(part, lane) << at;
      at += 8u * in.bytes;
    }
    warp.setNumber(in.d, lane, bits);
  });
}

void unpack(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    const std::uint64_t bits = warp.number(in.a, lane);
    for (std::uint32_t i = 0; i < in.count; ++i)
      warp.setNumber(warp.block.code.lists[in.first + i], lane, bits >> (8u * in.bytes * i));
  });
}

template <class Make>
Instruction::Run ofType(Decoder &decoder, const std::string &type, Make make) {
  if (type == "f32")
    return make(float());
  if (type == "f64")
    return make(double());
  const unsigned bytes = bytesOfType(type);
  if (type[0] == 's')
    return bytes == 2   ? make(std::int16_t())
           : bytes == 4 ? make(std::int32_t())
                        : make(std::int64_t());
  if ((type[0] == 'u' || type[0] == 'b') && type[1] != 'f')
    return bytes == 2   ? make(std::uint16_t())
           : bytes == 4 ? make(std::uint32_t())
                        : make(std::uint64_t());
  decoder.refuse("operands of ." + type + " are not supported");
}

void decodeCompare(Decoder &decoder) {
  static const std::map<std::string, Relation> relations = {
      {"eq", Relation::Eq},   {"ne", Relation::Ne},   {"lt", Relation::Lt},
      {"le", Relation::Le},   {"gt", Relation::Gt},   {"ge", Relation::Ge},
      {"equ", Relation::Equ}, {"neu", Relation::Neu}, {"ltu", Relation::Ltu},
      {"leu", Relation::Leu}, {"gtu", Relation::Gtu}, {"geu", Relation::Geu},
      {"num", Relation::Num}, {"nan", Relation::Nan}, {"lo", Relation::Lt},
      {"ls", Relation::Le},   {"hi", Relation::Gt},   {"hs", Relation::Ge}};
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  const auto relation =
      statement.suffixes.empty() ? relations.end() : relations.find(statement.suffixes[0]);
  if (relation == relations.end())
    decoder.refuse("the relation is not supported");
  in.option = static_cast<std::uint8_t>(static_cast<unsigned>(relation->second) +
                                        (statement.has("ftz") ? 16 : 0));
  const std::string &type = statement.last();
  in.run = ofType(decoder, type, [](auto x) -> Instruction::Run { return compare<decltype(x)>; });
  const Operand &d = decoder.operand(0);
  in.d = decoder.predicate(d);
  in.e.width = Ref::kNone;
  if (!d.parts.empty())
    in.e = decoder.predicate(d.parts[0]);
  in.a = decoder.source(decoder.operand(1), bytesOfType(type));
  in.b = decoder.source(decoder.operand(2), bytesOfType(type));
  in.bytes = statement.has("and") ? 1 : statement.has("or") ? 2 : statement.has("xor") ? 3 : 0;
  if (in.bytes) {
    in.c = decoder.predicate(decoder.operand(3));
    in.isNegated = decoder.operand(3).isNegated;
  }
}

void decodeMove(Decoder &decoder) {
  Instruction &in = decoder.in;
  const std::string &type = decoder.statement->last();
  if (type == "pred") {
    in.run = movePredicate;
    in.d = decoder.predicate(decoder.operand(0));
    in.a = decoder.predicate(decoder.operand(1));
    return;
  }
  const unsigned bytes = bytesOfType(type);
  const Operand &to = decoder.operand(0), &from = decoder.operand(1);
  if (to.kind == Operand::Vector || from.kind == Operand::Vector) {
    const bool isPack = from.kind == Operand::Vector;
    const Operand &parts = isPack ? from : to;
    in.bytes = static_cast<std::uint8_t>(bytes / parts.parts.size());
    decoder.list(parts, in.bytes, !isPack);
    if (isPack)
      in.d = decoder.result(to, bytes);
    else
      in.a = decoder.source(from, bytes);
    in.run = isPack ? pack : unpack;
    return;
  }
  in.d = decoder.result(to, bytes);
  in.a = decoder.source(from, bytes);
  in.run = bytes == 2   ? move<std::uint16_t>
           : bytes == 4 ? move<std::uint32_t>
                        : move<std::uint64_t>;
}

} // namespace

bool decodeComparisons(Decoder &decoder) {
  const std::string &name = decoder.statement->opcode;
  if (name == "setp") {
    decodeCompare(decoder);
    return true;
  }
  if (name == "mov") {
    decodeMove(decoder);
    return true;
  }
  if (name == "selp") {
    const unsigned bytes = bytesOfType(decoder.statement->last());
    decoder.operandsOf(bytes, bytes, bytes);
    decoder.in.c = decoder.predicate(decoder.operand(3));
    decoder.in.isNegated = decoder.operand(3).isNegated;
    decoder.in.run = bytes == 2   ? select<std::uint16_t>
                     : bytes == 4 ? select<std::uint32_t>
                                  : select<std::uint64_t>;
    return true;
  }
  return false;
}

} // namespace emulator::ptx
