//===- IndexShard.cpp -----------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/IndexRange.h"

namespace fsdp::rt::kernels {

template <typename Id> void shardIndices(IndexShard shard, const Id *indices, Id *own) {
  const std::int64_t first = shard.first();
  for (std::size_t i = 0; i < shard.count; ++i) {
    const std::int64_t index = indices[i], here = index - first;
    if (index < 0 || index >= shard.size)
      throw indexOutOfRange(i, index, static_cast<std::uint64_t>(shard.size));
    own[i] = here >= 0 && here < shard.part ? static_cast<Id>(here) : Id(-1);
  }
}

template void shardIndices(IndexShard, const std::int32_t *, std::int32_t *);
template void shardIndices(IndexShard, const std::int64_t *, std::int64_t *);

void shardSize(IndexShard shard, std::int64_t *count) { *count = shard.held(); }
void shardOffset(IndexShard shard, std::int64_t *offset) { *offset = shard.first(); }

} // namespace fsdp::rt::kernels
