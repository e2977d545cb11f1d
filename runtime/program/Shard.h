//===- Shard.h - which elements of which parameter a rank holds -*- C++ -*-===//

#ifndef FSDP_RUNTIME_PROGRAM_SHARD_H
#define FSDP_RUNTIME_PROGRAM_SHARD_H

#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fsdp::rt {

/// Consecutive elements of a parameter, or of a rank's part of it, that are consecutive in a
/// shard.
struct Run {
  std::size_t member;      ///< index into `Storage::members`
  std::size_t inShard;     ///< first element within the shard
  std::size_t inParameter; ///< first element within the parameter, or the part
  std::size_t count;
};

/// The elements of the storage that coordinate `coordinate` along its axes holds, in shard order:
/// elements of the parts that a rank computes with. Elements of the shard outside of every run are
/// padding.
std::vector<Run> partRuns(const Storage &storage, int coordinate);

/// The elements of the whole parameters that the rank there holds, in shard order.
std::vector<Run> shardRuns(const Storage &storage, const RankPosition &position);

/// Writes the first value of every element of the shard; padding becomes zero.
/// The result does not depend on how many pieces there are.
void initializeShard(const Storage &storage, const RankPosition &position, std::uint64_t seed,
                     float *shard);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_SHARD_H
