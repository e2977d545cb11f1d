#include "runtime/cuda/NcclCollectives.h"
#include "runtime/Progress.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

//===----------------------------------------------------------------------===//
// One communicator of the program
//===----------------------------------------------------------------------===//

class NcclCollectives::Member final : public CollectiveBackend {
public:
  Member(NcclCollectives &all, CommunicatorSpec spec, std::vector<int> group, int rank)
      : CollectiveBackend(rank, static_cast<int>(group.size())), all_(all), spec_(spec),
        group_(std::move(group)) {}

  const char *name() const { return spec_.name; }
  PendingActions &pending() { return pending_; }
  std::size_t workspaceBytes() const { return workspace_.bytes(); }

  ncclResult_t allGather(const void *piece, void *whole, std::size_t count, ncclDataType_t type,
                         cudaStream_t stream) override {
    if (size() == 1)
      return copy(piece, whole, count, type, stream);
    open(NCCL_CTA_POLICY_ZERO);
    return enqueued(::ncclAllGather(piece, whole, count, type, comm_, stream), stream);
  }
  ncclResult_t reduceScatter(const void *whole, void *piece, std::size_t count, ncclDataType_t type,
                             ncclRedOp_t op, cudaStream_t stream) override {
    if (size() == 1)
      return copy(whole, piece, count, type, stream);
    open(NCCL_CTA_POLICY_DEFAULT);
    return enqueued(::ncclReduceScatter(whole, piece, count, type, op, comm_, stream), stream);
  }
  ncclResult_t allReduce(const void *source, void *target, std::size_t count, ncclDataType_t type,
                         ncclRedOp_t op, cudaStream_t stream) override {
    if (size() == 1)
      return copy(source, target, count, type, stream);
    open(NCCL_CTA_POLICY_DEFAULT);
    return enqueued(::ncclAllReduce(source, target, count, type, op, comm_, stream), stream);
  }
  ncclResult_t broadcast(const void *source, void *target, std::size_t count, ncclDataType_t type,
                         int root, cudaStream_t stream) override {
    if (size() == 1)
      return copy(source, target, count, type, stream);
    open(NCCL_CTA_POLICY_DEFAULT);
    return enqueued(::ncclBroadcast(source, target, count, type, root, comm_, stream), stream);
  }
  cudaError_t staging(std::size_t bytes, cudaStream_t, void *&block) override {
    return workspace_.reserve(bytes, block);
  }

private:
  void open(int policy) {
    pending_.begin(all_.context_.action());
    if (!comm_)
      comm_ = all_.split(spec_, group_, policy);
  }
  // A non-blocking communicator may still be at work on the call, such as connecting.
  ncclResult_t enqueued(ncclResult_t status, cudaStream_t stream) {
    if (status == ncclInProgress) {
      all_.await(comm_, "start a collective");
      status = ncclSuccess;
    }
    if (status != ncclSuccess)
      return status;
    return pending_.enqueued(stream, all_.context_.job().failure()) == cudaSuccess
               ? ncclSuccess
               : ncclUnhandledCudaError;
  }
  static ncclResult_t copy(const void *from, void *to, std::size_t count, ncclDataType_t type,
                           cudaStream_t stream) {
    if (from == to || !count)
      return ncclSuccess;
    return cudaMemcpyAsync(to, from, count * bytesOf(type), cudaMemcpyDeviceToDevice, stream) ==
                   cudaSuccess
               ? ncclSuccess
               : ncclUnhandledCudaError;
  }

  NcclCollectives &all_;
  CommunicatorSpec spec_;
  std::vector<int> group_;
  ncclComm_t comm_ = nullptr;
  StreamWorkspace workspace_;
  PendingActions pending_;
};

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

