//===- LoopbackCollectives.h - N ranks as threads on one device -------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_LOOPBACKCOLLECTIVES_H
#define FSDP_RUNTIME_COMM_CUDA_LOOPBACKCOLLECTIVES_H

#include "base/WaitCounter.h"
#include "runtime/comm/cuda/Collectives.h"
#include "runtime/comm/cuda/DevicePeer.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// Collectives between threads whose arenas lie on one device: copies and sums that read the peers'
/// arenas, sums in rank order, so that results are the same bits as on the CPU. For a mesh on a
/// machine with a single GPU: to check, not to be fast.
///
/// [Note: barriers at enqueue] The host threads of a group come to its barrier twice in each
/// collective. Each rank records that its data is there, and comes; then all have shown what they
/// do and where, and each stream waits for the data of all, and enqueues its part. Each rank
/// records that it has read, and comes; then each stream waits until all have read what it may
/// overwrite. As the ranks issue the same program, they come in the same order, whatever streams
/// their collectives are on.
///
/// What is sent is copied to memory of its sender, whose host goes on; it waits only before it
/// replaces what has not been received. A host that receives waits until the other one has issued
/// the send.
class LoopbackCollectives final : public Collectives {
public:
  /// Errors: more ranks than a kernel's argument has room for.
  explicit LoopbackCollectives(DevicePeer &peer);
  ~LoopbackCollectives() override;

  std::byte *allocateArena(std::size_t bytes) override;
  CollectiveBackend &communicator(int index) override;
  void inspect() override {} // barriers look after themselves
  void abandon() noexcept override {}
  std::size_t workspaceBytes() const override;

private:
  class Member;
  /// What a rank shows to its group.
  struct PublishedBuffer {
    CollectiveRequest request{};
    const void *source = nullptr;
    cudaEvent_t ready = nullptr, read = nullptr;
    std::uint64_t arrivals = 0;
  };
  /// What one rank sends to another one: one message at a time.
  struct Channel {
    base::WaitCounter posted, taken;
    CollectiveRequest request{};
    const void *source = nullptr;
    cudaEvent_t ready = nullptr, read = nullptr;
  };
  /// The barrier of a group, and its channels.
  struct Barrier {
    base::WaitCounter arrived;
    std::vector<PublishedBuffer> published;
    std::unique_ptr<Channel[]> channels; ///< by sender, then by receiver
  };
  /// The barriers of all groups, by communicator and first rank; one for all ranks.
  using Hub = std::map<std::pair<int, int>, Barrier>;

  DevicePeer &peer_;
  void *arena_ = nullptr;
  std::shared_ptr<Hub> hub_;
  std::vector<std::unique_ptr<Member>> members_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_LOOPBACKCOLLECTIVES_H
