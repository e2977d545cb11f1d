//===- NcclComm.h - communicators of the emulated NCCL ----------------------------===//
//
// How calls on them behave is read from NCCL 2.28.9's sources (init.cc, group.cc, dev_runtime.cc):
//
// - A blocking communicator is done with a call when the call returns. A non-blocking one does it
// on a
//   thread of its own and is in progress meanwhile: any other call is refused (ncclInvalidArgument,
//   which stays). ncclCommSplit and ncclCommWindowRegister return ncclSuccess then, not
//   ncclInProgress, and what they give is written later.
// - ncclCommGetAsyncError reads the state. On a non-blocking communicator it also ends the call
// under way,
//   so that only the thread that made the call may query it.
// - One thread at a time uses a communicator. ncclCommAbort, too, frees it.
// - Freeing one waits for its kernels, which with NCCL_LAUNCH_ORDER_IMPLICIT stand behind those of
// the
//   others on the device: several are aborted in one group. In a group ncclCommAbort only sets
//   flags, which end waits of the host in calls on the communicator and of kernels; ncclGroupEnd
//   frees.
// - An all-gather between symmetric windows of a communicator with CTA policy zero is made by copy
// engines (enqueue.cc, ce_coll.cc); from 2.29.2 on, where the target is in one, and on devices of
//   compute capability 10.0 whatever the policy is, of more elements than NCCL_SYM_CE_THRESHOLD
//   (8388608). A stream waits in it by memory operations, which no flag ends: ncclCommAbort waits
//   for it (commDestroySync in init.cc). Versions and sizes in which it hangs or races are
//   failures.
// - A rank that cannot register a window returns; the others wait for it in a barrier.
// - A communicator takes memory of the device when it is first used.
// - Kernels of several communicators of a device start in any order without
// NCCL_LAUNCH_ORDER_IMPLICIT, so that ranks may wait for one another: a failure from the first
//   communicator on with which they might not have room for all of their blocks at once (maxCTAs of
//   each, else as many as a device has multiprocessors). With the variable, and a driver from 12.3
//   on, a kernel starts after the one before it, of whatever stream, has started (enqueue.cc).
// - An arena is registered by ranks with as many bytes each (2.28.9; newer versions allow others),
// and
//   symmetric kernels have the same offset on every rank.
// - Destroying a communicator does not release the memory of its windows (ncclDevrFinalize): they
// are
//   to be deregistered first.
//
// Violations of these rules are failures of the emulator.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_NCCLCOMM_H
#define FSDP_EMULATOR_NCCLCOMM_H

#include "nccl.h"

#include "Emulator.h"
#include "Queue.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace emulator {

/// One rank's part in a collective.
struct Part {
  const char *kind = nullptr;
  const void *source = nullptr;
  void *target = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int option = 0; ///< operator or root
  PointRef done{};
  ncclComm_t comm = nullptr;
  bool copies = false; ///< by copy engines
};

/// A group's sends and receives on one stream, some of which wait for the other side.
struct PendingBatch {
  std::size_t open; ///< how many of them
  PointRef done;
  ncclComm_t comm;
};

/// One side of a message.
struct Post {
  bool sends;
  void *buffer;
  std::size_t bytes;
  ncclDataType_t type;
  int peer;
  std::shared_ptr<PendingBatch> batch;
};

/// The ranks that meet.
struct Group {
  explicit Group(int size) : size(size), devices(std::size_t(size), -1) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> devices;
  struct Round {
    std::vector<Part> parts;
    int arrived = 0;
  };
  std::map<std::uint64_t, Round> rounds;
  /// Operations that wait for the other side, in order.
  struct Mail {
    std::deque<Post> sends, receives;
  };
  std::map<std::pair<int, int>, Mail> mail; ///< by sender and receiver
  /// The ways on which a sender, or a receiver, has come to connect.
  std::set<std::pair<int, int>> senders, receivers;
  struct Split {
    std::vector<std::pair<int, int>> colorAndKey;
    std::map<int, std::shared_ptr<Group>> groups;
    int arrived = 0;
  };
  std::map<std::uint64_t, Split> splits;
  struct Registration {
    int arrived = 0; ///< ranks
    std::size_t bytes = 0;
    bool differ = false; ///< the bytes of the ranks
  };
  std::map<std::uint64_t, Registration> windows;
  int joined = 0;
};

