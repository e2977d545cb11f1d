#include "runtime/program/Shard.h"

#include "runtime/numerics/Random.h"

#include <algorithm>

namespace fsdp::rt {

std::vector<Run> partRuns(const Storage &storage, int coordinate) {
  std::vector<Run> runs;
  const auto piece = static_cast<std::size_t>(coordinate);

  if (storage.layout == Layout::Dimension) {
    const Parameter &parameter = storage.members[0];
    const auto dim = static_cast<std::size_t>(storage.dim);
    std::size_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < parameter.shape.size(); ++i)
      if (i != dim)
        (i < dim ? outer : inner) *= static_cast<std::size_t>(partExtent(parameter, i));
    const auto extent = static_cast<std::size_t>(partExtent(parameter, dim));
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
    const auto size = static_cast<std::size_t>(partElements(parameter));
    const std::size_t first = std::max(begin, parameter.offset);
    const std::size_t last = std::min(end, parameter.offset + size);
    if (first < last)
      runs.push_back({m, first - begin, first - parameter.offset, last - first});
  }
  return runs;
}

namespace {

/// Appends the elements of the whole parameter in `run`, a run of a part of `parameter`.
void appendWhole(const Parameter &parameter, const RankPosition &position, const Run &run,
                 std::vector<Run> &runs) {
  const std::size_t rank = parameter.shape.size();
  std::size_t extent[8], part[8], start[8];
  for (std::size_t d = 0; d < rank; ++d) {
    extent[d] = static_cast<std::size_t>(parameter.shape[d]);
    part[d] = static_cast<std::size_t>(partExtent(parameter, d));
    start[d] = 0;
  }
  for (const Split &split : parameter.splits) {
    const auto d = static_cast<std::size_t>(split.dim);
    start[d] = static_cast<std::size_t>(position.along(split.axes)) * part[d];
  }
  // Up to the last dimension that is split, elements that follow one another in the part do so in
  // the whole.
  const auto last = static_cast<std::size_t>(parameter.splits[parameter.splits.size() - 1].dim);
  std::size_t inner = 1;
  for (std::size_t d = last + 1; d < rank; ++d)
    inner *= extent[d];
  const std::size_t row = part[last] * inner;
  const std::size_t valid =
      start[last] < extent[last] ? std::min(part[last], extent[last] - start[last]) * inner : 0;
  for (std::size_t at = run.inParameter, end = run.inParameter + run.count; at < end;) {
    const std::size_t within = at % row, next = std::min(end, at - within + row);
    std::size_t outer = at / row, whole = 0, stride = extent[last] * inner;
    bool padding = false;
    for (std::size_t d = last; d-- > 0;) {
      const std::size_t index = outer % part[d] + start[d];
      outer /= part[d];
      padding |= index >= extent[d];
      whole += index * stride;
      stride *= extent[d];
    }
    if (!padding && within < valid)
      runs.push_back({run.member, run.inShard + (at - run.inParameter),
                      whole + start[last] * inner + within, std::min(next - at, valid - within)});
    at = next;
  }
}

} // namespace

std::vector<Run> shardRuns(const Storage &storage, const RankPosition &position) {
  std::vector<Run> parts = partRuns(storage, position.along(storage.axes));
  std::vector<Run> runs;
  for (const Run &run : parts)
    if (storage.members[run.member].splits.empty())
      runs.push_back(run);
    else
      appendWhole(storage.members[run.member], position, run, runs);
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

void initializeShard(const Storage &storage, const RankPosition &position, std::uint64_t seed,
                     float *shard) {
  // Elements outside all runs are padding; the runs are in the order of the shard.
  std::size_t done = 0;
  for (const Run &run : shardRuns(storage, position)) {
    const Parameter &parameter = storage.members[run.member];
    std::fill(shard + done, shard + run.inShard, 0.0f);
    fillRun(parameter.init, Random(seed, hashName(parameter.name)), run, shard + run.inShard);
    done = run.inShard + run.count;
  }
  std::fill(shard + done, shard + storage.shard.count, 0.0f);
}

} // namespace fsdp::rt
