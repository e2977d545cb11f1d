#include "runtime/comm/cuda/LoopbackCollectives.h"
#include "runtime/device/FlightTrack.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <algorithm>
#include <string>

namespace fsdp::rt {

using namespace base;

namespace {

// Interval at which a waiting rank checks for a failure of the job, in seconds.
constexpr double kPollInterval = 0.05;

bool typeOf(ncclDataType_t type, DType &found) {
  for (DType candidate : {DType::F32, DType::F64, DType::I32, DType::I64, DType::BF16, DType::Bool})
    if (ncclTypeOf(candidate) == type) {
      found = candidate;
      return true;
    }
  return false;
}

ncclResult_t asNccl(cudaError_t status) {
  return status == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

const std::byte *behind(const void *address, std::size_t bytes) {
  return static_cast<const std::byte *>(address) + bytes;
}

} // namespace

//===----------------------------------------------------------------------===//
// One communicator of one rank
//===----------------------------------------------------------------------===//

class LoopbackCollectives::Member final : public CollectiveBackend {
public:
  Member(DevicePeer &peer, const char *name, std::vector<int> group, int rank, Barrier &barrier)
      : CollectiveBackend(rank, static_cast<int>(group.size())), peer_(peer), name_(name),
        group_(std::move(group)), barrier_(barrier) {
    // The events are never destroyed, as a peer may wait for them when this rank ends.
    PublishedBuffer &mine = publishedBy(rank);
    FSDP_CHECK(peer, cudaEventCreateWithFlags(&mine.ready, cudaEventDisableTiming));
    FSDP_CHECK(peer, cudaEventCreateWithFlags(&mine.read, cudaEventDisableTiming));
  }

  std::size_t workspaceBytes() const {
    std::size_t bytes = workspace_.bytes() + sums_.bytes();
    for (int peer = 0; peer < size(); ++peer) {
      Channel &channel = channelOf(rank(), peer);
      std::lock_guard<std::mutex> lock(channel.mutex);
      for (const SentMessage &message : channel.messages)
        bytes += message.memory.bytes();
    }
    return bytes;
  }

  ncclResult_t allGather(const void *piece, void *whole, std::size_t count, ncclDataType_t type,
                         cudaStream_t stream) override {
    return move(CollectiveKind::AllGather, piece, whole, count, type, 0, stream);
  }

  ncclResult_t reduceScatter(const void *whole, void *piece, std::size_t count, ncclDataType_t type,
                             ncclRedOp_t op, cudaStream_t stream) override {
    CollectiveRequest request;
    if (!makeRequest(CollectiveKind::ReduceScatter, type, op, 0, count, request))
      return ncclInvalidArgument;
    if (ncclResult_t status = open(request, whole, stream))
      return status;
    const RankSources sources = sourcesAt(std::size_t(rank()) * count * bytesOf(type));
    if (cudaError_t status =
            reduce_in_rank_order(sources, piece, count, request.type, request.op, stream))
      return asNccl(status);
    return close(stream);
  }

  ncclResult_t allReduce(const void *source, void *target, std::size_t count, ncclDataType_t type,
                         ncclRedOp_t op, cudaStream_t stream) override {
    CollectiveRequest request;
    if (!makeRequest(CollectiveKind::AllReduce, type, op, 0, count, request))
      return ncclInvalidArgument;
    // In place, the sum is stored elsewhere until all ranks have read their data.
    const std::size_t bytes = count * bytesOf(type);
    void *sum = target;
    if (source == target && size() > 1)
      if (cudaError_t status = sums_.reserve(bytes, sum))
        return asNccl(status);
    if (ncclResult_t status = open(request, source, stream))
      return status;
    if (cudaError_t status =
            reduce_in_rank_order(sourcesAt(0), sum, count, request.type, request.op, stream))
      return asNccl(status);
    if (ncclResult_t status = close(stream))
      return status;
    return copy(sum, target, bytes, stream);
  }

  ncclResult_t broadcast(const void *source, void *target, std::size_t count, ncclDataType_t type,
                         int root, cudaStream_t stream) override {
    return move(CollectiveKind::Broadcast, source, target, count, type, root, stream);
  }

