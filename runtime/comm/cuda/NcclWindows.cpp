#include "runtime/comm/cuda/NcclCollectives.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

namespace fsdp::rt {

namespace {

/// The call of one rank, on its own thread, which may never return.
struct Registration {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  ncclResult_t status = ncclInProgress;
  std::string error;
  ncclWindow_t window = nullptr;
};

/// The state of the call on a rank; the ranks take the maximum.
enum Progress : std::int32_t { Registered, Working, Failed };

} // namespace

bool NcclCollectives::registerArena(ncclComm_t comm, const CommunicatorSpec &spec) {
  auto call = std::make_shared<Registration>();
  int device = 0;
  FSDP_CHECK(peer_, cudaGetDevice(&device));
  const auto request = [call, comm, device, arena = arena_, bytes = arenaBytes_] {
    cudaSetDevice(device);
    const ncclResult_t status =
        ncclCommWindowRegister(comm, arena, bytes, &call->window, NCCL_WIN_COLL_SYMMETRIC);
    const std::string error = status == ncclSuccess ? "" : ncclGetLastError(comm);
    std::lock_guard<std::mutex> lock(call->mutex);
    call->status = status;
    call->error = error;
    call->done = true;
    call->changed.notify_all();
  };
  if (comm)
    std::thread(request).detach();
  else
    call->done = true, call->status = ncclSuccess; // this rank is in no group
  // Until all ranks have registered, or one has failed. The monitor has the timeout for this wait.
  for (auto pause = std::chrono::milliseconds(1);;
       pause = std::min(2 * pause, std::chrono::milliseconds(100))) {
    std::unique_lock<std::mutex> lock(call->mutex);
    call->changed.wait_for(lock, pause, [&] { return call->done; });
    const Progress progress = !call->done                   ? Working
                              : call->status == ncclSuccess ? Registered
                                                            : Failed;
    lock.unlock();
    // And the first of the ranks that have failed.
    std::int32_t told[2] = {progress, progress == Failed ? peer_.worldSize() - peer_.rank() : 0};
    peer_.world().allReduce(told, told, 2, ReduceOp::Max);
    if (told[0] == Working)
      continue;
    if (told[0] == Registered) {
      if (call->window)
        windows_.emplace_back(comm, call->window);
      else if (comm && peer_.rank() == 0 && !std::exchange(remarked_, true))
        std::fprintf(
            stderr,
            "note: NCCL does not register the arena as a symmetric window of '%s' (not supported "
            "between "
            "these GPUs); its collectives go through NCCL's own buffers, which is slower\n",
            spec.name);
      return true;
    }
    if (told[1] == peer_.worldSize() - peer_.rank())
      std::fprintf(
          stderr,
          "note: rank %d: NCCL does not register the arena as a symmetric window of '%s' (%s%s%s); "
          "collectives of all ranks go through NCCL's own buffers, which is slower; "
          "FSDP_NCCL_WINDOW=0 does "
          "not ask for windows\n",
          peer_.rank(), spec.name, ncclGetErrorString(call->status),
          call->error.empty() ? "" : ": ", call->error.c_str());
    // In a group ncclCommAbort only sets the flags, which ends the call of a rank that is still in
    // it, and defers the rest to ncclGroupEnd. The group, which belongs to the thread, is never
    // ended, as the memory that NCCL has begun to register must not be freed.
    if (!comm)
      return false;
    std::thread([comm] {
      if (ncclGroupStart() == ncclSuccess)
        static_cast<void>(ncclCommAbort(comm));
    }).join();
    lock.lock();
    call->changed.wait(lock, [&] { return call->done; });
    return false;
  }
}

std::string NcclCollectives::describe() const {
  if (!world_)
    return "";
  std::vector<GatherGroup> groups;
  for (const CommunicatorSpec &spec : peer_.communicators())
    if (!spec.isTransfer() && (!peer_.hasRoles() || spec.firstUse == FirstUse::Gather))
      groups.push_back(groupOf(spec));
  return describeGathers(version_, choices_, groups, base::environmentVariable);
}

} // namespace fsdp::rt
