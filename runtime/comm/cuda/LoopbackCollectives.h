//===- LoopbackCollectives.h - N ranks as threads on one device -------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_LOOPBACKCOLLECTIVES_H
#define FSDP_RUNTIME_COMM_CUDA_LOOPBACKCOLLECTIVES_H

#include "base/WaitCounter.h"
#include "runtime/comm/cuda/Collectives.h"
#include "runtime/comm/cuda/DevicePeer.h"
#include "runtime/device/cuda/StreamWorkspace.h"

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// Collectives between threads whose arenas are on one device: copies and sums that read the arenas
/// of the peers. Sums are in rank order, so results are bitwise equal to those on the CPU. For
/// tests of a mesh on a machine with a single GPU, not for speed.
///
/// [Note: barriers at enqueue] The host threads of a group enter its barrier twice in each
/// collective. First each rank publishes its request and records an event for its data; after the
/// barrier its stream waits for the data of all ranks, and it enqueues its part. Then each rank
/// records an event after its reads; after the second barrier its stream waits until all ranks have
/// read the data that it may overwrite. As the ranks issue the same program, they enter the
/// barriers in the same order, on any streams.
///
/// A message is copied to memory of the sender, whose host never waits. The host of a receiver
/// waits until the sender's has enqueued the send, but only when something needs the message (see
/// [Note: held receives]).
class LoopbackCollectives final : public Collectives {
public:
  /// Error: more ranks than the argument of a kernel has room for.
  explicit LoopbackCollectives(DevicePeer &peer);
  ~LoopbackCollectives() override;

  std::byte *allocateArena(std::size_t bytes) override;
  CollectiveBackend &communicator(int index) override;
  void inspect() override {} // barriers have their own timeout
  void abandon() noexcept override {}
  std::size_t workspaceBytes() const override;

private:
  class Member;
  /// The data that a rank publishes to its group.
  struct PublishedBuffer {
    CollectiveRequest request{};
    const void *source = nullptr;
    cudaEvent_t ready = nullptr, read = nullptr;
    std::uint64_t arrivals = 0;
  };
  /// A message of a rank. The events are never destroyed, as a peer may wait for them when the rank
  /// ends.
  struct SentMessage {
    CollectiveRequest request{};
    StreamWorkspace memory;
    void *data = nullptr;
    cudaEvent_t ready = nullptr, read = nullptr;
    bool wasRead = false; ///< `read` has been recorded
  };
  /// The messages from one rank to another.
  struct Channel {
    base::WaitCounter posted;              ///< sends that have been enqueued
    std::mutex mutex;                      ///< of `sent`, `taken` and `messages`
    std::deque<SentMessage *> sent, taken; ///< in order; whose memory the sender may use again
    /// The sender's, which stay where they are. They last as long as the last rank: a receiver may
    /// copy one when its sender has ended.
    std::deque<SentMessage> messages;
  };
  /// The barrier of a group, and its channels.
  struct Barrier {
    base::WaitCounter arrived;
    std::vector<PublishedBuffer> published;
    std::unique_ptr<Channel[]> channels; ///< by sender, then by receiver
  };
  /// The barriers of all groups, by communicator (of transfers, that of the sender) and first rank;
  /// one for all ranks.
  using Hub = std::map<std::pair<int, int>, Barrier>;
  std::pair<int, int> keyOf(int communicator, const std::vector<int> &group) const;

  DevicePeer &peer_;
  void *arena_ = nullptr;
  std::shared_ptr<Hub> hub_;
  std::vector<std::unique_ptr<Member>> members_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_LOOPBACKCOLLECTIVES_H
