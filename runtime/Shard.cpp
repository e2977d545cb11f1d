//===- Shard.cpp ----------------------------------------------------------===//

#include "runtime/Shard.h"

#include "runtime/Random.h"

#include <algorithm>
#include <array>

namespace fsdp::rt {

std::vector<Run> shardRuns(const Storage &storage, int coordinate) {
  std::vector<Run> runs;
  const auto piece = static_cast<std::size_t>(coordinate);

  if (storage.layout == Layout::Dimension) {
    const Shape &shape = storage.members[0].shape;
    std::size_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (static_cast<int>(i) != storage.dim)
        (static_cast<int>(i) < storage.dim ? outer : inner) *= static_cast<std::size_t>(shape[i]);
    const auto extent = static_cast<std::size_t>(shape[static_cast<std::size_t>(storage.dim)]);
    const std::size_t local = storage.shard.count / std::max<std::size_t>(outer * inner, 1);
    const std::size_t begin = std::min(piece * local, extent);
    const std::size_t count = (std::min(begin + local, extent) - begin) * inner;
    for (std::size_t o = 0; count > 0 && o < outer; ++o)
      runs.push_back({0, o * local * inner, (o * extent + begin) * inner, count});
    return runs;
  }

  const std::size_t local = storage.shard.count;
  const std::size_t begin = std::min(piece * local, storage.size);
  const std::size_t end = std::min(begin + local, storage.size);
  for (std::size_t m = 0; m < storage.members.size(); ++m) {
    const Parameter &parameter = storage.members[m];
    const auto size = static_cast<std::size_t>(elements(parameter.shape));
    const std::size_t first = std::max(begin, parameter.offset);
    const std::size_t last = std::min(end, parameter.offset + size);
    if (first < last)
      runs.push_back({m, first - begin, first - parameter.offset, last - first});
  }
  return runs;
}

void initializeShard(const Storage &storage, int coordinate, std::uint64_t seed, float *shard) {
  std::fill_n(shard, storage.shard.count, 0.0f);
  for (const Run &run : shardRuns(storage, coordinate)) {
    const Parameter &parameter = storage.members[run.member];
    const Initializer &init = parameter.init;
    const Random random(seed, hashName(parameter.name));
    float *values = shard + run.inShard;
    if (init.kind == Initializer::Constant) {
      std::fill_n(values, run.count, static_cast<float>(init.a));
      continue;
    }
    std::array<float, 4> group{};
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t index = run.inParameter + i;
      if (init.kind == Initializer::Uniform) {
        values[i] = static_cast<float>(init.a + (init.b - init.a) * random.uniform(index));
        continue;
      }
      if (i == 0 || index % 4 == 0)
        group = random.normals(index / 4);
      values[i] = static_cast<float>(init.a + init.b * group[index % 4]);
    }
  }
}

} // namespace fsdp::rt
