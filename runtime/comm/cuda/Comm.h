//===- Comm.h - a communicator as a stream of the device uses it ------------===//
//
// The calls have NCCL's names, arguments and meaning, so that generated text reads as if it called
// NCCL; who answers them is NCCL itself or Loopback (N ranks as threads on one device).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_COMM_H
#define FSDP_RUNTIME_COMM_CUDA_COMM_H

#include "runtime/comm/TransferRuns.h"
#include "runtime/device/cuda/LaunchWork.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <vector>

namespace fsdp::rt {

/// What collectives of one communicator go through: enqueues on `stream` and returns. Every rank of
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
  /// What `moves` says, every element in one piece between two ranks, as grouped sends and
  /// receives. Not in place; gaps of the target are left alone.
  virtual ncclResult_t exchange(const TransferRuns &moves, const void *source, void *target,
                                ncclDataType_t type, cudaStream_t stream) = 0;
  /// The transfer `request`, of this rank with another one. What follows on the stream waits until
  /// `source` may be changed, or `target` is there.
  virtual ncclResult_t send(const void *source, const CollectiveRequest &request,
                            cudaStream_t stream) = 0;
  virtual ncclResult_t receive(void *target, const CollectiveRequest &request,
                               cudaStream_t stream) = 0;
  /// Instead of a transfer, where there is no other rank: takes part in what the whole group does
  /// when it uses the communicator for the first time.
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

inline ncclResult_t ncclAllGather(const void *piece, void *whole, std::size_t count,
                                  ncclDataType_t type, Comm comm, cudaStream_t stream) {
  noteWork({"all_gather"});
  return comm.backend->allGather(piece, whole, count, type, stream);
}
inline ncclResult_t ncclReduceScatter(const void *whole, void *piece, std::size_t count,
                                      ncclDataType_t type, ncclRedOp_t op, Comm comm,
                                      cudaStream_t stream) {
  noteWork({"reduce_scatter"});
  return comm.backend->reduceScatter(whole, piece, count, type, op, stream);
}
inline ncclResult_t ncclAllReduce(const void *source, void *target, std::size_t count,
                                  ncclDataType_t type, ncclRedOp_t op, Comm comm,
                                  cudaStream_t stream) {
  noteWork({"all_reduce"});
  return comm.backend->allReduce(source, target, count, type, op, stream);
}
inline ncclResult_t ncclBroadcast(const void *source, void *target, std::size_t count,
                                  ncclDataType_t type, int root, Comm comm, cudaStream_t stream) {
  noteWork({"broadcast"});
  return comm.backend->broadcast(source, target, count, type, root, stream);
}

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

/// Collectives over any tile: a dimension that is not outermost, or that is not cut evenly. Pieces
/// are packed into one block, sent by the call above, and unpacked; padding never reaches the whole
/// and is zero in the piece. A tile that needs none of this is the plain call.
ncclResult_t all_gather(ShardLayout tile, const void *piece, void *whole, DType type, Comm comm,
                        cudaStream_t stream);
ncclResult_t reduce_scatter(ShardLayout tile, const void *whole, void *piece, DType type, Comm comm,
                            cudaStream_t stream, ncclRedOp_t op = ncclSum);
template <class T>
ncclResult_t all_gather(ShardLayout tile, const T *piece, T *whole, Comm comm,
                        cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return all_gather(tile, piece, whole, dtypeOf<T>, comm, stream);
}
template <class T>
ncclResult_t reduce_scatter(ShardLayout tile, const T *whole, T *piece, Comm comm,
                            cudaStream_t stream, ncclRedOp_t op = ncclSum) {
  FSDP_NOTE_WORK();
  return reduce_scatter(tile, whole, piece, dtypeOf<T>, comm, stream, op);
}

/// The split of a value from one dimension to another, and parts of another size; see
/// Communicator::allToAll and repartition. What goes to a rank is packed into one piece where it is
/// not, and unpacked there; padding is zero.
ncclResult_t all_to_all(AllToAllLayout layout, const void *source, void *target, DType type,
                        Comm comm, cudaStream_t stream);
ncclResult_t all_to_all(RecutLayout layout, const void *source, void *target, DType type, Comm comm,
                        cudaStream_t stream);
template <class Layout, class T>
ncclResult_t all_to_all(Layout layout, const T *source, T *target, Comm comm, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return all_to_all(layout, source, target, dtypeOf<T>, comm, stream);
}

/// `count` elements of the rank that `sources` says for this one; see Communicator::permute.
ncclResult_t collective_permute(const int *sources, std::size_t count, const void *source,
                                void *target, DType type, Comm comm, cudaStream_t stream);
template <class T, int... From>
ncclResult_t collective_permute(SourceRanks<From...>, std::size_t count, const T *source, T *target,
                                Comm comm, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return collective_permute(SourceRanks<From...>::table, count, source, target, dtypeOf<T>, comm,
                            stream);
}

/// `count` elements to, and from, the rank `offset` further in the group: ncclSend and ncclRecv.
/// Where there is no such rank, nothing is sent, and zeros are received. A call by itself, not in a
/// group: of a chain of ranks the last one only receives, so that all go on.
ncclResult_t send(int offset, std::size_t count, const void *source, DType type, Comm comm,
                  cudaStream_t stream);
ncclResult_t receive(int offset, std::size_t count, void *target, DType type, Comm comm,
                     cudaStream_t stream);
template <class T>
ncclResult_t send(int offset, std::size_t count, const T *source, Comm comm, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return send(offset, count, source, dtypeOf<T>, comm, stream);
}
template <class T>
ncclResult_t receive(int offset, std::size_t count, T *target, Comm comm, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return receive(offset, count, target, dtypeOf<T>, comm, stream);
}

/// True where the plain NCCL calls mean what the tile says, on `ranks` ranks: outermost dimension,
/// cut evenly, without padding.
constexpr bool isPlain(ShardLayout tile, std::size_t ranks) {
  return tile.outer == 1 && tile.local * ranks == tile.total;
}

/// The part of `whole` that the rank of index `index` keeps, into `piece`, zeros in its padding;
/// meets nobody.
cudaError_t all_slice(ShardLayout tile, int index, const void *whole, void *piece, DType type,
                      cudaStream_t stream);
template <class T>
cudaError_t all_slice(ShardLayout tile, int index, const T *whole, T *piece, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return all_slice(tile, index, whole, piece, dtypeOf<T>, stream);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_COMM_H
