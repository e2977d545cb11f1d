//===- WarpFunctions.cpp - what lanes of a warp do together -----------------------------------===//

#include "Lanewise.h"

namespace emulator::ptx {

namespace {

enum class Mode { Up, Down, Butterfly, Index };

/// shfl.sync.mode.b32 d|q, a, b, c, mask: c has the mask of segments in bits 8 to 12 and a limit in
/// bits 0 to 4.
template <Mode mode> void shuffle(Warp &warp, const Instruction &in, Lanes lanes) {
  std::uint32_t values[32];
  std::copy_n(warp.at<std::uint32_t>(in.a), 32, values);
  Lanes isInside = 0;
  each(lanes, [&](unsigned lane) {
    const int by = static_cast<int>(warp.at<std::uint32_t>(in.b)[lane] & 31),
              own = static_cast<int>(lane);
    const std::uint32_t clamp = warp.at<std::uint32_t>(in.c)[lane];
    const int segments = clamp >> 8 & 31, limit = clamp & 31;
    const int most = (own & segments) | (limit & ~segments);
    const int from = mode == Mode::Up          ? own - by
                     : mode == Mode::Down      ? own + by
                     : mode == Mode::Butterfly ? own ^ by
                                               : (own & segments) | (by & ~segments);
    const bool inside = mode == Mode::Up ? from >= most : from <= most;
    const unsigned chosen = inside ? static_cast<unsigned>(from) : lane;
    if (!(lanes >> chosen & 1))
      warp.fail(in, lane,
                formatted("%s: takes the value of lane %u, which does not take part",
                          in.statement->spelling.c_str(), chosen));
    warp.at<std::uint32_t>(in.d)[lane] = values[chosen];
    isInside |= Lanes(inside) << lane;
  });
  if (in.q.width == 0)
    warp.setPredicate(in.q, lanes, isInside);
}

/// The lanes that a lane's mask names: those of the call, where masks differ.
Lanes namedBy(const Warp &warp, const Instruction &in, unsigned lane, Lanes lanes) {
  return warp.at<Lanes>(in.mask)[lane] & lanes;
}

void ballot(Warp &warp, const Instruction &in, Lanes lanes) {
  each(lanes, [&](unsigned lane) {
    warp.at<Lanes>(in.d)[lane] = warp.predicate(in.a) & namedBy(warp, in, lane, lanes);
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

void addWarpFunctions(Rows &rows) {
  const char *operands = "d4 a4 b4 c4 m4";
  rows.add({"shfl.sync.up.b32"}, {shuffle<Mode::Up>, operands, Kind::Masked});
  rows.add({"shfl.sync.down.b32"}, {shuffle<Mode::Down>, operands, Kind::Masked});
  rows.add({"shfl.sync.bfly.b32"}, {shuffle<Mode::Butterfly>, operands, Kind::Masked});
  rows.add({"shfl.sync.idx.b32"}, {shuffle<Mode::Index>, operands, Kind::Masked});
  rows.add({"vote.sync.ballot.b32"}, {ballot, "d4 a0 m4", Kind::Masked});
  rows.add({"bar.warp.sync"}, {syncWarp, "m4", Kind::Masked});
}

} // namespace emulator::ptx
