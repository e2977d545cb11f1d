//===- Comm.h - a communicator as a stream of the device uses it ------------===//
//
// Its collectives go through NCCL, or through Loopback (N ranks as threads on one device).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_COMM_H
#define FSDP_RUNTIME_COMM_CUDA_COMM_H

#include "runtime/comm/TransferRuns.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/program/CollectiveGroup.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <array>
#include <functional>
#include <vector>

namespace fsdp::rt {

/// The transport of one communicator's collectives: enqueues on `stream` and returns. Every rank of
/// the group issues the same collectives in the same order. Counts are elements.
class CollectiveBackend {
public:
  virtual ~CollectiveBackend() = default;
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Piece of `count` elements of every rank, in rank order, into `whole`; in place when `piece` is
  /// its own part of `whole`.
  virtual ncclResult_t allGather(const void *piece, void *whole, std::size_t count,
                                 ncclDataType_t type, cudaStream_t stream) = 0;
  /// Combined `whole`s; this rank keeps the `count` elements of its own part. In place as above.
  virtual ncclResult_t reduceScatter(const void *whole, void *piece, std::size_t count,
                                     ncclDataType_t type, ncclRedOp_t op, cudaStream_t stream) = 0;
  /// `source` may be `target`.
  virtual ncclResult_t allReduce(const void *source, void *target, std::size_t count,
                                 ncclDataType_t type, ncclRedOp_t op, cudaStream_t stream) = 0;
  virtual ncclResult_t broadcast(const void *source, void *target, std::size_t count,
                                 ncclDataType_t type, int root, cudaStream_t stream) = 0;
  /// The runs of `moves`, one piece between two ranks, as grouped sends and receives. Not in place;
  /// gaps of the target do not change.
  virtual ncclResult_t exchange(const TransferRuns &moves, const void *source, void *target,
                                ncclDataType_t type, cudaStream_t stream) = 0;
  /// Performs `calls`, which call allGather or reduceScatter of this object on `stream`, as one
  /// operation of the stream.
  virtual ncclResult_t group(bool gathers, cudaStream_t stream,
                             const std::function<ncclResult_t()> &calls) = 0;
  /// The transfer `request` of this rank with another one. Later work on the stream waits until
  /// `source` may be changed, or `target` is complete.
  virtual ncclResult_t send(const void *source, const CollectiveRequest &request,
                            cudaStream_t stream) = 0;
  virtual ncclResult_t receive(void *target, const CollectiveRequest &request,
                               cudaStream_t stream) = 0;
  /// Replaces a transfer without a peer: takes part in the setup that the whole group performs when
  /// it first uses the communicator.
  virtual ncclResult_t skipTransfer(cudaStream_t stream) = 0;
  /// The number, from 1, of the next message to or from group rank `peer`.
  std::uint64_t nextMessage(CollectiveKind kind, int peer) {
    std::vector<std::uint64_t> &messages = kind == CollectiveKind::Send ? sent_ : received_;
    messages.resize(static_cast<std::size_t>(size_));
    return ++messages[static_cast<std::size_t>(peer)];
  }
  /// Scratch memory of the device for the collective being enqueued, aligned to 256 bytes: good
  /// until the next request. It grows to the largest request and stays.
  virtual cudaError_t staging(std::size_t bytes, cudaStream_t stream, void *&block) = 0;

protected:
  CollectiveBackend(int rank, int size) : rank_(rank), size_(size) {}

private:
  int rank_, size_;
  std::vector<std::uint64_t> sent_, received_; // messages, by peer
};

/// A handle, passed by value.
struct Comm {
  CollectiveBackend *backend = nullptr;

  int rank() const { return backend->rank(); }
  int size() const { return backend->size(); }
};

/// NCCL's name of an element type; bool moves as bytes.
constexpr ncclDataType_t ncclTypeOf(DType type) {
  switch (type) {
  case DType::F32:
    return ncclFloat32;
  case DType::F64:
    return ncclFloat64;
  case DType::I32:
    return ncclInt32;
  case DType::I64:
    return ncclInt64;
  case DType::BF16:
    return ncclBfloat16;
  case DType::Bool:
    return ncclUint8;
  }
  return ncclUint8;
}

/// Bytes of an element.
constexpr std::size_t bytesOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 4;
  }
}

/// Enqueues `request`, a collective with a source and a target; see Collectives.def. `sources`: of
/// a permutation. Uses NCCL's collective if the split dimension is outermost and split evenly;
/// otherwise the data for a rank is packed into one block and unpacked there, with zeros as
/// padding.
ncclResult_t perform(Comm comm, const CollectiveRequest &request, const int *sources,
                     const void *source, void *target, cudaStream_t stream);
/// Enqueues the `count` collectives of a group as one operation, after packing the data of those
/// that need it.
ncclResult_t performGroup(Comm comm, const GroupedCollective *members, std::size_t count,
                          cudaStream_t stream);
/// ncclSend and ncclRecv of `count` elements, to and from the rank `peer.offset` further in the
/// group. If there is no such rank, nothing is sent, and zeros are received. A separate call, not
/// in a group: the last rank of a chain only receives, so that all can continue.
ncclResult_t send(Comm comm, Peer peer, const void *source, std::size_t count, DType type,
                  cudaStream_t stream);
ncclResult_t receive(Comm comm, Peer peer, void *target, std::size_t count, DType type,
                     cudaStream_t stream);

// The function that launches perform (runtime/launches/Collectives.h).
template <class Request, class T>
ncclResult_t perform(Comm comm, CollectiveKind kind, const Request &request, std::size_t count,
                     const T *source, T *target, cudaStream_t stream) {
  return perform(comm, CollectiveRequest::of(kind, request, count, dtypeOf<T>), sourcesOf(request),
                 source, target, stream);
}
template <std::size_t N>
ncclResult_t performGroup(Comm comm, const std::array<GroupedCollective, N> &members,
                          cudaStream_t stream) {
  return performGroup(comm, members.data(), N, stream);
}
template <class T>
ncclResult_t send(Comm comm, Peer peer, std::size_t count, const T *source, cudaStream_t stream) {
  return send(comm, peer, source, count, dtypeOf<T>, stream);
}
template <class T>
ncclResult_t receive(Comm comm, Peer peer, std::size_t count, T *target, cudaStream_t stream) {
  return receive(comm, peer, target, count, dtypeOf<T>, stream);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_COMM_H
