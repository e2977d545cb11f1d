//===- IndexShard.cu - indices into a dimension that ranks share ----------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/ReportBoundsError.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;

/// Indices outside the dimension become `part`, which no rank has: it is not a row or class there
/// either.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    renumber(IndexShard shard, const Id *indices, Id *own, BoundsError *fault) {
  const std::int64_t first = shard.index * shard.part;
  for (std::size_t i = blockIdx.x * std::size_t(kThreads) + threadIdx.x; i < shard.count;
       i += std::size_t(gridDim.x) * kThreads) {
    const std::int64_t index = indices[i], here = index - first;
    if (index < 0 || index >= shard.size) {
      reportBoundsError(fault, BoundsError::Index, i, index,
                        static_cast<std::uint64_t>(shard.size));
      own[i] = static_cast<Id>(shard.part);
    } else {
      own[i] = here >= 0 && here < shard.part ? static_cast<Id>(here) : Id(-1);
    }
  }
}

__global__ void writeNumber(std::int64_t number, std::int64_t *to) { *to = number; }

template <class Id>
cudaError_t shardIndices(IndexShard shard, const Id *indices, Id *own, WorkStream stream) {
  return launchKernel(renumber<Id>, dim3(stridingBlocks(shard.count, kThreads)), kThreads, 0,
                      stream, shard, indices, own, stream.fault());
}

} // namespace

cudaError_t shard_indices(IndexShard shard, const std::int32_t *indices, std::int32_t *own,
                          WorkStream stream) {
  return shardIndices(shard, indices, own, stream);
}

cudaError_t shard_indices(IndexShard shard, const std::int64_t *indices, std::int64_t *own,
                          WorkStream stream) {
  return shardIndices(shard, indices, own, stream);
}

cudaError_t shard_size(IndexShard shard, std::int64_t *count, cudaStream_t stream) {
  return launchKernel(writeNumber, dim3(1), 1, 0, stream, shard.held(), count);
}

cudaError_t shard_offset(IndexShard shard, std::int64_t *offset, cudaStream_t stream) {
  return launchKernel(writeNumber, dim3(1), 1, 0, stream, shard.first(), offset);
}

} // namespace fsdp::rt
