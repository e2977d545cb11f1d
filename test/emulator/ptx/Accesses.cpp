//===- Accesses.cpp - ld, st, atom, red, cvta, cp.async and fences --------------------------===//

#include "Lanewise.h"

#include <algorithm>

namespace emulator::ptx {

namespace {

std::uint64_t addressOf(const Warp &warp, const Instruction &in, unsigned lane) {
  return in.a.width == Ref::kNone ? static_cast<std::uint64_t>(in.offset)
                                  : warp.number(in.a, lane) + static_cast<std::uint64_t>(in.offset);
}

/// `in.bytes` of each of `in.count` numbers, in one access.
void load(Warp &warp, const Instruction &in, Lanes lanes) {
  const Ref *to = &warp.block.code.lists[in.first];
  each(lanes, [&](unsigned lane) {
    const char *from = warp.block.memory(warp, lane, in, in.space, addressOf(warp, in, lane),
                                         in.bytes * in.count, 0);
    for (std::uint32_t i = 0; i < in.count; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, from + i * in.bytes, in.bytes);
      if (in.isSigned) {
        const unsigned shift = 64 - 8u * in.bytes;
        bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
      }
      warp.setNumber(to[i], lane, bits);
    }
  });
}

void store(Warp &warp, const Instruction &in, Lanes lanes) {
  const Ref *from = &warp.block.code.lists[in.first];
  each(lanes, [&](unsigned lane) {
    char *to = warp.block.memory(warp, lane, in, in.space, addressOf(warp, in, lane),
                                 in.bytes * in.count, Access::Write);
    for (std::uint32_t i = 0; i < in.count; ++i) {
      const std::uint64_t bits = warp.number(from[i], lane);
      std::memcpy(to + i * in.bytes, &bits, in.bytes);
    }
  });
}

void toGeneric(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    warp.setNumber(in.d, lane,
                   warp.block.genericOf(in.space, warp.number(in.a, lane), warp.threadOf(lane)));
  });
}
void fromGeneric(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    warp.setNumber(in.d, lane,
                   warp.block.addressIn(in.space, warp.number(in.a, lane), warp.threadOf(lane)));
  });
}

enum class Change : std::uint8_t { Add, Min, Max, And, Or, Xor, Exchange, CompareExchange };

template <class T> T changed(Change change, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (change) {
  case Change::Add:
    return static_cast<T>(U(old) + U(b));
  case Change::Min:
    return std::min(old, b);
  case Change::Max:
    return std::max(old, b);
  case Change::And:
    return old & b;
  case Change::Or:
    return old | b;
  case Change::Xor:
    return old ^ b;
  case Change::Exchange:
    return b;
  default:
    return old == b ? c : old;
  }
}

/// atom d, [a], b{, c} and red [a], b. Lanes in their order: kernels with sums of floats, which
/// depend on it, are refused.
template <class T> void change(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    char *at = warp.block.memory(warp, lane, in, in.space, addressOf(warp, in, lane), sizeof(T),
                                 Access::Write | Access::Atomic);
    T old;
    std::memcpy(&old, at, sizeof old);
    const T b = static_cast<T>(warp.number(in.b, lane));
    const T c = in.c.width == Ref::kNone ? T(0) : static_cast<T>(warp.number(in.c, lane));
    const T now = changed(static_cast<Change>(in.option), old, b, c);
    std::memcpy(at, &now, sizeof now);
    warp.setNumber(in.d, lane, static_cast<std::uint64_t>(old));
  });
}

void startCopy(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    std::uint64_t sourceBytes = in.bytes;
    if (in.c.width == 0) { // .ignore-src
      if (warp.predicate(in.c) >> lane & 1)
        sourceBytes = 0;
    } else if (in.c.width != Ref::kNone) {
      sourceBytes = warp.number(in.c, lane);
    }
    if (sourceBytes > in.bytes) {
      warp.actor = lane;
      fault("cp.async: got %zu bytes of source, expected at most %u", std::size_t(sourceBytes),
            in.bytes);
    }
    warp.block.startCopy(warp, lane, in, addressOf(warp, in, lane),
                         warp.number(in.b, lane) +
                             static_cast<std::uint64_t>(static_cast<std::int32_t>(in.target)),
                         in.bytes, static_cast<unsigned>(sourceBytes));
  });
}
void commitCopies(Warp &warp, const Instruction &, Lanes lanes) {
  each(lanes, [&](unsigned lane) { warp.block.commitCopies(warp.threadOf(lane)); });
}
void waitForCopies(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    warp.block.waitForCopies(warp.threadOf(lane), static_cast<std::size_t>(in.offset),
                             in.option != 0);
  });
}

void fence(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) { warp.block.fence(warp.threadOf(lane), in.option != 0); });
}
void fenceProxy(Warp &warp, const Instruction &, Lanes lanes) {
  each(lanes, [&](unsigned lane) { warp.block.unfenced[warp.threadOf(lane)] = false; });
}