/// Keeps the text for ncclGetLastError.
ncclResult_t say(ncclResult_t code, const std::string &text);

} // namespace emulator

/// Lives on when it has been freed, so that who uses it then is found out.
struct ncclComm {
  std::shared_ptr<emulator::Group> group;
  int rank = 0, device = 0;
  bool blocking = true;
  int policy = 0;                          ///< for CTAs
  int blocks = emulator::kMultiprocessors; ///< the most of a kernel
  int worldRank = 0;                       ///< in the communicator that others were split from
  std::size_t charged = 0; ///< bytes that it takes of its device, see Settings::communicator
  std::map<const void *, bool> windows; ///< allocations; whether as symmetric windows
  std::atomic<int> copying{0};          ///< of the unfinished collectives those of copy engines
  std::uint64_t next = 0, nextSplit = 0, nextWindow = 0;
  bool posts = false;             ///< it has sent or received
  std::atomic<int> unfinished{0}; ///< collectives that a stream has not come past
  std::atomic<bool> aborted{false}, freed{false};
  std::atomic<const char *> inside{nullptr}; ///< the call in which a thread is
  std::atomic<ncclResult_t> state{ncclSuccess};
  std::thread job;       ///< of a non-blocking one: the call under way
  std::thread::id owner; ///< who made that call
};

namespace emulator {

/// A call on a communicator: `status` is whether it is accepted.
class Use {
public:
  Use(ncclComm_t comm, const char *call);
  ~Use();
  Use(const Use &) = delete;
  ncclResult_t status = ncclSuccess;

private:
  ncclComm_t comm_ = nullptr; ///< null where it was not entered
};

/// Waits until all ranks of a group have come, for as long as the deadlock setting says, or until
/// `comm` is aborted.
template <class Condition>
bool meet(std::unique_lock<std::mutex> &lock, Group &group, ncclComm_t comm, Condition condition) {
  group.changed.notify_all();
  group.changed.wait_for(lock, std::chrono::duration<double>(settings().deadlock),
                         [&] { return condition() || comm->aborted; });
  return condition();
}

/// "", or why NCCL `version` must not gather with copy engines in a communicator of `ranks` ranks.
std::string copyEngineFault(int version, int ranks);
/// Takes what a communicator takes of its device at its first use.
ncclResult_t charge(ncclComm_t comm);
/// What the next kernel of `comm` waits for beside its stream: with NCCL_LAUNCH_ORDER_IMPLICIT, the
/// start of the device's kernel before it, of whatever communicator, and its end with a driver
/// before 12.3 (enqueue.cc).
class LaunchOrder {
public:
  explicit LaunchOrder(ncclComm_t comm) : comm_(comm), device_(comm->device) {}
  /// Enqueues `kernel`, which the next one may wait for.
  void enqueue(cudaStream_t stream, const char *what, Action kernel, bool copies = false) const;
  /// Fails where kernels of another communicator have been launched on the device, and nobody has
  /// asked for NCCL_LAUNCH_ORDER_IMPLICIT: then they may start in any order, another one on each
  /// rank.
  void require() const;

private:
  ncclComm_t comm_;
  int device_;
};
/// As NCCL reads NCCL_LAUNCH_ORDER_IMPLICIT: off where it is empty or no number.
bool ordersLaunches();
/// Kernels that were launched and never started, as the device had failed, keep nothing back any
/// more.
void forgetLaunches();
/// Bytes of an element; 0 where the type is none.
std::size_t bytesOf(ncclDataType_t type);
/// In a group, keeps `work` until ncclGroupEnd, else performs it.
ncclResult_t performAfterGroup(ncclComm_t comm, std::function<ncclResult_t()> work);
/// Enqueues the sends and receives of this thread's group.
ncclResult_t flushPointToPoint();

/// Does `work` as a call on `comm`: at once, or on a thread, which gives ncclInProgress.
ncclResult_t perform(ncclComm_t comm, std::function<ncclResult_t()> work);

} // namespace emulator

#endif // FSDP_EMULATOR_NCCLCOMM_H
