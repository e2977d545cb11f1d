#include "runtime/train/CheckpointLayout.h"

#include "base/Error.h"
#include "base/Safetensors.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/program/Roles.h"
#include "runtime/program/Shard.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr const char *kEnding = ".safetensors";

} // namespace

CheckpointLayout::CheckpointLayout(const Program &program) : program(program) {
  // File by file, the tensors in the order of the model.
  using Member = std::pair<std::size_t, std::size_t>; // shard, member
  std::map<std::string, std::vector<Member>> members;
  const auto add = [&](const Storage &storage, const Buffer &buffer, const std::string &file) {
    if (buffer.dtype != DType::F32)
      throw Error(format("cannot save '%s': got elements of type %s, expected f32", storage.name,
                         nameOf(buffer.dtype)));
    for (std::size_t m = 0; m < storage.members.size(); ++m)
      members[file].push_back({shards.size(), m});
    shards.push_back({&storage, buffer, 0, std::vector<std::size_t>(storage.members.size())});
  };
  // The empty name sorts first: the model.
  for (const Storage &storage : program.storages) {
    if (storage.shard.isPlaced()) {
      add(storage, storage.shard, "");
    } else {
      replicated.push_back(storage.asReplicated());
      add(replicated.back(), storage.copy, "");
    }
    for (const State &state : storage.states)
      add(storage, state.shard, state.name);
  }
  const auto parameterOf = [&](const Member &member) -> const Parameter & {
    return shards[member.first].storage->members[member.second];
  };
  for (auto &[name, group] : members) {
    std::sort(group.begin(), group.end(), [&](const Member &a, const Member &b) {
      return std::pair(parameterOf(a).position, a) < std::pair(parameterOf(b).position, b);
    });
    CheckpointFile file;
    file.name = (name.empty() ? "model" : name) + kEnding;
    std::vector<TensorDeclaration> declared;
    for (const Member &member : group) {
      const Parameter &parameter = parameterOf(member);
      shards[member.first].file = list.size();
      shards[member.first].tensors[member.second] = declared.size();
      declared.push_back(
          {parameter.name, {parameter.fileShape.begin(), parameter.fileShape.end()}});
    }
    file.header = safetensorsHeader(declared);
    file.bytes = file.header.size();
    for (const Member &member : group) {
      const Parameter &parameter = parameterOf(member);
      const auto count = static_cast<std::size_t>(elements(parameter.fileShape));
      file.tensors.push_back({parameter.name,
                              {parameter.fileShape.begin(), parameter.fileShape.end()},
                              count,
                              file.bytes});
      file.bytes += count * sizeof(float);
    }
    list.push_back(std::move(file));
  }
}

std::vector<ShardShare> CheckpointLayout::sharesOf(const std::vector<int> &coordinates) const {
  std::vector<ShardShare> shares;
  const RankPosition position{program.axes, coordinates};
  for (const Shard &shard : shards) {
    const Storage &storage = *shard.storage;
    const std::optional<Replica> replica = replicaAt(program, storage, position);
    if (!replica)
      continue;
    // Parts begin about at pages of the file.
    constexpr std::size_t kGrain = 1024;
    const std::size_t count = shard.buffer.count;
    const std::size_t part =
        ((count + replica->count - 1) / replica->count + kGrain - 1) / kGrain * kGrain;
    ShardShare share{&storage,
                     shard.buffer,
                     std::min(replica->index * part, count),
                     std::min((replica->index + 1) * part, count),
                     {}};
    for (const Run &run : shardRuns(storage, position)) {
      const std::size_t begin = std::max(run.inShard, share.begin),
                        end = std::min(run.inShard + run.count, share.end);
      if (begin < end)
        share.pieces.push_back({shard.file, shard.tensors[run.member], begin,
                                run.inParameter + (begin - run.inShard), end - begin});
    }
    if (!share.pieces.empty())
      shares.push_back(std::move(share));
  }
  return shares;
}

std::string CheckpointLayout::fingerprint() const {
  std::uint64_t digest = 0;
  for (const CheckpointFile &file : list)
    digest = contentDigest(file.header, contentDigest(file.name, digest));
  return digestText(digest);
}

std::uint64_t checksum(const float *values, std::size_t first, std::size_t count) {
  // Bijective in the bits at a given index, so that one changed element is always seen; the
  // finalizer (two rounds of xor-shift and multiplication) is that of SplitMix64.
  std::uint64_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, reinterpret_cast<const char *>(values) + i * sizeof(float), sizeof bits);
    std::uint64_t x = (first + i + 1) * 0x9E3779B97F4A7C15u + bits;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    sum += x ^ (x >> 31);
  }
  return sum;
}

} // namespace fsdp::rt