NcclCollectives::NcclCollectives(Context &context)
    : context_(context), timeout_(context.job().options().timeoutSeconds) {
  members_.resize(context.program().communicators.size());
  if (context.worldSize() == 1)
    return;
  // Kernels of several communicators run in the order of their launches, the same on every rank.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  ncclUniqueId id{};
  if (context.rank() == 0)
    FSDP_CHECK(context, ncclGetUniqueId(&id));
  context.world().broadcast(&id, sizeof id, 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = "all ranks";
  const ncclResult_t status =
      ncclCommInitRankConfig(&world_, context.worldSize(), id, context.rank(), &config);
  if (status != ncclInProgress)
    FSDP_CHECK(context, status);
  comms_.push_back(world_);
  await(world_, "join all ranks");
}

NcclCollectives::~NcclCollectives() {
  // After a failure NCCL may wait for ranks that will not come: the process ends in any case.
  if (abandoned_ || std::uncaught_exceptions() > 0)
    return;
  for (auto [comm, window] : windows_)
    ncclCommWindowDeregister(comm, window);
  for (std::size_t i = comms_.size(); i-- > 0;) {
    ncclCommFinalize(comms_[i]);
    try {
      await(comms_[i], "end");
    } catch (const Error &) {
      return;
    }
    ncclCommDestroy(comms_[i]);
  }
  if (arena_)
    world_ ? (void)ncclMemFree(arena_) : (void)cudaFree(arena_);
}

std::byte *NcclCollectives::allocateArena(std::size_t bytes) {
  void *memory = nullptr;
  if (world_)
    FSDP_CHECK(context_, ncclMemAlloc(&memory, bytes));
  else
    FSDP_CHECK(context_, cudaMalloc(&memory, bytes));
  arena_ = static_cast<std::byte *>(memory);
  arenaBytes_ = bytes;
  return arena_;
}

CollectiveBackend &NcclCollectives::communicator(int index) {
  auto &member = members_[static_cast<std::size_t>(index)];
  if (!member) {
    const CommunicatorSpec &spec = context_.program().communicators[index];
    auto made = std::make_unique<Member>(*this, spec, context_.mesh().group(context_.rank(), spec.axes),
                                         context_.rankIn(index));
    std::lock_guard<std::mutex> lock(mutex_);
    member = std::move(made);
  }
  return *member;
}

ncclComm_t NcclCollectives::split(const CommunicatorSpec &spec, const std::vector<int> &group,
                                  int policy) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = spec.name;
  config.CTAPolicy = policy;
  int key = 0;
  while (group[static_cast<std::size_t>(key)] != context_.rank())
    ++key;
  ncclComm_t comm = nullptr;
  // Groups are told apart by their first ranks.
  const ncclResult_t status = ncclCommSplit(world_, group.front(), key, &comm, &config);
  if (status != ncclInProgress)
    FSDP_CHECK(context_, status);
  await(world_, "split off a communicator");
  {
    std::lock_guard<std::mutex> lock(mutex_);
    comms_.push_back(comm);
  }
  await(comm, "open a communicator");
  registerArena(comm, spec);
  return comm;
}

void NcclCollectives::registerArena(ncclComm_t comm, const CommunicatorSpec &spec) {
  ncclWindow_t window = nullptr;
  ncclResult_t status =
      ncclCommWindowRegister(comm, arena_, arenaBytes_, &window, NCCL_WIN_COLL_SYMMETRIC);
  if (status == ncclInProgress) {
    await(comm, "register the arena");
    status = ncclSuccess;
  }
  if (status == ncclSuccess && window) {
    windows_.emplace_back(comm, window);
    return;
  }
  if (status == ncclSystemError || status == ncclUnhandledCudaError || status == ncclRemoteError)
    FSDP_CHECK(context_, status);
  if (context_.rank() == 0 && !std::exchange(remarked_, true))
    std::fprintf(stderr,
                 "note: NCCL does not register the arena as a symmetric window of '%s' (%s); its "
                 "collectives go through NCCL's own buffers, which is slower\n",
                 spec.name,
                 status == ncclSuccess ? "not supported between these GPUs"
                                       : ncclGetErrorString(status));
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void NcclCollectives::await(ncclComm_t comm, const char *what) {
  const double start = now();
  for (long looks = 0;; ++looks) {
    ncclResult_t state = ncclInProgress;
    FSDP_CHECK(context_, ncclCommGetAsyncError(comm, &state));
    if (state == ncclSuccess)
      return;
    if (state != ncclInProgress)
      FSDP_CHECK(context_, state);
    context_.job().failure().check();
    if (now() - start > timeout_)
      throw Error(format("waited %g s for NCCL to %s: not all ranks came (FSDP_TIMEOUT sets the "
                         "longest wait in seconds; NCCL_DEBUG=INFO says what NCCL does)",
                         timeout_, what))
          .byAll();
    if (looks > 100)
      usleep(100);
  }
}

void NcclCollectives::hang(double seconds, const char *action, const char *over) const {
  throw Error(format("waited %.0f s in a collective over '%s': another rank did not come, or "
                     "hangs (FSDP_TIMEOUT sets the longest wait in seconds)",
                     seconds, over))
      .at(context_.rank(), action)
      .byAll();
}

void NcclCollectives::inspect() {
  std::lock_guard<std::mutex> lock(mutex_);
  // A collective that does not end names itself; an asynchronous error is said to be of the oldest
  // one that has not ended.
  const char *unfinished = "";
  for (auto &member : members_) {
    double seconds = 0;
    const char *action = member ? member->pending().oldest(seconds) : nullptr;
    if (!action)
      continue;
    if (seconds > timeout_)
      hang(seconds, action, member->name());
    unfinished = action;
  }
  for (ncclComm_t comm : comms_) {
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || state == ncclSuccess ||
        state == ncclInProgress)
      continue;
    throw Error(format("NCCL reports '%s' (%s): a rank or the way to it is gone",
                       ncclGetErrorString(state), ncclGetLastError(comm)))
        .at(context_.rank(), unfinished)
        .byAll();
  }
}

void NcclCollectives::abandon() noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(abandoned_, true))
    return;
  for (std::size_t i = comms_.size(); i-- > 0;)
    ncclCommAbort(comms_[i]);
}

std::size_t NcclCollectives::workspaceBytes() const {
  std::size_t bytes = 0;
  for (const auto &member : members_)
    bytes += member ? member->workspaceBytes() : 0;
  return bytes;
}

} // namespace fsdp::rt
