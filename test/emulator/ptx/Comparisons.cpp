//===- Comparisons.cpp - setp, selp and mov -----------------------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// A relation is the set of outcomes in which it holds.
enum Outcome : std::uint8_t { Less = 1, Equal = 2, Greater = 4, Unordered = 8, Flushes = 16 };

Lanes chosenBy(const Warp &warp, const Instruction &in) {
  return in.isNegated ? ~warp.predicate(in.c) : warp.predicate(in.c);
}

/// setp{.bool} p|q, a, b{, c}; option: the outcomes. bytes: 0, or 1, 2, 3 for .and, .or, .xor with
/// the predicate c.
template <class T> void compare(Warp &warp, const Instruction &in, Lanes lanes) {
  const T *a = warp.at<T>(in.a), *b = warp.at<T>(in.b);
  Lanes less = 0, equal = 0, greater = 0;
  for (unsigned i = 0; i < 32; ++i) {
    T x = a[i], y = b[i];
    if constexpr (std::is_same_v<T, float>)
      if (in.option & Flushes)
        x = flushed(x), y = flushed(y);
    less |= Lanes(x < y) << i;
    equal |= Lanes(x == y) << i;
    greater |= Lanes(x > y) << i;
  }
  const Lanes outcomes[] = {less, equal, greater, ~(less | equal | greater)};
  Lanes is = 0;
  for (unsigned i = 0; i < 4; ++i)
    is |= in.option >> i & 1 ? outcomes[i] : 0;
  Lanes isNot = ~is;
  if (in.bytes) {
    const Lanes other = chosenBy(warp, in);
    for (Lanes *result : {&is, &isNot})
      *result = in.bytes == 1 ? *result & other : in.bytes == 2 ? *result | other : *result ^ other;
  }
  if (in.d.width == 0)
    warp.setPredicate(in.d, lanes, is);
  if (in.e.width == 0)
    warp.setPredicate(in.e, lanes, isNot);
}

template <class T> void select(Warp &warp, const Instruction &in, Lanes lanes) {
  const Lanes chosen = chosenBy(warp, in);
  const T *a = warp.at<T>(in.a), *b = warp.at<T>(in.b);
  T *d = warp.at<T>(in.d), results[32];
  for (unsigned i = 0; i < 32; ++i)
    results[i] = chosen >> i & 1 ? a[i] : b[i];
  for (unsigned i = 0; i < 32; ++i)
    d[i] = lanes >> i & 1 ? results[i] : d[i];
}

template <class T> void move(Warp &warp, const Instruction &in, Lanes lanes) {
  const T *a = warp.at<T>(in.a);
  T *d = warp.at<T>(in.d);
  if (lanes == kAllLanes)
    std::memmove(d, a, 32 * sizeof(T));
  else
    each(lanes, [&](unsigned i) { d[i] = a[i]; });
}

void movePredicate(Warp &warp, const Instruction &in, Lanes lanes) {
  warp.setPredicate(in.d, lanes, warp.predicate(in.a));
}

/// mov.b64 d, {a, b}: the first part has the lowest bits.
template <class Whole, class Part> void pack(Warp &warp, const Instruction &in, Lanes lanes) {
  Whole results[32] = {};
  for (std::uint32_t part = 0; part < in.count; ++part) {
    const Part *from = warp.at<Part>(warp.code.lists[in.first + part]);
    for (unsigned i = 0; i < 32; ++i)
      results[i] |= static_cast<Whole>(Whole(from[i]) << (8 * sizeof(Part) * part));
  }
  Whole *d = warp.at<Whole>(in.d);
  each(lanes, [&](unsigned i) { d[i] = results[i]; });
}

template <class Whole, class Part> void unpack(Warp &warp, const Instruction &in, Lanes lanes) {
  Whole from[32];
  std::copy_n(warp.at<Whole>(in.a), 32, from);
  for (std::uint32_t part = 0; part < in.count; ++part) {
    const Ref to = warp.code.lists[in.first + part];
    if (to.width == Ref::kNone)
      continue;
    Part *d = warp.at<Part>(to);
    each(lanes, [&](unsigned i) { d[i] = static_cast<Part>(from[i] >> 8 * sizeof(Part) * part); });
  }
}

