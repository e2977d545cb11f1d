//===- SharedMemoryCommunicator.h - collectives in shared memory ----------===//
//
// Ranks synchronize, read their data directly from the arenas of their peers, and synchronize again
// before a peer may change it. Data outside the arenas (of the driver) is copied through a staging
// area in pieces.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_SHAREDMEMORYCOMMUNICATOR_H
#define FSDP_RUNTIME_COMM_SHAREDMEMORYCOMMUNICATOR_H

#include "base/WaitedTime.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/PeerContext.h"
#include "runtime/comm/SharedSegment.h"

#include <vector>

namespace fsdp::rt {

class SharedMemoryCommunicator final : public Communicator {
public:
  /// `index`: the communicator of the segment; `group`: its world ranks, including this one;
  /// `peerIndex`: the communicator of the other ranks, if it is another one.
  SharedMemoryCommunicator(std::string name, const PeerContext &peer, SharedSegment &segment,
                           int index, std::vector<int> group, int peerIndex = -1);

protected:
  void doMove(const void *source, void *target, const Request &request,
              const int *sources) override;
  void doReduceScatter(const void *whole, void *piece, const Request &request) override;
  void doGroup(const Request &request, const GroupedCollective *members,
               std::size_t count) override;
  void doAllReduce(const void *source, void *target, const Request &request) override;
  void doBarrier(const Request &request) override;
  void doSend(const void *source, const Request &request) override;
  void doReceive(void *target, const Request &request) override;

private:
  /// Publishes this rank's request, waits for all ranks, and checks that all requests are equal.
  /// True if a rank's data is outside its arena, so that all ranks must use staging.
  bool open(const Request &request, const void *source, void *target);
  /// The same of the collectives of a group, which has `request`.
  bool open(const Request &request, const GroupedCollective *members, std::size_t count);
  /// Checks that all ranks have published `request`; true if one of them uses staging.
  bool compare(const Request &request) const;
  /// Bytes of the source of this rank.
  std::size_t sourceBytes(const Request &request) const;
  /// Returns when all ranks of the group have arrived at the barrier as often as this rank.
  void awaitAll(const Request &request);
  void reportAbsent(const Request &request);
  /// Throws the error of a wait in `collective` for the ranks `named`, which `late` describes.
  [[noreturn]] void timeOut(const std::string &collective, const std::string &late,
                            const std::vector<int> &named) const;

  /// Publishes the transfer `request` and its data for the peer.
  void publishTransfer(const Request &request, std::uint64_t source);
  /// Waits for `counter`, which the peer of `request` advances, to reach `target`; false if it has
  /// not after kPollInterval. Throws if the peer has ended or the timeout has passed.
  bool awaitPeer(base::WaitCounter &counter, std::uint64_t target, const Request &request,
                 base::WaitedTime &waited);
  /// Throws if the peer of `request` and this rank wait for each other.
  void checkCrossing(const Request &request) const;

  std::uint64_t offsetOf(const void *pointer, std::size_t bytes) const;
  /// The source of a peer that has opened, in member `member` of a group.
  const char *sourceOf(int peer, std::size_t member) const;
  char *targetOf(int peer) const;
  char *stagingOf(int peer) const;
  CollectiveSlot::PublishedBuffer &publishedBy(int peer) const {
    return slots_[peer]->published[opened_ & 1];
  }

  /// After all ranks have opened: reads the sources of the peers.
  void moveFrom(std::size_t member, const Request &request, const int *sources, const void *source,
                void *target);
  void scatterFrom(std::size_t member, const Request &request, const void *whole, void *piece);
  template <class SourceOf>
  void reduceAll(void *target, SourceOf sourceOf, std::size_t first, std::size_t count,
                 const Request &request);
  /// Calls `body(low, high)` for one part [low, high) of `all` elements after another, which every
  /// rank has in its staging area then: this one of `source`, unless it is null.
  template <class Body>
  void forEachStaged(const Request &request, const void *source, std::size_t all, Body body);

  const PeerContext &peer_;
  SharedSegment &segment_;
  int index_, peerIndex_;
  std::vector<int> group_;
  base::WaitCounter &barrier_;
  std::vector<CollectiveSlot *> slots_;
  std::vector<const void *>
      sources_; ///< of each peer; a member, so that collectives allocate nothing
  std::uint64_t opened_ = 0, arrivals_ = 0;
  std::uint64_t posted_ = 0, taken_ = 0; // of transfers
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_SHAREDMEMORYCOMMUNICATOR_H
