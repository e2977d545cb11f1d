//===- ShardedCollectives.cpp - collectives over any tile -------------------===//

#include "runtime/comm/cuda/Comm.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

namespace {

// NCCL's name for a failure of CUDA's; what it was is found in cudaGetLastError.
ncclResult_t asNccl(cudaError_t status) {
  return status == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

} // namespace

ncclResult_t all_gather(ShardLayout tile, const void *piece, void *whole, DType type, Comm comm,
                        cudaStream_t stream) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  if (isPlain(tile, ranks))
    return ncclAllGather(piece, whole, tile.pieceCount(), ncclTypeOf(type), comm, stream);
  if (tile.wholeCount() == 0)
    return ncclSuccess;
  void *pieces = nullptr;
  const std::size_t bytes = ranks * tile.pieceCount() * sizeInBytes(type);
  if (ncclResult_t status = asNccl(comm.backend->staging(bytes, stream, pieces)))
    return status;
  if (ncclResult_t status =
          ncclAllGather(piece, pieces, tile.pieceCount(), ncclTypeOf(type), comm, stream))
    return status;
  return asNccl(unpack_pieces(tile, ranks, sizeInBytes(type), pieces, whole, stream));
}

ncclResult_t reduce_scatter(ShardLayout tile, const void *whole, void *piece, DType type, Comm comm,
                            cudaStream_t stream, ncclRedOp_t op) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  if (isPlain(tile, ranks))
    return ncclReduceScatter(whole, piece, tile.pieceCount(), ncclTypeOf(type), op, comm, stream);
  if (tile.wholeCount() == 0)
    return asNccl(cudaMemsetAsync(piece, 0, tile.pieceCount() * sizeInBytes(type), stream));
  void *pieces = nullptr;
  const std::size_t bytes = ranks * tile.pieceCount() * sizeInBytes(type);
  if (ncclResult_t status = asNccl(comm.backend->staging(bytes, stream, pieces)))
    return status;
  if (ncclResult_t status =
          asNccl(pack_pieces(tile, ranks, sizeInBytes(type), whole, pieces, stream)))
    return status;
  // Every rank has zeros in the padding, and so has their combination.
  return ncclReduceScatter(pieces, piece, tile.pieceCount(), ncclTypeOf(type), op, comm, stream);
}

namespace {

/// Two blocks of scratch memory.
ncclResult_t stage(Comm comm, cudaStream_t stream, std::size_t firstBytes, std::size_t secondBytes,
                   void *&first, void *&second) {
  const std::size_t room = (firstBytes + 255) / 256 * 256;
  const ncclResult_t status = asNccl(comm.backend->staging(room + secondBytes, stream, first));
  second = static_cast<std::byte *>(first) + room;
  return status;
}

} // namespace

ncclResult_t all_to_all(AllToAllLayout layout, const void *source, void *target, DType type,
                        Comm comm, cudaStream_t stream) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::size_t element = sizeInBytes(type), pair = layout.pairCount(),
                    bytes = ranks * pair * element;
  noteWork({"all_to_all"});
  if (layout.targetCount() == 0)
    return ncclSuccess;
  if (bytes == 0)
    return asNccl(cudaMemsetAsync(target, 0, layout.targetCount() * element, stream));
  const ShardLayout split = layout.split(), concat = layout.concat();
  const bool packs = !isPlain(split, ranks), unpacks = !isPlain(concat, ranks);
  void *packed = nullptr, *received = nullptr;
  if (packs || unpacks)
    if (ncclResult_t status =
            stage(comm, stream, packs ? bytes : 0, unpacks ? bytes : 0, packed, received))
      return status;
  if (packs)
    if (ncclResult_t status = asNccl(pack_pieces(split, ranks, element, source, packed, stream)))
      return status;
  const auto request = CollectiveRequest::allToAll({1, 1, pair, 1, ranks, 1, ranks, true}, type);
  if (ncclResult_t status =
          comm.backend->exchange(TransferRuns(request, comm.size()), packs ? packed : source,
                                 unpacks ? received : target, ncclTypeOf(type), stream))
    return status;
  return unpacks ? asNccl(unpack_pieces(concat, ranks, element, received, target, stream))
                 : ncclSuccess;
}

