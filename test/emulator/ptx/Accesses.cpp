//===- Accesses.cpp - ld, st, atom, red, cvta, cp.async and fences --------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// ld of `in.count` numbers M, in one access, to registers R.
template <class M, class R> void load(Warp &warp, const Instruction &in, Lanes lanes) {
  Places at;
  warp.block.access(warp, in, lanes, in.space, warp.addressesOf(in.a, in.offset),
                    sizeof(M) * in.count, 0, at);
  for (std::uint32_t i = 0; i < in.count; ++i) {
    const Ref to = warp.code.lists[in.first + i];
    if (to.width == Ref::kNone)
      continue;
    R *d = warp.at<R>(to);
    each(lanes, [&](unsigned lane) {
      M number;
      std::memcpy(&number, at[lane] + i * sizeof(M), sizeof number);
      d[lane] = static_cast<R>(number); // extended by its sign where it has one
    });
  }
}

template <class M, class R> void store(Warp &warp, const Instruction &in, Lanes lanes) {
  Places at;
  warp.block.access(warp, in, lanes, in.space, warp.addressesOf(in.a, in.offset),
                    sizeof(M) * in.count, Access::Write, at);
  for (std::uint32_t i = 0; i < in.count; ++i) {
    const R *from = warp.at<R>(warp.code.lists[in.first + i]);
    each(lanes, [&](unsigned lane) {
      const M number = static_cast<M>(from[lane]);
      std::memcpy(at[lane] + i * sizeof(M), &number, sizeof number);
    });
  }
}

template <bool isTo> void convertAddress(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    const std::uint64_t address = warp.number(in.a, lane);
    const unsigned thread = warp.threadOf(lane);
    warp.setNumber(in.d, lane,
                   isTo ? warp.block.addressIn(in.space, address, thread)
                        : warp.block.genericOf(in.space, address, thread));
  });
}

const char *const kChanges = "add min max and or xor exch cas";

template <class T> T changed(unsigned change, T old, T b, T c) {
  const T results[] = {static_cast<T>(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(b)),
                       std::min(old, b),
                       std::max(old, b),
                       static_cast<T>(old & b),
                       static_cast<T>(old | b),
                       static_cast<T>(old ^ b),
                       b,
                       old == b ? c : old};
  return results[change];
}

/// atom d, [a], b{, c} and red [a], b. Lanes in their order: kernels with sums of floats, which
/// depend on it, are refused.
template <class T> void change(Warp &warp, const Instruction &in, Lanes lanes) {
  Places at;
  warp.block.access(warp, in, lanes, in.space, warp.addressesOf(in.a, in.offset), sizeof(T),
                    Access::Write | Access::Atomic, at);
  each(lanes, [&](unsigned lane) {
    T old;
    std::memcpy(&old, at[lane], sizeof old);
    const T c = in.c.width == Ref::kNone ? T(0) : warp.at<T>(in.c)[lane];
    const T now = changed(in.option, old, warp.at<T>(in.b)[lane], c);
    std::memcpy(at[lane], &now, sizeof now);
    warp.setNumber(in.d, lane, static_cast<std::uint64_t>(old));
  });
}

