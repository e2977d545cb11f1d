//===- Shard.cpp ----------------------------------------------------------===//

#include "runtime/program/Shard.h"

#include "runtime/numerics/Random.h"

#include <algorithm>

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

namespace {

/// values[i] = mean + deviation * the normal of index `first` + i.
void fillNormals(const Random &random, std::uint64_t first, std::size_t count, double mean,
                 double deviation, float *values) {
  constexpr std::size_t block = 4 * Random::kLanes;
  const auto center = static_cast<float>(mean), factor = static_cast<float>(deviation);
  float normals[block];
  while (count > 0) {
    const std::size_t skip = first % 4, now = std::min(count, block - skip);
    random.normals(first / 4, normals);
#pragma omp simd
    for (std::size_t i = 0; i < now; ++i)
      values[i] = center + factor * normals[skip + i];
    first += now, count -= now, values += now;
  }
}

void fillRun(const Initializer &init, const Random &random, const Run &run, float *values) {
  switch (init.kind) {
  case Initializer::Constant:
    std::fill_n(values, run.count, static_cast<float>(init.a));
    return;
  case Initializer::Uniform:
    for (std::size_t i = 0; i < run.count; ++i)
      values[i] =
          static_cast<float>(init.a + (init.b - init.a) * random.uniform(run.inParameter + i));
    return;
  case Initializer::Normal:
    fillNormals(random, run.inParameter, run.count, init.a, init.b, values);
  }
}

} // namespace

void initializeShard(const Storage &storage, int coordinate, std::uint64_t seed, float *shard) {
  // What no run covers is padding; the runs stand in the order of the shard.
  std::size_t done = 0;
  for (const Run &run : shardRuns(storage, coordinate)) {
    const Parameter &parameter = storage.members[run.member];
    std::fill(shard + done, shard + run.inShard, 0.0f);
    fillRun(parameter.init, Random(seed, hashName(parameter.name)), run, shard + run.inShard);
    done = run.inShard + run.count;
  }
  std::fill(shard + done, shard + storage.shard.count, 0.0f);
}

} // namespace fsdp::rt