ncclResult_t all_to_all(RecutLayout layout, const void *source, void *target, DType type, Comm comm,
                        cudaStream_t stream) {
  const std::size_t element = sizeInBytes(type), row = layout.outer * layout.inner;
  const std::size_t sourceBytes = layout.given * row * element,
                    targetBytes = layout.received * row * element;
  noteWork({"all_to_all"});
  if (targetBytes == 0)
    return ncclSuccess;
  // The cut dimension outermost: what goes to a rank is then one piece.
  const bool packs = layout.outer != 1;
  void *packed = nullptr, *received = nullptr;
  if (packs) {
    if (ncclResult_t status = stage(comm, stream, sourceBytes, targetBytes, packed, received))
      return status;
    if (sourceBytes)
      if (cudaError_t status = pack_pieces({layout.outer, 1, layout.inner, layout.given},
                                           layout.given, element, source, packed, stream))
        return asNccl(status);
  }
  const auto request =
      CollectiveRequest::repartition({1, layout.given, row, layout.received}, type);
  const TransferRuns moves(request, comm.size());
  void *to = packs ? received : target;
  if (moves.hasGaps(comm.rank()))
    if (cudaError_t status = cudaMemsetAsync(to, 0, targetBytes, stream))
      return asNccl(status);
  if (ncclResult_t status =
          comm.backend->exchange(moves, packs ? packed : source, to, ncclTypeOf(type), stream))
    return status;
  return packs ? asNccl(unpack_pieces({layout.outer, 1, layout.inner, layout.received},
                                      layout.received, element, received, target, stream))
               : ncclSuccess;
}

ncclResult_t collective_permute(const int *sources, std::size_t count, const void *source,
                                void *target, DType type, Comm comm, cudaStream_t stream) {
  noteWork({"collective_permute"});
  const auto request = CollectiveRequest::permute(count, type, sources, comm.size());
  const TransferRuns moves(request, comm.size(), sources);
  if (moves.hasGaps(comm.rank()) && count)
    if (cudaError_t status = cudaMemsetAsync(target, 0, count * sizeInBytes(type), stream))
      return asNccl(status);
  return comm.backend->exchange(moves, source, target, ncclTypeOf(type), stream);
}

namespace {

/// Calls `transfer(request)` where the group has a rank `offset` further.
template <class Transfer>
ncclResult_t meetPeer(CollectiveKind kind, int offset, std::size_t count, DType type, Comm comm,
                      cudaStream_t stream, Transfer transfer) {
  const int peer = comm.rank() + offset;
  if (peer < 0 || peer >= comm.size())
    return comm.backend->skipTransfer(stream);
  return transfer(
      CollectiveRequest::transfer(kind, count, type, peer, comm.backend->nextMessage(kind, peer)));
}

} // namespace

ncclResult_t send(int offset, std::size_t count, const void *source, DType type, Comm comm,
                  cudaStream_t stream) {
  noteWork({"send"});
  return meetPeer(CollectiveKind::Send, offset, count, type, comm, stream,
                  [&](const auto &request) { return comm.backend->send(source, request, stream); });
}

ncclResult_t receive(int offset, std::size_t count, void *target, DType type, Comm comm,
                     cudaStream_t stream) {
  noteWork({"receive"});
  const int peer = comm.rank() + offset;
  if ((peer < 0 || peer >= comm.size()) && count)
    if (cudaError_t status = cudaMemsetAsync(target, 0, count * sizeInBytes(type), stream))
      return asNccl(status);
  return meetPeer(
      CollectiveKind::Receive, offset, count, type, comm, stream,
      [&](const auto &request) { return comm.backend->receive(target, request, stream); });
}

cudaError_t all_slice(ShardLayout tile, int index, const void *whole, void *piece, DType type,
                      cudaStream_t stream) {
  return slice_piece(tile, static_cast<std::size_t>(index), sizeInBytes(type), whole, piece,
                     stream);
}

} // namespace fsdp::rt
