//===- NcclCollectives.h - collectives by NCCL ----------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_NCCLCOLLECTIVES_H
#define FSDP_RUNTIME_COMM_CUDA_NCCLCOLLECTIVES_H

#include "runtime/comm/cuda/Collectives.h"
#include "runtime/comm/cuda/DevicePeer.h"
#include "runtime/comm/cuda/NcclChoices.h"
#include "runtime/comm/cuda/PendingActions.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// NCCL between the ranks of a job. Each communicator of the program is a separate NCCL
/// communicator, split from one over all ranks at its first use. The ranks issue the same program,
/// so they split in the same order. Where there are several roles, all are set up at the start, in
/// the order of the table, which the programs share; ranks whose program does not use one have no
/// color in its split.
///
/// [Note: blocking communicators] All communicators are blocking: a call returns when it is done or
/// refused, so that its results (a window, a communicator) are available and the next call is
/// accepted. The host stays in a call until all other ranks make theirs; the monitor's thread has a
/// timeout for that, and ends the job. In NCCL's sources (2.28.9) a communicator is to be used by
/// one thread at a time, with one exception for blocking ones: ncclCommGetAsyncError reads their
/// state and changes nothing (group.cc links jobs, which it would complete and free, to
/// non-blocking ones alone). So the monitor may query asynchronous errors at any time, but aborts,
/// which frees, only while the host is in no call. A host that stays in a call ends with its
/// process (runtime/job/Watchdog.h). All are aborted in one group: the flags of all are set before
/// any is freed, as freeing one waits for kernels that follow those of the others
/// (NCCL_LAUNCH_ORDER_IMPLICIT).
///
/// [Note: copy engines are not aborted] A stream that waits for other ranks in a gather by copy
/// engines waits by memory operations, which no flag ends, and ncclCommAbort would wait for that
/// stream (commDestroySync). So where a gather may have used copy engines nothing is aborted: the
/// device continues to wait, and the process ends (runtime/job/Watchdog.h).
///
/// [Note: transfers have communicators of two ranks] NCCL performs the operations of one
/// communicator in order, so each sender has one with its receiver for each communicator of sends
/// of the program. They are split off the world in two or three rounds (transferRounds): in each, a
/// rank is the sender or the receiver of one transfer at most, and has no color otherwise. All are
/// set up when the first is used, which is at the same place of the program on every rank: later, a
/// call that allocates memory might wait for a device that waits for another rank. They are
/// connected at once, as NCCL connects two ranks in the first message, in which the hosts wait for
/// each other. Their buffers need no common offset, so that nothing is registered.
///
/// [Note: kernels of several roles] NCCL_LAUNCH_ORDER_IMPLICIT lets a kernel start after the one
/// that the host has enqueued before it, on whatever stream, has started (enqueue.cc). Ranks of one
/// program enqueue in one order. A receive that is issued ahead still waits for its buffer when
/// others are enqueued, and would keep them back, also those for which its own sender waits. So
/// with several roles the variable is 0, and no kernel may need room that others of NCCL have: each
/// communicator gets so few blocks (maxCTAs) that kernels of all of them fit on the device at once.
///
/// [Note: the arena is a window] The arena comes from ncclMemAlloc and is registered once with each
/// communicator as a symmetric window: a buffer has the same offset on every rank, as the compiler
/// has fixed it. Between GPUs of one NVLink domain NCCL then copies all-gathers with the copy
/// engines, so that they take no multiprocessor from the computation (communicators whose first
/// collective is an all-gather request that with CTA policy zero; see NcclChoices.h), and sums
/// reduce-scatters through the switch. A rank that cannot register (a container that passes no
/// descriptors, no IMEX channel, no multicast memory left) returns from the call, in which the
/// others wait for it. So a thread of each rank makes the call, and the host threads exchange its
/// state over their own channel. If one has failed, the flags of the communicator are set, which
/// ends the calls of the others. The communicator is replaced by another one, and no window is
/// registered from then on. One rank prints a note of it on standard error.
class NcclCollectives final : public Collectives {
public:
  explicit NcclCollectives(DevicePeer &peer);
  ~NcclCollectives() override;

  void connect() override;
  std::byte *allocateArena(std::size_t bytes) override;
  void setUp(cudaStream_t stream) override;
  CollectiveBackend &communicator(int index) override;
  void beginCapture() override { isCaptured_ = true; }
  CapturedCollectives endCapture() override {
    isCaptured_ = false;
    return std::exchange(captured_, {});
  }
  void launching(const CapturedCollectives &collectives) override;
  void launched(const CapturedCollectives &collectives) override;
  void inspect() override;
  void abandon() noexcept override;
  std::size_t workspaceBytes() const override;
  std::string describe() const override;

private:
  class Member;
  class Inside;

  Member &memberAt(int index);

  /// Whether a communicator of one rank uses NCCL too.
  bool always() const { return choices_.always; }
  /// For a communicator without copy engines.
  ncclConfig_t configOf(const char *name) const;
  /// Splits the world by the groups of a communicator; null where this rank does not use it.
  /// `mayCopy`: it may gather by copy engines. Every rank calls it.
  ncclComm_t split(const CommunicatorSpec &spec, const std::vector<int> &group, FirstUse use,
                   bool &mayCopy);
  /// Sets up the communicators of all transfers of the program, and connects each by a byte on
  /// `stream`. Every rank calls it.
  void connectTransfers(cudaStream_t stream);
  /// Those of the sends of communicator `index`, and of their receives.
  void connectTransfers(int index, cudaStream_t stream);
  /// The arena as a window of `comm` on every rank, or false on every rank. Every rank calls it,
  /// with null where it is in no group.
  bool registerArena(ncclComm_t comm, const CommunicatorSpec &spec);
  GatherGroup groupOf(const CommunicatorSpec &spec) const;
  bool isInArena(const void *address) const {
    return address >= arena_ && address < arena_ + arenaBytes_;
  }

  DevicePeer &peer_;
  double timeout_;
  NcclChoices choices_;
  int version_ = 0;
  int mostBlocks_ = 0;                  ///< of a kernel; 0: as NCCL chooses
  std::vector<std::uint64_t> nodeKeys_; ///< of each rank
  bool window_ = true;                  ///< the next communicator gets one; the same on every rank
  std::byte *arena_ = nullptr;
  std::size_t arenaBytes_ = 0;
  ncclComm_t world_ = nullptr;
  std::atomic<double> joiningSince_{0}; ///< when the host began to wait for all ranks, or 0
  std::mutex calls_;                    ///< held during calls of NCCL, except those of inspect()
  bool abandoned_ = false;              ///< guarded by calls_
  bool copyEngines_ = false;            ///< a gather may have used them; guarded by calls_
  std::mutex mutex_;                    ///< of members_ and comms_: the monitor reads them
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<ncclComm_t> comms_; ///< all open communicators, that over all ranks first
  std::vector<std::pair<ncclComm_t, ncclWindow_t>> windows_;
  bool remarked_ = false;
  bool isCaptured_ = false;      ///< collectives become part of a graph
  CapturedCollectives captured_; ///< so far
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_NCCLCOLLECTIVES_H
