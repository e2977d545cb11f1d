//===- WarpFunctions.cpp - what lanes of a warp do together -----------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

/// shfl.sync.mode.b32 d|p, a, b, e, mask: e has the mask of segments in bits 8 to 12 and a limit in
/// bits 0 to 4.
void shuffle(Warp &warp, const Instruction &in, Lanes lanes) {
  std::uint32_t values[32];
  std::copy_n(warp.at<std::uint32_t>(in.a), 32, values);
  Lanes isInside = 0;
  each(lanes, [&](unsigned lane) {
    const int by = static_cast<int>(warp.at<std::uint32_t>(in.b)[lane] & 31),
              own = static_cast<int>(lane);
    const std::uint32_t clamp = warp.at<std::uint32_t>(in.e)[lane];
    const int segments = clamp >> 8 & 31, limit = clamp & 31;
    const int most = (own & segments) | (limit & ~segments);
    const int sources[] = {own - by, own + by, own ^ by, (own & segments) | (by & ~segments)};
    const int from = sources[in.option];
    const bool inside = in.option == 0 ? from >= most : from <= most; // 0: up
    const unsigned chosen = inside ? static_cast<unsigned>(from) : lane;
    if (!(lanes >> chosen & 1))
      warp.fail(in, lane,
                formatted("%s: takes the value of lane %u, which does not take part",
                          in.statement->spelling().c_str(), chosen));
    warp.at<std::uint32_t>(in.d)[lane] = values[chosen];
    isInside |= Lanes(inside) << lane;
  });
  if (in.count) // the predicate p
    warp.setPredicate(warp.code.lists[in.first], lanes, isInside);
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
  for (Lanes left = lanes; left;) {
    const Lanes named = namedBy(warp, in, static_cast<unsigned>(__builtin_ctz(left)), lanes);
    warp.block.syncWarp(warp.first, named);
    left &= ~named;
  }
}

} // namespace

bool decodeWarpFunctions(Decoder &decoder) {
  const Statement &statement = *decoder.statement;
  Instruction &in = decoder.in;
  const bool isShuffle = statement.opcode == "shfl";
  const bool isBarrier = statement.opcode == "bar" && statement.has("warp");
  if ((!isShuffle && statement.opcode != "vote" && !isBarrier) || !statement.has("sync"))
    return false;
  in.kind = Kind::Warp;
  if (isBarrier) {
    in.run = syncWarp;
    in.c = decoder.source(decoder.operand(0), 4);
    return true;
  }
  const int option = decoder.optionAmong(isShuffle ? "up down bfly idx" : "all any uni ballot");
  if (option < 0)
    decoder.refuse("this mode is not supported");
  in.option = static_cast<std::uint8_t>(option);
  const Operand &d = decoder.operand(0);
  if (isShuffle) {
    in.run = shuffle;
    in.d = decoder.result(d, 4);
    in.a = decoder.source(decoder.operand(1), 4);
    in.b = decoder.source(decoder.operand(2), 4);
    in.e = decoder.source(decoder.operand(3), 4);
    in.c = decoder.source(decoder.operand(4), 4);
  } else {
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
