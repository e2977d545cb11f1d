#include "runtime/comm/cuda/NcclCollectives.h"
#include "base/WaitCounter.h"
#include "runtime/device/FlightTrack.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <set>
#include <utility>

namespace fsdp::rt {

using namespace base;

/// While an object exists, only its thread uses the communicators, and none is aborted. The
/// constructor throws if they are aborted, as the job has failed.
class NcclCollectives::Inside {
public:
  explicit Inside(NcclCollectives &all) : lock_(all.calls_) {
    if (all.abandoned_)
      all.peer_.failure().check();
  }

private:
  std::lock_guard<std::mutex> lock_;
};

//===----------------------------------------------------------------------===//
// One communicator of the program
//===----------------------------------------------------------------------===//

class NcclCollectives::Member final : public CollectiveBackend {
public:
  Member(NcclCollectives &all, int index, std::vector<int> group, int rank)
      : CollectiveBackend(rank, static_cast<int>(group.size())), all_(all), index_(index),
        spec_(all.peer_.communicators()[static_cast<std::size_t>(index)]),
        group_(std::move(group)) {}

  const char *name() const { return spec_.name; }
  PendingActions &pending() { return pending_; }
  std::size_t workspaceBytes() const { return workspace_.bytes(); }
  /// The host launches a graph whose first collective is `one`, which may wait.
  void launching(const CapturedCollective &one) {
    pending_.begin(one.action, collectives_ + 1, one.request.isTransfer() ? &one.request : nullptr);
  }
  /// A graph has enqueued `one`.
  void launched(const CapturedCollective &one) {
    const CollectiveRequest *request = one.request.isTransfer() ? &one.request : nullptr;
    FlightTrack *track = all_.peer_.hostFlight();
    track->end(
        track->begin(FlightAction::Enqueued, one.action, spec_.name, ++collectives_, request));
    pending_.launched(one.action, collectives_, one.request, one.done, all_.peer_.failure());
  }

