#include "runtime/comm/SharedSegment.h"

#include <cstdint>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::size_t kPage = 4096;

constexpr std::size_t roundUp(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// Fields are on separate cache lines, as different ranks write them.
struct alignas(64) Header {
  Failure failure;
  alignas(64) WaitCounter attached;
};
struct alignas(64) RankLine {
  RankRecord record;
};
struct alignas(64) BarrierLine {
  WaitCounter progress;
};

// The tracks of a rank begin at a page boundary, so that no two ranks write to the same page.
constexpr std::size_t kFlightBytes = roundUp(kFlightTracks * sizeof(FlightTrack), kPage);

struct Offsets {
  std::size_t ranks, barriers, slots, flights, staging, arenas, end, arenaStride;
};

Offsets offsetsOf(const SharedSegment::Layout &layout) {
  const std::size_t ranks = layout.ranks, pairs = ranks * layout.communicators;
  Offsets at;
  at.ranks = sizeof(Header);
  at.barriers = at.ranks + ranks * sizeof(RankLine);
  at.slots = at.barriers + pairs * sizeof(BarrierLine);
  at.flights = roundUp(at.slots + pairs * sizeof(CollectiveSlot), kPage);
  at.staging = roundUp(at.flights + ranks * kFlightBytes, kPage);
  at.arenas = at.staging + pairs * kStagingBytes;
  at.arenaStride = roundUp(layout.arenaBytes, kPage);
  at.end = at.arenas + ranks * at.arenaStride;
  return at;
}

} // namespace

std::size_t SharedSegment::bytesFor(const Layout &layout) { return offsetsOf(layout).end; }

// All state is valid when zero. A wake-up target of zero causes one unneeded wake-up. So no rank
// has to initialize the segment before the others use it.
SharedSegment::SharedSegment(Mapping mapping, const Layout &layout)
    : mapping_(std::move(mapping)), layout_(layout) {}

Failure &SharedSegment::failure() const { return at<Header>(0)->failure; }
WaitCounter &SharedSegment::attached() const { return at<Header>(0)->attached; }
RankRecord &SharedSegment::rank(int rank) const {
  return at<RankLine>(offsetsOf(layout_).ranks)[rank].record;
}
WaitCounter &SharedSegment::barrier(int communicator, int leader) const {
  return at<BarrierLine>(offsetsOf(layout_).barriers)[communicator * layout_.ranks + leader]
      .progress;
}
CollectiveSlot &SharedSegment::slot(int communicator, int rank) const {
  return at<CollectiveSlot>(offsetsOf(layout_).slots)[communicator * layout_.ranks + rank];
}
FlightTrack *SharedSegment::flight(int rank) const {
  return at<FlightTrack>(offsetsOf(layout_).flights + std::size_t(rank) * kFlightBytes);
}
std::byte *SharedSegment::staging(int communicator, int rank) const {
  return at<std::byte>(offsetsOf(layout_).staging) +
         (std::size_t(communicator) * layout_.ranks + rank) * kStagingBytes;
}
std::byte *SharedSegment::arena(int rank) const {
  Offsets offsets = offsetsOf(layout_);
  return at<std::byte>(offsets.arenas) + rank * offsets.arenaStride;
}

} // namespace fsdp::rt