  ncclResult_t exchange(const TransferRuns &moves, const void *source, void *target,
                        ncclDataType_t type, cudaStream_t stream) override {
    if (ncclResult_t status = open(moves.request(), source, stream))
      return status;
    const std::size_t element = bytesOf(type);
    ncclResult_t status = ncclSuccess;
    for (int peer = 0; peer < size(); ++peer)
      moves.forEach(peer, rank(), [&](std::size_t from, std::size_t to, std::size_t count) {
        if (status == ncclSuccess)
          status = copy(behind(publishedBy(peer).source, from * element),
                        static_cast<std::byte *>(target) + to * element, count * element, stream);
      });
    return status == ncclSuccess ? close(stream) : status;
  }

  ncclResult_t group(bool, cudaStream_t, const std::function<ncclResult_t()> &calls) override {
    return calls(); // ranks of one process meet without messages
  }

  ncclResult_t send(const void *source, const CollectiveRequest &request,
                    cudaStream_t stream) override {
    begin(request);
    Channel &channel = channelOf(rank(), request.root);
    const std::size_t bytes = request.total * sizeInBytes(request.type);
    SentMessage &message = messageFor(channel, bytes);
    if (message.wasRead)
      if (cudaError_t status = cudaStreamWaitEvent(stream, message.read, 0))
        return asNccl(status);
    if (ncclResult_t status = copy(source, message.data, bytes, stream))
      return status;
    if (cudaError_t status = cudaEventRecord(message.ready, stream))
      return asNccl(status);
    message.request = request;
    {
      std::lock_guard<std::mutex> lock(channel.mutex);
      channel.sent.push_back(&message);
    }
    channel.posted.advance();
    peer_.hostFlight()->end(kept_);
    return ncclSuccess;
  }

  ncclResult_t receive(void *target, const CollectiveRequest &request,
                       cudaStream_t stream) override {
    HeldReceives &held = peer_.heldReceives();
    if (!held.mustHold(stream) && channelOf(request.root, rank()).posted.value() >= request.message)
      return take(target, request, stream);
    held.hold(stream, [this, target, request, stream] {
      FSDP_CHECK(peer_, take(target, request, stream));
    });
    return ncclSuccess;
  }

  ncclResult_t skipTransfer(cudaStream_t) override { return ncclSuccess; }

  cudaError_t staging(std::size_t bytes, cudaStream_t, void *&block) override {
    return workspace_.reserve(bytes, block);
  }

private:
  /// Enqueues a receive, after the host of the sender has enqueued its send.
  ncclResult_t take(void *target, const CollectiveRequest &request, cudaStream_t stream) {
    const int peer = request.root;
    begin(request);
    Channel &channel = channelOf(peer, rank());
    awaitPeer(channel.posted, request.message, request);
    SentMessage *message = nullptr;
    {
      std::lock_guard<std::mutex> lock(channel.mutex);
      message = channel.sent.front();
      channel.sent.pop_front();
    }
    if (!(message->request == request.counterpart(rank())))
      mismatch(request, peer, message->request);
    if (cudaError_t status = cudaStreamWaitEvent(stream, message->ready, 0))
      return asNccl(status);
    if (ncclResult_t status =
            copy(message->data, target, request.total * sizeInBytes(request.type), stream))
      return status;
    if (cudaError_t status = cudaEventRecord(message->read, stream))
      return asNccl(status);
    {
      std::lock_guard<std::mutex> lock(channel.mutex);
      channel.taken.push_back(message);
    }
    peer_.hostFlight()->end(kept_);
    return ncclSuccess;
  }
  /// Memory for a message: that of the first one that was taken and has room, or of a new one.
  SentMessage &messageFor(Channel &channel, std::size_t bytes) {
    SentMessage *created = nullptr;
    {
      std::lock_guard<std::mutex> lock(channel.mutex);
      const auto free =
          std::find_if(channel.taken.begin(), channel.taken.end(),
                       [&](SentMessage *message) { return message->memory.bytes() >= bytes; });
      if (free != channel.taken.end()) {
        SentMessage &message = **free;
        channel.taken.erase(free);
        message.wasRead = true;
        return message;
      }
      created = &channel.messages.emplace_back();
    }
    SentMessage &message = *created;
    FSDP_CHECK(peer_, cudaEventCreateWithFlags(&message.ready, cudaEventDisableTiming));
    FSDP_CHECK(peer_, cudaEventCreateWithFlags(&message.read, cudaEventDisableTiming));
    if (bytes)
      FSDP_CHECK(peer_, message.memory.reserve(bytes, message.data));
    return message;
  }
  Channel &channelOf(int sender, int receiver) const {
    return barrier_.channels[sender * size() + receiver];
  }
  /// Numbers and records a collective.
  void begin(const CollectiveRequest &request) {
    kept_ =
        peer_.hostFlight()->begin(FlightAction::Collective, "", name_, ++collectives_, &request);
  }
  [[noreturn]] void mismatch(const CollectiveRequest &mine, int peer,
                             const CollectiveRequest &theirs) const {
    throw Error(format("collectives over '%s' do not match: rank %d of the group called '%s', "
                       "rank %d called '%s'",
                       name_, rank(), mine.describe().c_str(), peer, theirs.describe().c_str()))
        .at(peer_.rank(), peer_.action())
        .byAll();
  }

