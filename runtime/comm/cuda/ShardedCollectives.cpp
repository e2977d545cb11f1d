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

cudaError_t all_slice(ShardLayout tile, int index, const void *whole, void *piece, DType type,
                      cudaStream_t stream) {
  return slice_piece(tile, static_cast<std::size_t>(index), sizeInBytes(type), whole, piece,
                     stream);
}

} // namespace fsdp::rt