  ncclResult_t allGather(const void *piece, void *whole, std::size_t count, ncclDataType_t type,
                         cudaStream_t stream) override {
    return perform(/*gathers=*/true, piece, whole, count, type, stream, [&](ncclComm_t comm) {
      all_.copyEngines_ = all_.copyEngines_ || (mayCopy_ && all_.isInArena(whole));
      return ::ncclAllGather(piece, whole, count, type, comm, stream);
    });
  }
  ncclResult_t reduceScatter(const void *whole, void *piece, std::size_t count, ncclDataType_t type,
                             ncclRedOp_t op, cudaStream_t stream) override {
    return perform(/*gathers=*/false, whole, piece, count, type, stream, [&](ncclComm_t comm) {
      return ::ncclReduceScatter(whole, piece, count, type, op, comm, stream);
    });
  }
  ncclResult_t allReduce(const void *source, void *target, std::size_t count, ncclDataType_t type,
                         ncclRedOp_t op, cudaStream_t stream) override {
    return perform(/*gathers=*/false, source, target, count, type, stream, [&](ncclComm_t comm) {
      return ::ncclAllReduce(source, target, count, type, op, comm, stream);
    });
  }
  ncclResult_t broadcast(const void *source, void *target, std::size_t count, ncclDataType_t type,
                         int root, cudaStream_t stream) override {
    return perform(/*gathers=*/false, source, target, count, type, stream, [&](ncclComm_t comm) {
      return ::ncclBroadcast(source, target, count, type, root, comm, stream);
    });
  }
  ncclResult_t exchange(const TransferRuns &moves, const void *source, void *target,
                        ncclDataType_t type, cudaStream_t stream) override {
    const auto *from = static_cast<const std::byte *>(source);
    auto *to = static_cast<std::byte *>(target);
    const std::size_t element = bytesOf(type);
    ncclResult_t status = ncclSuccess;
    moves.forEach(rank(), rank(), [&](std::size_t f, std::size_t t, std::size_t count) {
      if (status == ncclSuccess)
        status = copy(from + f * element, to + t * element, count, type, stream);
    });
    if (status != ncclSuccess || (size() == 1 && !all_.always()))
      return status;
    return perform(/*gathers=*/false, source, target, 0, type, stream, [&](ncclComm_t comm) {
      if (ncclResult_t begun = ::ncclGroupStart())
        return begun;
      ncclResult_t failed = ncclSuccess;
      const auto keep = [&](ncclResult_t result) {
        failed = failed == ncclSuccess ? result : failed;
      };
      for (int peer = 0; peer < size(); ++peer) {
        if (peer == rank())
          continue;
        moves.forEach(rank(), peer, [&](std::size_t f, std::size_t, std::size_t count) {
          keep(::ncclSend(from + f * element, count, type, peer, comm, stream));
        });
        moves.forEach(peer, rank(), [&](std::size_t, std::size_t t, std::size_t count) {
          keep(::ncclRecv(to + t * element, count, type, peer, comm, stream));
        });
      }
      keep(::ncclGroupEnd());
      return failed;
    });
  }
  ncclResult_t group(bool gathers, cudaStream_t stream,
                     const std::function<ncclResult_t()> &calls) override {
    if (size() == 1 && !all_.always())
      return calls();
    return enqueue(gathers, nullptr, stream, [&](ncclComm_t) {
      if (ncclResult_t begun = ::ncclGroupStart())
        return begun;
      grouping_ = true;
      const ncclResult_t status = calls();
      grouping_ = false;
      const ncclResult_t ended = ::ncclGroupEnd();
      return status == ncclSuccess ? ended : status;
    });
  }
  ncclResult_t send(const void *source, const CollectiveRequest &request,
                    cudaStream_t stream) override {
    return transfer(&request, stream, [&](ncclComm_t comm) {
      return ::ncclSend(source, request.total, ncclTypeOf(request.type), request.root, comm,
                        stream);
    });
  }
  ncclResult_t receive(void *target, const CollectiveRequest &request,
                       cudaStream_t stream) override {
    const auto enqueue = [this, target, request, stream] {
      return transfer(&request, stream, [&](ncclComm_t comm) {
        return ::ncclRecv(target, request.total, ncclTypeOf(request.type), request.root, comm,
                          stream);
      });
    };
    HeldReceives &held = all_.peer_.heldReceives();
    if (!held.mustHold(stream))
      return enqueue();
    held.hold(stream, [this, enqueue] { FSDP_CHECK(all_.peer_, enqueue()); });
    return ncclSuccess;
  }
  ncclResult_t skipTransfer(cudaStream_t stream) override {
    if (spec_.isTransfer()) {
      if (!connected_)
        all_.connectTransfers(stream);
      return ncclSuccess;
    }
    return transfer(nullptr, stream, [](ncclComm_t) { return ncclSuccess; });
  }
  cudaError_t staging(std::size_t bytes, cudaStream_t, void *&block) override {
    return workspace_.reserve(bytes, block);
  }

  /// Creates the communicator of collectives of which `use` is the first, together with the other
  /// ranks.
  void open(FirstUse use) { comm_ = all_.split(spec_, group_, use, mayCopy_); }

