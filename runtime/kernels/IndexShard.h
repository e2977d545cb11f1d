//===- IndexShard.h - indices into a dimension that ranks share -*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_INDEXSHARD_H
#define FSDP_RUNTIME_KERNELS_INDEXSHARD_H

#include "runtime/program/KernelArguments.h"

#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// own[i] = indices[i] - index * part where that is 0 to part - 1, and -1 where another rank has
/// the element. Throws an Error that names place and value if indices[i] is not in [0, size).
template <typename Id> void shardIndices(IndexShard shard, const Id *indices, Id *own);
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_INDEXSHARD_H
