//===- NcclCollectives.h - one process and one GPU for each rank ------------===//
#ifndef FSDP_RUNTIME_CUDA_NCCLCOLLECTIVES_H
#define FSDP_RUNTIME_CUDA_NCCLCOLLECTIVES_H

#include "runtime/cuda/Collectives.h"
#include "runtime/cuda/PendingActions.h"

#include <memory>
#include <mutex>
#include <vector>

namespace fsdp::rt {

/// NCCL between the ranks of a job. Each communicator of the program is an NCCL communicator of its
/// own, split from one over all ranks when it is first used; the ranks issue the same program, so
/// they come to it in the same order. All of them are non-blocking: no call waits for another rank
/// for longer than the job's timeout.
///
/// [Note: the arena is a window] The arena comes from ncclMemAlloc and is registered once with each
/// communicator as a symmetric window: a buffer has the same offset on every rank, as the compiler
/// has fixed it. Between GPUs of one NVLink domain NCCL then copies all-gathers with the copy
/// engines, so that they take no multiprocessor from the computation (communicators whose first
/// collective is an all-gather ask for that with CTA policy zero), and sums reduce-scatters through
/// the switch. Where NCCL cannot register it says so once, on standard error, and stages.
class NcclCollectives final : public Collectives {
public:
  explicit NcclCollectives(Context &context);
  ~NcclCollectives() override;

  std::byte *allocateArena(std::size_t bytes) override;
  CollectiveBackend &communicator(int index) override;
  void inspect() override;
  void abandon() noexcept override;
  std::size_t workspaceBytes() const override;

private:
  class Member;

  /// Waits until `comm` has no call under way. Throws when that takes too long or fails.
  void await(ncclComm_t comm, const char *what);
  /// Splits the world by the groups of a communicator. Every rank calls it.
  ncclComm_t split(const CommunicatorSpec &spec, const std::vector<int> &group, int policy);
  void registerArena(ncclComm_t comm, const CommunicatorSpec &spec);
  [[noreturn]] void hang(double seconds, const char *action, const char *over) const;

  Context &context_;
  double timeout_;
  std::byte *arena_ = nullptr;
  std::size_t arenaBytes_ = 0;
  ncclComm_t world_ = nullptr;
  std::mutex mutex_; ///< of members_ and comms_: the monitor reads them
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<ncclComm_t> comms_; ///< all that are open, the world's first
  std::vector<std::pair<ncclComm_t, ncclWindow_t>> windows_;
  bool abandoned_ = false, remarked_ = false;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_NCCLCOLLECTIVES_H