  // Of transfers.
  const std::vector<int> &group() const { return group_; }
  bool sends() const { return spec_.sends; }
  /// All transfers are set up; this rank uses `comm`, or null if it has no peer.
  void connected(ncclComm_t comm) {
    connected_ = true;
    comm_ = comm;
  }
  /// Enqueues the transfer of a byte on `comm`: so NCCL connects both ranks.
  ncclResult_t touch(ncclComm_t comm, cudaStream_t stream) {
    void *byte = nullptr;
    if (workspace_.reserve(1, byte) != cudaSuccess ||
        cudaMemsetAsync(byte, 0, 1, stream) != cudaSuccess)
      return ncclUnhandledCudaError;
    return spec_.sends ? ::ncclSend(byte, 1, ncclUint8, 1, comm, stream)
                       : ::ncclRecv(byte, 1, ncclUint8, 0, comm, stream);
  }

private:
  /// Enqueues `collective(communicator)`, and creates the communicator before its first collective.
  /// A single rank copies.
  template <class Collective>
  ncclResult_t perform(bool gathers, const void *from, void *to, std::size_t count,
                       ncclDataType_t type, cudaStream_t stream, Collective collective) {
    if (size() == 1 && !all_.always())
      return copy(from, to, count, type, stream);
    if (grouping_)
      return collective(comm_);
    return enqueue(gathers, nullptr, stream, collective);
  }
  /// `request` is that of a transfer, or null.
  template <class Call>
  ncclResult_t transfer(const CollectiveRequest *request, cudaStream_t stream, Call call) {
    return enqueue(/*gathers=*/false, request, stream, [&](ncclComm_t comm) {
      const ncclResult_t status = connected_ ? ncclSuccess : connectPeers(comm, stream);
      return status == ncclSuccess ? call(comm) : status;
    });
  }
  /// NCCL connects two ranks at the first transfer between them, in which the host waits for the
  /// other host. One exchange of a byte between all ranks of the group connects them at once, so
  /// that hosts do not wait for each other later.
  ncclResult_t connectPeers(ncclComm_t comm, cudaStream_t stream) {
    connected_ = true;
    std::byte *bytes = nullptr;
    const std::size_t count = 2 * static_cast<std::size_t>(size());
    if (workspace_.reserve(count, bytes) != cudaSuccess ||
        cudaMemsetAsync(bytes, 0, count, stream) != cudaSuccess)
      return ncclUnhandledCudaError;
    if (ncclResult_t begun = ::ncclGroupStart())
      return begun;
    ncclResult_t failed = ncclSuccess;
    const auto keep = [&](ncclResult_t result) {
      failed = failed == ncclSuccess ? result : failed;
    };
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) {
        keep(::ncclSend(bytes + peer, 1, ncclUint8, peer, comm, stream));
        keep(::ncclRecv(bytes + size() + peer, 1, ncclUint8, peer, comm, stream));
      }
    keep(::ncclGroupEnd());
    return failed;
  }
  template <class Collective>
  ncclResult_t enqueue(bool gathers, const CollectiveRequest *request, cudaStream_t stream,
                       Collective collective) {
    pending_.begin(all_.peer_.action(), ++collectives_, request);
    FlightTrack *track = all_.peer_.hostFlight();
    const std::uint64_t kept = track->begin(FlightAction::Enqueued, all_.peer_.action(), spec_.name,
                                            collectives_, request);
    if (spec_.isTransfer() && !connected_)
      all_.connectTransfers(stream);
    else if (!comm_ && all_.peer_.hasRoles())
      throw Error(format("communicator '%s' has a collective, expected none: the tables of this "
                         "program do not list it",
                         spec_.name));
    else if (!comm_)
      open(gathers ? FirstUse::Gather : FirstUse::Other);
    {
      Inside inside(all_);
      if (ncclResult_t status = collective(comm_))
        return status;
    }
    const cudaError_t noted = all_.isCaptured_ ? noteCaptured(request, stream)
                                               : pending_.enqueued(stream, all_.peer_.failure());
    if (noted != cudaSuccess)
      return ncclUnhandledCudaError;
    track->end(kept); // of the call only; the device may not have finished
    return ncclSuccess;
  }
  /// The collective of the last call has become part of a graph.
  cudaError_t noteCaptured(const CollectiveRequest *request, cudaStream_t stream) {
    pending_.captured();
    --collectives_; // launches count it
    CapturedCollective one{index_, all_.peer_.action(), {}, {}};
    if (request)
      one.request = *request;
    if (cudaError_t status = makeEvent(one.done))
      return status;
    all_.captured_.push_back(one);
    return cudaEventRecordWithFlags(one.done.get(), stream, cudaEventRecordExternal);
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
  int index_; ///< of the communicator
  CommunicatorSpec spec_;
  std::vector<int> group_;
  ncclComm_t comm_ = nullptr;
  bool mayCopy_ = false;   ///< gathers may be made by copy engines
  bool connected_ = false; ///< for transfers
  bool grouping_ = false;  ///< in group(), which enqueues
  StreamWorkspace workspace_;
  std::int64_t collectives_ = 0;
  PendingActions pending_;
};

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

NcclCollectives::NcclCollectives(DevicePeer &peer)
    : peer_(peer), timeout_(peer.timeoutSeconds()),
      choices_(NcclChoices::from(environmentVariable)) {
  members_.resize(peer.communicators().size());
}

void NcclCollectives::connect() {
  if (peer_.worldSize() == 1 && !always())
    return;
  int driver = 0, runtime = 0;
  FSDP_CHECK(peer_, cudaDriverGetVersion(&driver));
  FSDP_CHECK(peer_, cudaRuntimeGetVersion(&runtime));
  if (peer_.worldSize() > 1 && !peer_.hasRoles())
    requireLaunchOrder(driver, runtime, peer_.worldSize());
  FSDP_CHECK(peer_, ncclGetVersion(&version_));
  nodeKeys_.resize(static_cast<std::size_t>(peer_.worldSize()));
  const auto mine = static_cast<std::int64_t>(nodeKeyOfThisHost());
  peer_.world().allGather(&mine, reinterpret_cast<std::int64_t *>(nodeKeys_.data()),
                          {1, 1, 1, nodeKeys_.size()});
  // A feature is used only if all ranks use it, as each rank has its own environment.
  std::int32_t without[3] = {!choices_.window, choices_.copyEngines == false,
                             choices_.copyEngines == true};
  peer_.world().allReduce(without, without, 3, ReduceOp::Max);
  choices_.window = window_ = !without[0];
  if (without[1] || without[2])
    choices_.copyEngines = !without[1];
  static std::once_flag environment;
  std::call_once(environment, [roles = peer_.hasRoles()] {
    // Kernels of several communicators run in the order of their launches, the same on every rank;
    // with roles see [Note: kernels of several roles].
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", roles ? "0" : "1", /*overwrite=*/1);
    // All connections of a communicator are made when it is created: a first collective in which
    // hosts wait for each other may come while one of them waits for the other's message.
    if (roles)
      setenv("NCCL_RUNTIME_CONNECT", "0", /*overwrite=*/1);
    // It overrides the configuration of communicators, also from NCCL's configuration files, which
    // set only unset values.
    setenv("NCCL_COMM_BLOCKING", "1", /*overwrite=*/1);
    // Only communicators that request copy engines gather by them. NCCL treats an empty variable as
    // unset.
    const char *threshold = std::getenv("NCCL_SYM_CE_THRESHOLD");
    setenv("NCCL_SYM_CE_THRESHOLD", kNoSymmetricThreshold, /*overwrite=*/!threshold || !*threshold);
  });
  ncclUniqueId id{};
  if (peer_.world().rank() == 0) // of the mesh, which may begin with another rank than 0
    FSDP_CHECK(peer_, ncclGetUniqueId(&id));
  peer_.world().broadcast(&id, sizeof id, 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.commName = "all ranks";
  Inside inside(*this);
  joiningSince_ = now();
  FSDP_CHECK(peer_, ncclCommInitRankConfig(&world_, peer_.worldSize(), id, peer_.rank(), &config));
  joiningSince_ = 0;
  std::lock_guard<std::mutex> lock(mutex_);
  comms_.push_back(world_);
}

NcclCollectives::~NcclCollectives() {
  // After a failure NCCL may wait for lost ranks, and the process ends in any case.
  if (abandoned_ || std::uncaught_exceptions() > 0)
    return;
  for (auto [comm, window] : windows_)
    ncclCommWindowDeregister(comm, window);
  for (std::size_t i = comms_.size(); i-- > 0;)
    if (ncclCommDestroy(comms_[i]) != ncclSuccess) // finalizes it too
      return;
  if (arena_)
    world_ ? (void)ncclMemFree(arena_) : (void)cudaFree(arena_);
}

std::byte *NcclCollectives::allocateArena(std::size_t bytes) {
  void *memory = nullptr;
  if (world_)
    FSDP_CHECK(peer_, ncclMemAlloc(&memory, bytes));
  else
    FSDP_CHECK(peer_, cudaMalloc(&memory, bytes));
  arena_ = static_cast<std::byte *>(memory);
  arenaBytes_ = bytes;
  return arena_;
}

CollectiveBackend &NcclCollectives::communicator(int index) { return memberAt(index); }

NcclCollectives::Member &NcclCollectives::memberAt(int index) {
  auto &member = members_[static_cast<std::size_t>(index)];
  if (!member) {
    const CommunicatorSpec &spec = peer_.communicators()[static_cast<std::size_t>(index)];
    auto made = std::make_unique<Member>(*this, index, peer_.mesh().ranksOf(spec, peer_.rank()),
                                         peer_.rankIn(index));
    std::lock_guard<std::mutex> lock(mutex_);
    member = std::move(made);
  }
  return *member;
}

GatherGroup NcclCollectives::groupOf(const CommunicatorSpec &spec) const {
  const std::vector<int> ranks = peer_.mesh().group(peer_.rank(), spec.axes);
  std::set<std::uint64_t> nodes;
  for (int rank : ranks)
    nodes.insert(nodeKeys_[static_cast<std::size_t>(rank)]);
  return {spec.name, static_cast<int>(ranks.size()), static_cast<int>(nodes.size())};
}

ncclConfig_t NcclCollectives::configOf(const char *name) const {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.commName = name;
  config.CTAPolicy = NCCL_CTA_POLICY_DEFAULT;
  if (mostBlocks_)
    config.maxCTAs = mostBlocks_;
  return config;
}

ncclComm_t NcclCollectives::split(const CommunicatorSpec &spec, const std::vector<int> &group,
                                  FirstUse use, bool &mayCopy) {
  ncclConfig_t config = configOf(spec.name);
  int key = 0;
  while (group[static_cast<std::size_t>(key)] != peer_.rank())
    ++key;
  Inside inside(*this);
  for (;;) {
    const bool window = window_ && !peer_.joinsRoles(spec);
    const bool copies =
        use == FirstUse::Gather && window && asksForCopyEngines(version_, choices_, groupOf(spec));
    config.CTAPolicy = copies ? NCCL_CTA_POLICY_ZERO : NCCL_CTA_POLICY_DEFAULT;
    ncclComm_t comm = nullptr;
    // Groups are identified by their first ranks.
    const int color = use == FirstUse::None ? NCCL_SPLIT_NOCOLOR : group.front();
    FSDP_CHECK(peer_, ncclCommSplit(world_, color, key, &comm, &config));
    if (window && !registerArena(comm, spec)) {
      window_ = false; // and another communicator is created, without a window
      continue;
    }
    if (!comm)
      return nullptr;
    mayCopy = window && group.size() > 1 && (copies || mayCopyUnasked(environmentVariable));
    std::lock_guard<std::mutex> lock(mutex_);
    comms_.push_back(comm);
    return comm;
  }
}

void NcclCollectives::setUp(cudaStream_t stream) {
  if (!world_ || !peer_.hasRoles())
    return;
  const Table<CommunicatorSpec> specs = peer_.communicators();
  std::vector<Member *> used;
  for (std::size_t index = 0; index < specs.size(); ++index) {
    Member &member = memberAt(static_cast<int>(index));
    if ((member.size() > 1 || always()) &&
        (specs[index].isTransfer() || specs[index].firstUse != FirstUse::None))
      used.push_back(&member);
  }
  int device = 0, multiprocessors = 0;
  FSDP_CHECK(peer_, cudaGetDevice(&device));
  FSDP_CHECK(peer_,
             cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  // The same on every rank, as the ranks of a communicator need as many blocks.
  std::int32_t most = -blocksOfEach(multiprocessors, used.size());
  peer_.world().allReduce(&most, &most, 1, ReduceOp::Max);
  mostBlocks_ = -most;
  // In the order of the table, which all programs of the plan share.
  for (std::size_t index = 0; index < specs.size(); ++index) {
    const CommunicatorSpec &spec = specs[index];
    Member &member = memberAt(static_cast<int>(index));
    if (spec.sends) {
      Inside inside(*this);
      joiningSince_ = now();
      connectTransfers(static_cast<int>(index), stream);
      joiningSince_ = 0;
    } else if (!spec.isTransfer() && (member.size() > 1 || always())) {
      joiningSince_ = now();
      member.open(spec.firstUse);
      joiningSince_ = 0;
    }
  }
  FSDP_CHECK(peer_, cudaStreamSynchronize(stream));
}

void NcclCollectives::connectTransfers(cudaStream_t stream) {
  Inside inside(*this);
  joiningSince_ = now();
  const Table<CommunicatorSpec> specs = peer_.communicators();
  for (std::size_t index = 0; index < specs.size(); ++index)
    if (specs[index].sends)
      connectTransfers(static_cast<int>(index), stream);
  // Streams that use one communicator do not wait for each other.
  FSDP_CHECK(peer_, cudaStreamSynchronize(stream));
  joiningSince_ = 0;
}

void NcclCollectives::connectTransfers(int index, cudaStream_t stream) {
  const int other = counterpartOf(peer_.communicators(), index);
  Member *ends[] = {&memberAt(index), &memberAt(other)};
  const CommunicatorSpec &spec = peer_.communicators()[static_cast<std::size_t>(index)];
  const std::vector<int> ranks = peer_.mesh().group(peer_.rank(), spec.axes);
  const std::vector<int> rounds = transferRounds(
      static_cast<int>(ranks.size()), spec.sends ? spec.offset : -spec.offset, spec.inRing);
  const auto roundOf = [&](const Member &end) {
    if (end.size() == 1)
      return -1;
    const auto sender = std::find(ranks.begin(), ranks.end(), end.group().front());
    return rounds[static_cast<std::size_t>(sender - ranks.begin())];
  };
  ncclConfig_t config = configOf("");
  for (Member *end : ends)
    end->connected(nullptr);
  for (int round = 0; round <= *std::max_element(rounds.begin(), rounds.end()); ++round) {
    Member *mine = nullptr;
    for (Member *end : ends)
      if (roundOf(*end) == round)
        mine = end;
    config.commName = mine ? mine->name() : "no transfer";
    ncclComm_t comm = nullptr;
    FSDP_CHECK(peer_, ncclCommSplit(world_, mine ? mine->group().front() : NCCL_SPLIT_NOCOLOR,
                                    mine && !mine->sends(), &comm, &config));
    if (!mine)
      continue;
    FSDP_CHECK(peer_, mine->touch(comm, stream));
    mine->connected(comm);
    std::lock_guard<std::mutex> lock(mutex_);
    comms_.push_back(comm);
  }
}

void NcclCollectives::launching(const CapturedCollectives &collectives) {
  for (const auto &member : members_) // events of the launch before are recorded again
    if (member)
      member->pending().oldest();
  if (!collectives.empty())
    memberAt(collectives[0].communicator).launching(collectives[0]);
}

void NcclCollectives::launched(const CapturedCollectives &collectives) {
  for (const CapturedCollective &one : collectives)
    memberAt(one.communicator).launched(one);
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void NcclCollectives::inspect() {
  if (const double since = joiningSince_; since > 0 && now() - since > timeout_)
    throw Error(format("timed out after %g s waiting for NCCL to connect all ranks (--timeout "
                       "sets the timeout in seconds; NCCL_DEBUG=INFO logs what NCCL does)",
                       timeout_))
        .byAll();
  std::lock_guard<std::mutex> lock(mutex_);
  // A collective that does not end is reported by name; an asynchronous error is attributed to the
  // oldest collective that has not ended.
  const char *unfinished = "";
  for (auto &member : members_) {
    const PendingActions::Oldest oldest =
        member ? member->pending().oldest() : PendingActions::Oldest();
    if (!oldest.action)
      continue;
    if (oldest.seconds > timeout_)
      throw Error(
          format("timed out after %.0f s in %scollective %lld over '%s': another rank did not "
                 "join it, or hangs; --timeout sets the timeout in seconds",
                 oldest.seconds,
                 oldest.request.isTransfer()
                     ? format("'%s', ", oldest.request.describe().c_str()).c_str()
                     : "",
                 static_cast<long long>(oldest.number), member->name()))
          .at(peer_.rank(), oldest.action)
          .byAll();
    unfinished = oldest.action;
  }
  for (ncclComm_t comm : comms_) {
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || state == ncclSuccess)
      continue;
    throw Error(format("NCCL reports '%s' (%s): a rank has failed, or the connection to it is lost",
                       ncclGetErrorString(state), ncclGetLastError(comm)))
        .at(peer_.rank(), unfinished)
        .byAll();
  }
}

void NcclCollectives::abandon() noexcept {
  std::lock_guard<std::mutex> inside(calls_);
  if (std::exchange(abandoned_, true) || copyEngines_)
    return;
  // comms_ changes only while calls_ is held.
  ncclGroupStart();
  for (std::size_t i = comms_.size(); i-- > 0;)
    ncclCommAbort(comms_[i]);
  ncclGroupEnd();
}

std::size_t NcclCollectives::workspaceBytes() const {
  std::size_t bytes = 0;
  for (const auto &member : members_)
    bytes += member ? member->workspaceBytes() : 0;
  return bytes;
}

} // namespace fsdp::rt
