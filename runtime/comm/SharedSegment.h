//===- SharedSegment.h - the memory that ranks of a machine share -----------===//
#ifndef FSDP_RUNTIME_COMM_SHAREDSEGMENT_H
#define FSDP_RUNTIME_COMM_SHAREDSEGMENT_H

#include "base/Failure.h"
#include "base/WaitCounter.h"
#include "runtime/device/FlightTrack.h"
#include "runtime/device/Mapping.h"
#include "runtime/program/CollectiveRequest.h"

#include <atomic>
#include <cstddef>
#include <string>

namespace fsdp::rt {

/// What a rank says about itself to the others.
struct RankRecord {
  enum State : std::int32_t { Absent, Running, Done };
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::int32_t> state{Absent};
  /// now() of the last sign of life.
  std::atomic<double> heartbeat{0};
};

/// One communicator as one rank of it sees it; written by that rank only, read by its group between
/// two barriers.
struct alignas(64) CollectiveSlot {
  struct PublishedBuffer {
    CollectiveRequest request;
    /// Byte offsets of what peers may read in this rank's arena; kOutside: it goes through staging.
    std::uint64_t source, target;
  };
  /// Collectives alternate: a peer may still look at one while this rank opens the next.
  PublishedBuffer published[2];
  /// Barriers that this rank has come to; for the diagnosis of those that do not.
  std::atomic<std::uint64_t> arrivals;

  /// The transfer that this rank is in. A sender shows what it sends, and leaves it until all of it
  /// is taken.
  struct Transfer {
    /// Whom it meets: `involvesPeers(kind, peer)`, or 0. Says that what is shown may be read, by
    /// that peer.
    std::atomic<std::uint64_t> partner;
    PublishedBuffer
        published; ///< `target`: the count of `posted` with which the first piece is there
    /// How often this rank has shown something: a transfer, or the next piece of one that goes
    /// through staging.
    base::WaitCounter posted;
    base::WaitCounter taken; ///< how many such pieces of what it sends have been taken

    static std::uint64_t transferKey(CollectiveKind kind, int peer) {
      return std::uint64_t(kind) << 32 | static_cast<std::uint32_t>(peer);
    }
  } transfer;
};
constexpr std::uint64_t kOutside = ~std::uint64_t(0);

/// Bytes of the area through which a rank shows its peers data that is not in its arena.
constexpr std::size_t kStagingBytes = std::size_t(1) << 18;

/// One mapping for all ranks of a machine: the job's state, barriers, and every rank's arena,
/// so that a rank reads its peers' arenas in place. Pages that nobody touches cost nothing.
class SharedSegment {
public:
  struct Layout {
    int ranks = 0;
    int communicators = 0; // channels of each counted, the one over all ranks included
    std::size_t arenaBytes = 0;
  };
  static std::size_t bytesFor(const Layout &layout);
  /// Takes a mapping of bytesFor(layout) bytes that is still zero, or that a peer has laid out.
  SharedSegment(Mapping mapping, const Layout &layout);

  const Layout &layout() const { return layout_; }
  base::Failure &failure() const;
  /// Ranks that have the segment mapped.
  base::WaitCounter &attached() const;
  RankRecord &rank(int rank) const;
  /// The kFlightTracks tracks of a rank.
  FlightTrack *flight(int rank) const;
  /// The barrier of the group whose first rank is `leader`, and what each of its ranks shows there.
  base::WaitCounter &barrier(int communicator, int leader) const;
  CollectiveSlot &slot(int communicator, int rank) const;
  std::byte *staging(int communicator, int rank) const;
  std::byte *arena(int rank) const;

private:
  template <class T> T *at(std::size_t offset) const {
    return reinterpret_cast<T *>(mapping_.data() + offset);
  }
  Mapping mapping_;
  Layout layout_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_SHAREDSEGMENT_H
