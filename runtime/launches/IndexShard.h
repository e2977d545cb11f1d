//===- IndexShard.h - launches of kernels/IndexShard.h -------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_INDEXSHARD_H
#define FSDP_RUNTIME_LAUNCHES_INDEXSHARD_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/IndexShard.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Indices as this rank numbers its part.
template <typename Id>
void shard_indices(Context &c, int stream, const char *name, IndexShard shard,
                   ArenaSpan<Id> indices, ArenaSpan<Id> own) {
  launch(
      c, stream, name, reads(indices), writes(own),
      [shard](const Id *indices, Id *own) { kernels::shardIndices(shard, indices, own); },
      Work{"shard_indices"});
}

/// count = how many elements of the dimension this rank has.
inline void shard_size(Context &c, int stream, const char *name, std::int64_t size,
                       ArenaSpan<std::int64_t> count) {
  launch(
      c, stream, name, reads(), writes(count), [size](std::int64_t *count) { *count = size; },
      Work{"shard_size"});
}

/// offset = the first element of the dimension that this rank has.
inline void shard_offset(Context &c, int stream, const char *name, std::int64_t first,
                         ArenaSpan<std::int64_t> offset) {
  launch(
      c, stream, name, reads(), writes(offset), [first](std::int64_t *offset) { *offset = first; },
      Work{"shard_offset"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_INDEXSHARD_H
