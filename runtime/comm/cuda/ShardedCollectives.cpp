//===- ShardedCollectives.cpp - collectives over any tile -------------------===//

#include "runtime/comm/cuda/Comm.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

namespace {

using Kind = CollectiveKind;

// NCCL's status for a failure of CUDA; cudaGetLastError has the cause.
ncclResult_t asNccl(cudaError_t status) {
  return status == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

/// One collective of a rank: its request, and where it is performed.
struct Call {
  Comm comm;
  const CollectiveRequest &request;
  const void *source;
  void *target;
  cudaStream_t stream;

  CollectiveBackend &backend() const { return *comm.backend; }
  std::size_t ranks() const { return static_cast<std::size_t>(comm.size()); }
  std::size_t elementBytes() const { return sizeInBytes(request.type); }
  ncclDataType_t type() const { return ncclTypeOf(request.type); }
  ncclRedOp_t op() const { return request.op == ReduceOp::Max ? ncclMax : ncclSum; }

  /// True if NCCL's call implements the tile: outermost dimension, split evenly, without padding.
  bool isPlain(ShardLayout tile) const {
    return tile.outer == 1 && tile.local * ranks() == tile.total;
  }
  ncclResult_t clear(void *memory, std::size_t count) const {
    return count ? asNccl(cudaMemsetAsync(memory, 0, count * elementBytes(), stream)) : ncclSuccess;
  }
  /// Two blocks of scratch memory.
  ncclResult_t stage(std::size_t firstBytes, std::size_t secondBytes, void *&first,
                     void *&second) const {
    const std::size_t room = (firstBytes + 255) / 256 * 256;
    const ncclResult_t status = asNccl(backend().staging(room + secondBytes, stream, first));
    second = static_cast<std::byte *>(first) + room;
    return status;
  }
  /// The runs of `moves`, one piece between two ranks, after zeros where nothing arrives.
  ncclResult_t exchange(const TransferRuns &moves, const void *from, void *to) const {
    if (moves.hasGaps(comm.rank()))
      if (ncclResult_t status = clear(to, moves.targetCount()))
        return status;
    return backend().exchange(moves, from, to, type(), stream);
  }
};

/// An all-gather or a reduce-scatter: NCCL's call, with packed data before or after it where its
/// tile is not NCCL's.
class TiledCall {
public:
  explicit TiledCall(const Call &call)
      : call_(call), tile_(layoutOf(call.request)), plain_(call.isPlain(tile_)) {}

  /// Bytes of scratch memory.
  std::size_t scratchBytes() const {
    return plain_ ? 0 : call_.ranks() * tile_.pieceCount() * call_.elementBytes();
  }
  void setScratch(void *pieces) { pieces_ = pieces; }

  /// The data of every rank of a reduce-scatter as one piece, with zeros as padding: so has their
  /// combination.
  ncclResult_t pack() const {
    if (plain_ || gathers())
      return ncclSuccess;
    if (tile_.wholeCount() == 0)
      return call_.clear(call_.target, tile_.pieceCount());
    return asNccl(pack_pieces(tile_, call_.ranks(), call_.elementBytes(), call_.source, pieces_,
                              call_.stream));
  }
  ncclResult_t enqueue() const {
    if (!plain_ && tile_.wholeCount() == 0)
      return ncclSuccess;
    CollectiveBackend &backend = call_.backend();
    if (gathers())
      return backend.allGather(call_.source, plain_ ? call_.target : pieces_, tile_.pieceCount(),
                               call_.type(), call_.stream);
    return backend.reduceScatter(plain_ ? call_.source : pieces_, call_.target, tile_.pieceCount(),
                                 call_.type(), call_.op(), call_.stream);
  }
  ncclResult_t unpack() const {
    if (plain_ || !gathers() || tile_.wholeCount() == 0)
      return ncclSuccess;
    return asNccl(unpack_pieces(tile_, call_.ranks(), call_.elementBytes(), pieces_, call_.target,
                                call_.stream));
  }

private:
  bool gathers() const { return call_.request.kind == Kind::AllGather; }

  Call call_;
  ShardLayout tile_;
  bool plain_;
  void *pieces_ = nullptr;
};

/// `calls` on one communicator and stream, of one kind.
ncclResult_t performTiled(TiledCall *calls, std::size_t count, CollectiveBackend &backend,
                          bool gathers, cudaStream_t stream) {
  const auto roomOf = [](const TiledCall &call) { return (call.scratchBytes() + 255) / 256 * 256; };
  std::size_t room = 0;
  for (std::size_t i = 0; i < count; ++i)
    room += roomOf(calls[i]);
  void *scratch = nullptr;
  if (room)
    if (ncclResult_t status = asNccl(backend.staging(room, stream, scratch)))
      return status;
  for (std::size_t i = 0; i < count; ++i) {
    calls[i].setScratch(scratch);
    scratch = static_cast<std::byte *>(scratch) + roomOf(calls[i]);
    if (ncclResult_t status = calls[i].pack())
      return status;
  }
  const auto enqueue = [&] {
    ncclResult_t status = ncclSuccess;
    for (std::size_t i = 0; i < count && status == ncclSuccess; ++i)
      status = calls[i].enqueue();
    return status;
  };
  if (ncclResult_t status = count == 1 ? enqueue() : backend.group(gathers, stream, enqueue))
    return status;
  for (std::size_t i = 0; i < count; ++i)
    if (ncclResult_t status = calls[i].unpack())
      return status;
  return ncclSuccess;
}

ncclResult_t allToAll(const Call &call) {
  const AllToAllLayout layout = exchangeOf(call.request);
  const std::size_t ranks = call.ranks(), element = call.elementBytes(), pair = layout.pairCount(),
                    bytes = ranks * pair * element;
  if (bytes == 0)
    return call.clear(call.target, layout.targetCount());
  const ShardLayout split = layout.split(), concat = layout.concat();
  const bool packs = !call.isPlain(split), unpacks = !call.isPlain(concat);
  void *packed = nullptr, *received = nullptr;
  if (packs || unpacks)
    if (ncclResult_t status = call.stage(packs ? bytes : 0, unpacks ? bytes : 0, packed, received))
      return status;
  if (packs)
    if (ncclResult_t status =
            asNccl(pack_pieces(split, ranks, element, call.source, packed, call.stream)))
      return status;
  const auto request = CollectiveRequest::of(
      Kind::AllToAll, AllToAllLayout{1, 1, pair, 1, ranks, 1, ranks, true}, 0, call.request.type);
  if (ncclResult_t status = call.backend().exchange(
          TransferRuns(request, call.comm.size()), packs ? packed : call.source,
          unpacks ? received : call.target, call.type(), call.stream))
    return status;
  return unpacks ? asNccl(unpack_pieces(concat, ranks, element, received, call.target, call.stream))
                 : ncclSuccess;
}

ncclResult_t repartition(const Call &call) {
  const std::size_t outer = call.request.outer, inner = call.request.inner,
                    given = call.request.local, received = call.request.total,
                    element = call.elementBytes(), row = outer * inner;
  if (received * row == 0)
    return ncclSuccess;
  const auto request = CollectiveRequest::of(
      Kind::Repartition, RepartitionLayout{1, given, row, received}, 0, call.request.type);
  const TransferRuns moves(request, call.comm.size());
  if (outer == 1)
    return call.exchange(moves, call.source, call.target);
  // The split dimension outermost: the data for a rank is then one piece.
  void *packed = nullptr, *arrived = nullptr;
  if (ncclResult_t status =
          call.stage(given * row * element, received * row * element, packed, arrived))
    return status;
  if (given * row)
    if (cudaError_t status =
            pack_pieces({outer, 1, inner, given}, given, element, call.source, packed, call.stream))
      return asNccl(status);
  if (ncclResult_t status = call.exchange(moves, packed, arrived))
    return status;
  return asNccl(unpack_pieces({outer, 1, inner, received}, received, element, arrived, call.target,
                              call.stream));
}

/// The peer of a transfer, or -1 if the group has none.
int rankOf(Comm comm, Peer peer) {
  const int rank = comm.rank() + peer.offset;
  return rank < comm.size() ? rank : -1;
}

CollectiveRequest requestOf(Comm comm, Kind kind, std::size_t count, DType type, int peer) {
  return CollectiveRequest::transfer(kind, count, type, peer,
                                     comm.backend->nextMessage(kind, peer));
}

} // namespace

ncclResult_t perform(Comm comm, const CollectiveRequest &request, const int *sources,
                     const void *source, void *target, cudaStream_t stream) {
  const Call call = {comm, request, source, target, stream};
  CollectiveBackend &backend = *comm.backend;
  switch (request.kind) {
  case Kind::AllGather:
  case Kind::ReduceScatter: {
    TiledCall tiled(call);
    return performTiled(&tiled, 1, backend, request.kind == Kind::AllGather, stream);
  }
  case Kind::AllReduce:
    return backend.allReduce(source, target, request.total, call.type(), call.op(), stream);
  case Kind::Broadcast:
    return backend.broadcast(source, target, request.total, call.type(), request.root, stream);
  case Kind::AllToAll:
    return allToAll(call);
  case Kind::Repartition:
    return repartition(call);
  default: // one piece between two ranks
    return call.exchange(TransferRuns(request, comm.size(), sources), source, target);
  }
}

ncclResult_t performGroup(Comm comm, const GroupedCollective *members, std::size_t count,
                          cudaStream_t stream) {
  std::vector<TiledCall> calls;
  calls.reserve(count);
  for (const GroupedCollective *member = members; member != members + count; ++member)
    calls.emplace_back(Call{comm, member->request, member->source, member->target, stream});
  return performTiled(calls.data(), count, *comm.backend, members->request.kind == Kind::AllGather,
                      stream);
}

ncclResult_t send(Comm comm, Peer peer, const void *source, std::size_t count, DType type,
                  cudaStream_t stream) {
  const int rank = rankOf(comm, peer);
  if (rank < 0)
    return comm.backend->skipTransfer(stream);
  return comm.backend->send(source, requestOf(comm, Kind::Send, count, type, rank), stream);
}

ncclResult_t receive(Comm comm, Peer peer, void *target, std::size_t count, DType type,
                     cudaStream_t stream) {
  const int rank = rankOf(comm, peer);
  if (rank >= 0)
    return comm.backend->receive(target, requestOf(comm, Kind::Receive, count, type, rank), stream);
  if (count)
    if (cudaError_t status = cudaMemsetAsync(target, 0, count * sizeInBytes(type), stream))
      return asNccl(status);
  return comm.backend->skipTransfer(stream);
}

} // namespace fsdp::rt