void decodeLoadOrStore(Decoder &decoder, bool isLoad) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  static const std::vector<std::string> plain = {"global",
                                                 "shared",
                                                 "shared::cta",
                                                 "local",
                                                 "const",
                                                 "param",
                                                 "param::entry",
                                                 "nc",
                                                 "v2",
                                                 "v4",
                                                 "ca",
                                                 "cg",
                                                 "cs",
                                                 "lu",
                                                 "cv",
                                                 "wb",
                                                 "wt",
                                                 "volatile",
                                                 "relaxed",
                                                 "weak",
                                                 "gpu",
                                                 "sys",
                                                 "cta",
                                                 "L1::evict_first",
                                                 "L1::no_allocate",
                                                 "L1::evict_last",
                                                 "L2::128B",
                                                 "L2::256B",
                                                 "L2::64B"};
  for (std::size_t i = 0; i + 1 < statement.suffixes.size(); ++i)
    if (std::find(plain.begin(), plain.end(), statement.suffixes[i]) == plain.end())
      decoder.refuse("the modifier ." + statement.suffixes[i] + " is not supported");
  const std::string &type = statement.last();
  in.space = decoder.space();
  in.bytes = static_cast<std::uint8_t>(bytesOfType(type));
  if (!in.bytes || in.bytes > 8)
    decoder.refuse("accesses of ." + type + " are not supported");
  in.isSigned = type[0] == 's';
  const std::uint32_t parts = statement.has("v4") ? 4 : statement.has("v2") ? 2 : 1;
  decoder.address(decoder.operand(isLoad ? 1 : 0), in.space);
  const Operand &registers = decoder.operand(isLoad ? 0 : 1);
  decoder.list(registers, in.bytes, isLoad);
  if (in.count != parts)
    decoder.refuse("got " + std::to_string(in.count) + " registers, expected " +
                   std::to_string(parts));
  in.run = isLoad ? load : store;
}

void decodeAtomic(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  static const std::map<std::string, Change> changes = {
      {"add", Change::Add},       {"min", Change::Min},
      {"max", Change::Max},       {"and", Change::And},
      {"or", Change::Or},         {"xor", Change::Xor},
      {"exch", Change::Exchange}, {"cas", Change::CompareExchange}};
  auto change = changes.end();
  for (const std::string &suffix : statement.suffixes)
    if (const auto found = changes.find(suffix); found != changes.end())
      change = found;
  const std::string &type = statement.last();
  const unsigned bytes = bytesOfType(type);
  if (change == changes.end() || (bytes != 4 && bytes != 8) || type[0] == 'f')
    decoder.refuse("this operation of ." + type + " is not supported");
  in.option = static_cast<std::uint8_t>(change->second);
  in.space = decoder.space();
  const bool hasResult = statement.opcode == "atom";
  in.d.width = Ref::kNone;
  if (hasResult)
    in.d = decoder.result(decoder.operand(0), bytes);
  const std::size_t first = hasResult ? 1 : 0;
  decoder.address(decoder.operand(first), in.space);
  in.b = decoder.source(decoder.operand(first + 1), bytes);
  in.c.width = Ref::kNone;
  if (change->second == Change::CompareExchange)
    in.c = decoder.source(decoder.operand(first + 2), bytes);
  const bool isSigned = type[0] == 's';
  in.run = bytes == 4 ? (isSigned ? ptx::change<std::int32_t> : ptx::change<std::uint32_t>)
                      : (isSigned ? ptx::change<std::int64_t> : ptx::change<std::uint64_t>);
}

void decodeAsync(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  if (statement.has("commit_group")) {
    in.run = commitCopies;
  } else if (statement.has("wait_group")) {
    in.run = waitForCopies;
    in.offset = decoder.immediate(decoder.operand(0));
  } else if (statement.has("wait_all")) {
    in.run = waitForCopies;
    in.option = 1;
  } else {
    if (statement.suffixes.size() < 4 || statement.suffixes[0] != "async" ||
        (statement.suffixes[1] != "ca" && statement.suffixes[1] != "cg") ||
        statement.suffixes[2].compare(0, 6, "shared") != 0 || statement.suffixes[3] != "global")
      decoder.refuse("this copy is not supported");
    in.run = startCopy;
    in.space = Space::Shared;
    decoder.address(decoder.operand(1), Space::Global); // the source first: its place is kept in b
    in.b = in.a;
    in.target = static_cast<std::uint32_t>(in.offset);
    decoder.address(decoder.operand(0), Space::Shared);
    in.bytes = static_cast<std::uint8_t>(decoder.immediate(decoder.operand(2)));
    if (in.bytes != 4 && in.bytes != 8 && in.bytes != 16)
      decoder.refuse("got a copy of " + std::to_string(in.bytes) + " bytes, expected 4, 8 or 16");
    in.c.width = Ref::kNone;
    if (decoder.operands() > 3)
      in.c = decoder.operand(3).kind == Operand::Reg && decoder.isPredicate(decoder.operand(3))
                 ? decoder.predicate(decoder.operand(3))
                 : decoder.source(decoder.operand(3), 4);
  }
}

} // namespace

bool decodeMemory(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  const std::string &name = statement.opcode;
  if (name == "ld" || name == "st") {
    decodeLoadOrStore(decoder, name != "st");
  } else if (name == "cvta") {
    const bool isTo = statement.has("to");
    in.space = decoder.space();
    in.d = decoder.result(decoder.operand(0), 0);
    in.a = decoder.source(decoder.operand(1), in.d.width);
    in.run = isTo ? fromGeneric : toGeneric;
  } else if (name == "atom" || name == "red") {
    decodeAtomic(decoder);
  } else if (name == "cp") {
    decodeAsync(decoder);
  } else if (name == "membar" || (name == "fence" && !statement.has("proxy"))) {
    in.run = fence;
    in.option = statement.has("gl") || statement.has("sys") || statement.has("gpu");
    if (!in.option && !statement.has("cta"))
      decoder.refuse("fences of this scope are not supported");
  } else if (name == "fence" && statement.has("async")) {
    in.run = fenceProxy;
  } else {
    return false;
  }
  return true;
}

} // namespace emulator::ptx
