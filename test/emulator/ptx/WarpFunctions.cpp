//===- WarpFunctions.cpp - what lanes of a warp do together -----------------------------------===//

#include "Lanewise.h"

#include <algorithm>

namespace emulator::ptx {

namespace {

/// shfl.sync.mode.b32 d|p, a, b, c, mask: c has the mask of segments in bits 8 to 12 and a limit in
/// bits 0 to 4.
void shuffle(Warp &warp, const Instruction &in, Lanes lanes) {
  std::uint32_t values[32];
  std::copy_n(warp.at<std::uint32_t>(in.a), 32, values);
  Lanes isInside = 0;
  each(lanes, [&](unsigned lane) {
    const std::uint32_t by = warp.at<std::uint32_t>(in.b)[lane] & 31,
                        clamp = warp.at<std::uint32_t>(in.e)[lane];
    const std::uint32_t segments = clamp >> 8 & 31, limit = clamp & 31;
    const std::uint32_t most = (lane & segments) | (limit & ~segments), least = lane & segments;
    std::int64_t from = 0;
    bool inside = false;
    switch (in.option) {
    case 0: // up
      from = std::int64_t(lane) - by;
      inside = from >= std::int64_t(most);
      break;
    case 1: // down
      from = std::int64_t(lane) + by;
      inside = from <= std::int64_t(most);
      break;
    case 2: // bfly
      from = lane ^ by;
      inside = from <= std::int64_t(most);
      break;
    default: // idx
      from = least | (by & ~segments);
      inside = from <= std::int64_t(most);
    }
    const unsigned chosen = inside ? static_cast<unsigned>(from) : lane;
    if (!(lanes >> chosen & 1)) {
      warp.actor = lane;
      fault("%s, %s: takes the value of lane %u, which does not take part",
            in.statement->spelling().c_str(),
            placeOf(*warp.block.code.module, *in.statement).c_str(), chosen);
    }
    warp.at<std::uint32_t>(in.d)[lane] = values[chosen];
    isInside |= Lanes(inside) << lane;
  });
  if (in.count) // the predicate p
    warp.setPredicate(warp.block.code.lists[in.first], lanes, isInside);
}

/// The lanes that a lane's mask names: those of the call, where masks differ.
Lanes namedBy(const Warp &warp, const Instruction &in, unsigned lane, Lanes lanes) {
  return static_cast<Lanes>(warp.number(in.c, lane)) & lanes;
}

void vote(Warp &warp, const Instruction &in, Lanes lanes) {
  const Lanes holds = in.isNegated ? ~warp.predicate(in.a) : warp.predicate(in.a);
  each(lanes, [&](unsigned lane) {
    const Lanes named = namedBy(warp, in, lane, lanes), those = holds & named;
    const bool all = those == named;
    const std::uint64_t results[] = {all, those != 0, all || !those, those};
    warp.setNumber(in.d, lane, results[in.option]);
  });
}

void syncWarp(Warp &warp, const Instruction &in, Lanes lanes) {
  Lanes left = lanes;
  while (left) {
    const Lanes named = namedBy(warp, in, static_cast<unsigned>(__builtin_ctz(left)), lanes);
    warp.block.syncWarp(warp.first, named);
    left &= ~named;
  }
}

int indexOf(std::initializer_list<const char *> names, const Statement &statement) {
  int index = 0;
  for (const char *name : names) {
    if (statement.has(name))
      return index;
    ++index;
  }
  return -1;
}

void decodeOption(Decoder &decoder, std::initializer_list<const char *> names) {
  const int option = indexOf(names, *decoder.statement);
  if (option < 0)
    decoder.refuse("this mode is not supported");
  decoder.in.option = static_cast<std::uint8_t>(option);
}

} // namespace

bool decodeWarpFunctions(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  const std::string &name = statement.opcode;
  const bool isBarrier = name == "bar" && statement.has("warp");
  if ((name != "shfl" && name != "vote" && !isBarrier) || !statement.has("sync"))
    return false;
  in.kind = Kind::Warp;
  if (isBarrier) {
    in.run = syncWarp;
    in.c = decoder.source(decoder.operand(0), 4);
    return true;
  }
  const Operand &d = decoder.operand(0);
  if (name == "shfl") {
    decodeOption(decoder, {"up", "down", "bfly", "idx"});
    in.run = shuffle;
    in.d = decoder.result(d, 4);
    in.a = decoder.source(decoder.operand(1), 4);
    in.b = decoder.source(decoder.operand(2), 4);
    in.e = decoder.source(decoder.operand(3), 4);
    in.c = decoder.source(decoder.operand(4), 4);
  } else {
    decodeOption(decoder, {"all", "any", "uni", "ballot"});
    in.run = vote;
    in.d = in.option == 3 ? decoder.result(d, 4) : decoder.predicate(d);
    in.a = decoder.predicate(decoder.operand(1));
    in.isNegated = decoder.operand(1).isNegated;
    in.c = decoder.source(decoder.operand(2), 4);
  }
  if (!d.parts.empty() && d.parts[0].kind != Operand::Sink) {
    decoder.code.lists.push_back(decoder.predicate(d.parts[0]));
    in.first = static_cast<std::uint32_t>(decoder.code.lists.size() - 1);
    in.count = 1;
  }
  return true;
}

} // namespace emulator::ptx
