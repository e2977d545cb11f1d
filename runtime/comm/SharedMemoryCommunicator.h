//===- SharedMemoryCommunicator.h - collectives inside one machine ----------===//
//
// Ranks meet, read what they need straight out of their peers' arenas, and meet again before anyone
// may change it. Data outside the arenas (the driver's own) goes through a staging area in pieces.
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
  /// `index`: which communicator of the segment; `group`: its world ranks, this one among them.
  SharedMemoryCommunicator(std::string name, const PeerContext &peer, SharedSegment &segment,
                           int index, std::vector<int> group, double timeoutSeconds);

protected:
  void doMove(const void *source, void *target, const Request &request,
              const int *sources) override;
  void doReduceScatter(const void *whole, void *piece, const Request &request) override;
  void doAllReduce(const void *source, void *target, const Request &request) override;
  void doBarrier(const Request &request) override;
  void doSend(const void *source, const Request &request) override;
  void doReceive(void *target, const Request &request) override;

private:
  /// Shows the group what this rank is about to do, waits for all, and checks that all do the same.
  /// True when some rank's data lies outside its arena, so that all must go through staging.
  bool open(const Request &request, const void *source, const void *target = nullptr);
  /// Returns when all of the group have come to the barrier this often.
  void awaitAll(const Request &request);
  void reportAbsent(const Request &request);

  /// Says whom this rank meets in the transfer `request`, and what of.
  void publishTransfer(const Request &request, std::uint64_t source);
  /// Waits until `counter`, which the peer of `request` advances, is at `target`; false where it is
  /// not after a while. Throws where the peer has ended or is late.
  bool awaitPeer(base::WaitCounter &counter, std::uint64_t target, const Request &request,
                 base::WaitedTime &waited);
  /// Throws where the peer of `request` waits for this rank to do what this rank waits for it to
  /// do.
  void checkCrossing(const Request &request) const;

  std::uint64_t offsetOf(const void *pointer, std::size_t bytes) const;
  const char *sourceOf(int peer) const;
  char *targetOf(int peer) const;
  char *stagingOf(int peer) const;
  CollectiveSlot::PublishedBuffer &publishedBy(int peer) const {
    return slots_[peer]->published[opened_ & 1];
  }

  void reduceAll(void *target, const void *const *sources, std::size_t first, std::size_t count,
                 const Request &request);

  const PeerContext &peer_;
  SharedSegment &segment_;
  int index_;
  std::vector<int> group_;
  double timeout_;
  base::WaitCounter &barrier_;
  std::vector<CollectiveSlot *> slots_;
  std::vector<const void *> sources_, shifted_; // one for each peer; kept to allocate nothing
  std::uint64_t opened_ = 0, arrivals_ = 0;
  std::uint64_t posted_ = 0, taken_ = 0; // of transfers
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_SHAREDMEMORYCOMMUNICATOR_H