/// cp.async [a], [b], bytes{, c}: c is a number of bytes of the source, or the predicate of
/// .ignore-src.
void startCopies(Warp &warp, const Instruction &in, Lanes lanes) {
  const Addresses from = warp.addressesOf(in.b, static_cast<std::int32_t>(in.target));
  std::array<std::uint64_t, 32> sourceBytes;
  Lanes whole = 0;
  Places at;
  each(lanes, [&](unsigned lane) {
    const std::uint64_t bytes = in.c.width == Ref::kNone ? in.bytes : warp.number(in.c, lane);
    sourceBytes[lane] = in.c.width == 0 ? (bytes ? 0 : in.bytes) : bytes;
    if (sourceBytes[lane] > in.bytes)
      warp.fail(in, lane,
                formatted("cp.async: got %zu bytes of source, expected at most %u",
                          std::size_t(bytes), in.bytes));
    if (from[lane] % in.bytes)
      warp.fail(in, lane,
                formatted("cp.async from %#zx: misaligned, expected a multiple of %u",
                          std::size_t(from[lane]), in.bytes));
    whole |= Lanes(sourceBytes[lane] == in.bytes) << lane;
  });
  if (whole)
    warp.block.access(warp, in, whole, Space::Global, from, in.bytes, 0, at);
  each(lanes & ~whole, [&](unsigned lane) {
    // Aligned pieces: the source may be less than the target.
    const auto part = static_cast<unsigned>(sourceBytes[lane] & (0 - sourceBytes[lane]));
    Addresses piece = from;
    for (unsigned i = 0; i < sourceBytes[lane]; i += part, piece[lane] += part)
      warp.block.access(warp, in, Lanes(1) << lane, Space::Global, piece, part, 0, at);
  });
  warp.block.access(warp, in, lanes, Space::Shared, warp.addressesOf(in.a, in.offset), in.bytes,
                    Access::Write | Access::InFlight, at);
  each(lanes, [&](unsigned lane) {
    warp.block.copies[warp.threadOf(lane)].start(
        {at[lane], reinterpret_cast<void *>(from[lane]), in.bytes, std::size_t(sourceBytes[lane])});
  });
}
void commitCopies(Warp &warp, const Instruction &, Lanes lanes) {
  each(lanes, [&](unsigned lane) { warp.block.copies[warp.threadOf(lane)].commit(); });
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
  for (std::size_t i = 0; i + 1 < statement.suffixes.size(); ++i)
    if (const std::string &suffix = statement.suffixes[i];
        spaceOf(suffix) == Space::Generic &&
        Decoder::optionOf(suffix, "nc v2 v4 ca cg cs lu cv wb wt volatile relaxed weak gpu sys cta "
                                  "L1::evict_first L1::no_allocate L1::evict_last L2::128B "
                                  "L2::256B L2::64B") < 0)
      decoder.refuse("the modifier ." + suffix + " is not supported");
  const std::string &type = statement.last();
  const unsigned bytes = bytesOfType(type);
  if (!bytes || bytes > 8)
    decoder.refuse("accesses of ." + type + " are not supported");
  in.space = decoder.space();
  decoder.address(decoder.operand(isLoad ? 1 : 0), in.space);
  decoder.list(decoder.operand(isLoad ? 0 : 1), bytes, isLoad,
               statement.has("v4")   ? 4
               : statement.has("v2") ? 2
                                     : 1);
  unsigned width = 0; // of all registers of the list
  for (std::uint32_t i = 0; i < in.count; ++i)
    if (const Ref ref = decoder.code.lists[in.first + i]; ref.width != Ref::kNone) {
      if (width && width != ref.width)
        decoder.refuse("registers of different widths are not supported");
      width = ref.width;
    }
  const std::string integer = type[0] == 'f' ? "b" + type.substr(1) : type;
  in.run = ofType(decoder, integer, [&](auto m) {
    using M = decltype(m);
    return ofWidth(width ? width : std::max(bytes, 2u), [&](auto r) -> Instruction::Run {
      return isLoad ? load<M, decltype(r)> : store<M, decltype(r)>;
    });
  });
}

void decodeAtomic(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  const int option = decoder.optionAmong(kChanges);
  const std::string &type = statement.last();
  const unsigned bytes = bytesOfType(type);
  if (option < 0 || (bytes != 4 && bytes != 8) || type[0] == 'f')
    decoder.refuse("this operation of ." + type + " is not supported");
  in.option = static_cast<std::uint8_t>(option);
  in.space = decoder.space();
  const std::size_t first = statement.opcode == "atom" ? 1 : 0;
  if (first)
    in.d = decoder.result(decoder.operand(0), bytes);
  decoder.address(decoder.operand(first), in.space);
  in.b = decoder.source(decoder.operand(first + 1), bytes);
  if (statement.has("cas"))
    in.c = decoder.source(decoder.operand(first + 2), bytes);
  const bool isSigned = type[0] == 's';
  in.run = bytes == 4 ? (isSigned ? change<std::int32_t> : change<std::uint32_t>)
                      : (isSigned ? change<std::int64_t> : change<std::uint64_t>);
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
        Decoder::optionOf(statement.suffixes[1], "ca cg") < 0 ||
        spaceOf(statement.suffixes[2]) != Space::Shared || statement.suffixes[3] != "global")
      decoder.refuse("this copy is not supported");
    in.run = startCopies;
    decoder.address(decoder.operand(1), Space::Global); // the source first: its place is kept in b
    in.b = in.a;
    in.target = static_cast<std::uint32_t>(in.offset);
    decoder.address(decoder.operand(0), Space::Shared);
    in.bytes = static_cast<std::uint8_t>(decoder.immediate(decoder.operand(2)));
    if (in.bytes != 4 && in.bytes != 8 && in.bytes != 16)
      decoder.refuse("got a copy of " + std::to_string(in.bytes) + " bytes, expected 4, 8 or 16");
    if (decoder.operands() > 3)
      in.c = decoder.isPredicate(decoder.operand(3)) ? decoder.predicate(decoder.operand(3))
                                                     : decoder.source(decoder.operand(3), 4);
  }
}

} // namespace

bool decodeMemory(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  const std::string &name = statement.opcode;
  if (name == "ld" || name == "st") {
    decodeLoadOrStore(decoder, name == "ld");
  } else if (name == "cvta") {
    in.space = decoder.space();
    in.d = decoder.result(decoder.operand(0), 0);
    in.a = decoder.source(decoder.operand(1), in.d.width);
    in.run = statement.has("to") ? convertAddress<true> : convertAddress<false>;
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
