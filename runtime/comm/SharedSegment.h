//===- SharedSegment.h - memory shared by ranks of a machine --------------===//
#ifndef FSDP_RUNTIME_COMM_SHAREDSEGMENT_H
#define FSDP_RUNTIME_COMM_SHAREDSEGMENT_H

#include "base/Failure.h"
#include "base/WaitCounter.h"
#include "runtime/device/FlightTrack.h"
#include "runtime/device/Mapping.h"
#include "runtime/program/CollectiveGroup.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fsdp::rt {

class Communicator;
struct PeerContext;

/// The state of a rank, for the other ranks.
struct RankRecord {
  enum State : std::int32_t { Absent, Running, Done };
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::int32_t> state{Absent};
  /// now() of the latest heartbeat.
  std::atomic<double> heartbeat{0};
};

/// The state of one rank in one communicator; written by that rank only, read by its group between
/// two barriers.
struct alignas(64) CollectiveSlot {
  struct PublishedBuffer {
    CollectiveRequest request;
    /// Byte offsets of the data in this rank's arena; kOutside: it is copied through staging.
    std::uint64_t source, target;
  };
  /// Collectives alternate between the two: a peer may still read one while this rank opens the
  /// next.
  PublishedBuffer published[2];
  /// Of a group: the `source` of each collective.
  std::uint64_t sources[2][limits::kMaxGroupedCollectives];
  /// The number of barriers that this rank has reached, for diagnostics.
  std::atomic<std::uint64_t> arrivals;

  /// The current transfer of this rank. The data of a sender must not change until the receiver has
  /// copied all of it.
  struct Transfer {
    /// The peer that may read the published data: `transferKey(kind, peer)`, or 0.
    std::atomic<std::uint64_t> partner;
    PublishedBuffer
        published; ///< `target`: the count of `posted` at which the first piece is available
    /// The number of publications: of a transfer, or of the next piece of one through staging.
    base::WaitCounter posted;
    base::WaitCounter taken; ///< the number of pieces that receivers have copied

    static std::uint64_t transferKey(CollectiveKind kind, int peer) {
      return std::uint64_t(kind) << 32 | static_cast<std::uint32_t>(peer);
    }
  } transfer;
};
constexpr std::uint64_t kOutside = ~std::uint64_t(0);

/// Bytes of the staging area for data that is not in the arena of a rank.
constexpr std::size_t kStagingBytes = std::size_t(1) << 18;

/// One mapping for all ranks of a machine: the job's state, barriers, and the arena of every rank,
/// so that a rank reads the arenas of its peers in place. Unused pages take no memory.
class SharedSegment {
public:
  struct Layout {
    int ranks = 0;
    int communicators = 0; // counting every channel, and the one over all ranks
    std::size_t arenaBytes = 0;
  };
  static std::size_t bytesFor(const Layout &layout);
  /// `mapping` has bytesFor(layout) bytes, which are zero or in use by peers.
  SharedSegment(Mapping mapping, const Layout &layout);
  /// In memory of this process and those that it forks later.
  explicit SharedSegment(const Layout &layout)
      : SharedSegment(Mapping::anonymous(bytesFor(layout)), layout) {}

  const Layout &layout() const { return layout_; }
  base::Failure &failure() const;
  /// Ranks that have the segment mapped.
  base::WaitCounter &attached() const;
  RankRecord &rank(int rank) const;
  /// The kFlightTracks tracks of a rank.
  FlightTrack *flight(int rank) const;
  /// The barrier of the group whose first rank is `leader`, and the slot of each of its ranks.
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

/// Collectives in `segment`, as its communicator `index`. `group`: the world ranks, this one among
/// them; `peerIndex`: the communicator of the other ranks, if it is another one.
std::unique_ptr<Communicator> sharedMemoryCommunicator(std::string name, const PeerContext &peer,
                                                       SharedSegment &segment, int index,
                                                       std::vector<int> group, int peerIndex = -1);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_SHAREDSEGMENT_H