  PublishedBuffer &publishedBy(int rank) const {
    return barrier_.published[static_cast<std::size_t>(rank)];
  }

  static ncclResult_t copy(const void *from, void *to, std::size_t bytes, cudaStream_t stream) {
    if (from == to || !bytes)
      return ncclSuccess;
    return asNccl(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
  }
  RankSources sourcesAt(std::size_t bytes) const {
    RankSources sources{};
    sources.count = size();
    for (int peer = 0; peer < size(); ++peer)
      sources.address[peer] = behind(publishedBy(peer).source, bytes);
    return sources;
  }

  /// The request of a call with NCCL's arguments; false: they are not supported.
  bool makeRequest(CollectiveKind kind, ncclDataType_t type, ncclRedOp_t op, int root,
                   std::size_t count, CollectiveRequest &request) const {
    DType dtype;
    if (!typeOf(type, dtype) || (op != ncclMax && op != ncclSum))
      return false;
    const bool isWhole = kind == CollectiveKind::AllReduce || kind == CollectiveKind::Broadcast;
    const std::size_t total = isWhole ? count : count * static_cast<std::size_t>(size());
    request = CollectiveRequest::of(kind, ShardLayout{1, count, 1, total}, count, dtype);
    request.op = op == ncclMax ? ReduceOp::Max : ReduceOp::Sum;
    request.root = static_cast<std::uint16_t>(root);
    return true;
  }
  ncclResult_t move(CollectiveKind kind, const void *source, void *target, std::size_t count,
                    ncclDataType_t type, int root, cudaStream_t stream) {
    CollectiveRequest request;
    if (!makeRequest(kind, type, ncclSum, root, count, request))
      return ncclInvalidArgument;
    return exchange(TransferRuns(request, size()), source, target, type, stream);
  }

  /// Publishes this rank's operation, and makes its stream wait for the data of all ranks.
  ncclResult_t open(const CollectiveRequest &request, const void *source, cudaStream_t stream) {
    begin(request);
    PublishedBuffer &mine = publishedBy(rank());
    if (cudaError_t status = cudaEventRecord(mine.ready, stream))
      return asNccl(status);
    mine.request = request;
    mine.source = source;
    awaitAll(request);
    for (int peer = 0; peer < size(); ++peer) {
      const PublishedBuffer &theirs = publishedBy(peer);
      if (!(theirs.request == request))
        mismatch(request, peer, theirs.request);
      if (peer != rank())
        if (cudaError_t status = cudaStreamWaitEvent(stream, theirs.ready, 0))
          return asNccl(status);
    }
    return ncclSuccess;
  }

  /// Makes this rank's stream wait until all ranks have read its data.
  ncclResult_t close(cudaStream_t stream) {
    const CollectiveRequest request = publishedBy(rank()).request;
    if (cudaError_t status = cudaEventRecord(publishedBy(rank()).read, stream))
      return asNccl(status);
    awaitAll(request);
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank())
        if (cudaError_t status = cudaStreamWaitEvent(stream, publishedBy(peer).read, 0))
          return asNccl(status);
    peer_.hostFlight()->end(kept_);
    return ncclSuccess;
  }

  void awaitAll(const CollectiveRequest &request) {
    if (size() == 1)
      return;
    __atomic_store_n(&publishedBy(rank()).arrivals, ++arrivals_, __ATOMIC_RELAXED);
    barrier_.arrived.advance();
    const std::uint64_t all = arrivals_ * static_cast<std::uint64_t>(size());
    await(barrier_.arrived, all, request, [&] {
      std::string late;
      for (int peer = 0; peer < size(); ++peer)
        if (__atomic_load_n(&publishedBy(peer).arrivals, __ATOMIC_RELAXED) < arrivals_)
          late += (late.empty() ? "" : ", ") + std::to_string(group_[std::size_t(peer)]);
      return late;
    });
  }