void decodeCompare(Decoder &decoder) {
  static constexpr std::uint8_t outcomes[] = {Equal,
                                              Less | Greater,
                                              Less,
                                              Less | Equal,
                                              Greater,
                                              Greater | Equal, // eq ne lt le gt ge
                                              Less | Equal | Greater,
                                              Unordered, // num nan
                                              Less,
                                              Less | Equal,
                                              Greater,
                                              Greater | Equal}; // lo ls hi hs
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  std::string name = statement.suffixes.empty() ? "" : statement.suffixes[0];
  const bool orUnordered = name.size() == 3 && name.back() == 'u'; // equ, neu, ltu ...
  name.resize(orUnordered ? 2 : name.size());
  const int relation = Decoder::optionOf(name, "eq ne lt le gt ge num nan lo ls hi hs");
  if (relation < 0 || (orUnordered && relation > 5))
    decoder.refuse("the relation is not supported");
  in.option = static_cast<std::uint8_t>(outcomes[relation] | (orUnordered ? Unordered : 0) |
                                        (statement.has("ftz") ? Flushes : 0));
  const std::string &type = statement.last();
  in.run = ofType(decoder, type, [](auto x) -> Instruction::Run { return compare<decltype(x)>; });
  const Operand &d = decoder.operand(0);
  in.d = decoder.predicate(d);
  if (!d.parts.empty())
    in.e = decoder.predicate(d.parts[0]);
  in.a = decoder.source(decoder.operand(1), bytesOfType(type));
  in.b = decoder.source(decoder.operand(2), bytesOfType(type));
  in.bytes = static_cast<std::uint8_t>(decoder.optionAmong("and or xor") + 1);
  if (in.bytes) {
    in.c = decoder.predicate(decoder.operand(3));
    in.isNegated = decoder.operand(3).isNegated;
  }
}

void decodeMove(Decoder &decoder) {
  Instruction &in = decoder.in;
  const std::string &type = decoder.statement->last();
  const Operand &to = decoder.operand(0), &from = decoder.operand(1);
  if (type == "pred") {
    in.run = movePredicate;
    in.d = decoder.predicate(to);
    in.a = decoder.predicate(from);
    return;
  }
  const unsigned bytes = bytesOfType(type);
  const bool isPack = from.kind == Operand::Vector;
  if (!isPack && to.kind != Operand::Vector) {
    in.d = decoder.result(to, bytes);
    in.a = decoder.source(from, bytes);
    in.run = ofWidth(bytes, [](auto x) -> Instruction::Run { return move<decltype(x)>; });
    return;
  }
  const Operand &parts = isPack ? from : to;
  const auto part = static_cast<unsigned>(bytes / parts.parts.size());
  decoder.list(parts, part, !isPack);
  if (isPack)
    in.d = decoder.result(to, bytes);
  else
    in.a = decoder.source(from, bytes);
  in.run = ofWidth(bytes, [&](auto whole) {
    using Whole = decltype(whole);
    return ofWidth(part, [&](auto x) -> Instruction::Run {
      return isPack ? pack<Whole, decltype(x)> : unpack<Whole, decltype(x)>;
    });
  });
}

} // namespace

bool decodeComparisons(Decoder &decoder) {
  const std::string &name = decoder.statement->opcode;
  if (name == "setp") {
    decodeCompare(decoder);
  } else if (name == "mov") {
    decodeMove(decoder);
  } else if (name == "selp") {
    const unsigned bytes = bytesOfType(decoder.statement->last());
    decoder.operandsOf({bytes, bytes, bytes});
    decoder.in.c = decoder.predicate(decoder.operand(3));
    decoder.in.isNegated = decoder.operand(3).isNegated;
    decoder.in.run = ofWidth(bytes, [](auto x) -> Instruction::Run { return select<decltype(x)>; });
  } else {
    return false;
  }
  return true;
}

} // namespace emulator::ptx