  void awaitPeer(WaitCounter &counter, std::uint64_t target, const CollectiveRequest &request) {
    await(counter, target, request, [&] { return std::to_string(group_[request.root]); });
  }

  /// `late` lists the ranks that have not arrived, for the error after the timeout.
  template <class Late>
  void await(WaitCounter &counter, std::uint64_t target, const CollectiveRequest &request,
             Late late) {
    const double timeout = peer_.timeoutSeconds(), start = now();
    while (!counter.waitFor(target, kPollInterval)) {
      peer_.failure().check();
      if (now() - start < timeout)
        continue;
      throw Error(
          format("timed out after %g s in '%s', collective %lld over '%s', waiting for rank %s; "
                 "--timeout sets the timeout in seconds",
                 timeout, request.describe().c_str(), static_cast<long long>(collectives_), name_,
                 late().c_str()))
          .at(peer_.rank(), peer_.action())
          .byAll();
    }
  }

  DevicePeer &peer_;
  const char *name_;
  std::vector<int> group_;
  Barrier &barrier_;
  std::uint64_t arrivals_ = 0, kept_ = 0;
  std::int64_t collectives_ = 0;
  StreamWorkspace workspace_, sums_;
};

//===----------------------------------------------------------------------===//
// All communicators of one rank
//===----------------------------------------------------------------------===//

LoopbackCollectives::LoopbackCollectives(DevicePeer &peer) : peer_(peer) {
  const Mesh &mesh = peer.mesh();
  if (mesh.size() > RankSources::kMax)
    throw Error(format("--communicator=loopback got %d ranks, expected at most %d on one device",
                       mesh.size(), RankSources::kMax));
  const auto communicators = peer.communicators();
  members_.resize(communicators.size());
  // The first rank of the mesh creates the barriers, and sends their address to the others.
  auto hub = std::make_shared<Hub>();
  if (peer.world().rank() == 0)
    for (std::size_t index = 0; index < communicators.size(); ++index)
      for (int rank = 0; rank < mesh.size(); ++rank) {
        const std::vector<int> group = mesh.ranksOf(communicators[index], rank);
        Barrier &barrier = (*hub)[keyOf(static_cast<int>(index), group)];
        if (!barrier.published.empty())
          continue;
        barrier.published.resize(group.size());
        barrier.channels = std::make_unique<Channel[]>(group.size() * group.size());
      }
  std::shared_ptr<Hub> *address = &hub;
  peer.world().broadcast(&address, sizeof address, 0);
  hub_ = *address;
  peer.world().barrier(); // until then the first rank's variable is read
}

std::pair<int, int> LoopbackCollectives::keyOf(int communicator,
                                               const std::vector<int> &group) const {
  const CommunicatorSpec &spec = peer_.communicators()[static_cast<std::size_t>(communicator)];
  const bool receives = spec.isTransfer() && !spec.sends && group.size() == 2;
  return {receives ? counterpartOf(peer_.communicators(), communicator) : communicator,
          group.front()};
}

LoopbackCollectives::~LoopbackCollectives() {
  if (arena_ && !peer_.failure().raised())
    cudaFree(arena_);
}

std::byte *LoopbackCollectives::allocateArena(std::size_t bytes) {
  FSDP_CHECK(peer_, cudaMalloc(&arena_, bytes));
  return static_cast<std::byte *>(arena_);
}

CollectiveBackend &LoopbackCollectives::communicator(int index) {
  auto &member = members_[static_cast<std::size_t>(index)];
  if (!member) {
    const CommunicatorSpec &spec = peer_.communicators()[index];
    const std::vector<int> group = peer_.mesh().ranksOf(spec, peer_.rank());
    member = std::make_unique<Member>(peer_, spec.name, group, peer_.rankIn(index),
                                      hub_->at(keyOf(index, group)));
  }
  return *member;
}

std::size_t LoopbackCollectives::workspaceBytes() const {
  std::size_t bytes = 0;
  for (const auto &member : members_)
    bytes += member ? member->workspaceBytes() : 0;
  return bytes;
}

} // namespace fsdp::rt
