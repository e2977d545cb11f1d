#include "runtime/train/Weights.h"

#include "base/Error.h"
#include "runtime/program/Shard.h"
#include "runtime/train/CheckpointLayout.h"
#include "runtime/train/NamePattern.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// The members of `storage`, whole and one after another, on rank 0, to which the other ranks send
/// their shards. The other ranks get nothing.
std::vector<float> gatherMembers(const Storage &storage, const Program &program, Device &device) {
  const Storage held = storage.shard.isPlaced() ? storage : storage.asReplicated();
  const Mesh &mesh = device.job().mesh();
  const AxisList replicaAxes = axesOfReplicas(program, held);
  AxisList allAxes;
  for (int axis = 0; axis < mesh.dimensions(); ++axis)
    allAxes.axis[allAxes.count++] = axis;
  const auto positionOf = [&](int rank) {
    return RankPosition{program.axes, mesh.coordinates(rank)};
  };
  const bool isReceiver = device.rank() == 0;
  std::vector<std::size_t> starts; // of each member
  std::size_t size = 0;
  for (const Parameter &parameter : held.members) {
    starts.push_back(size);
    size += static_cast<std::size_t>(elements(parameter.shape));
  }
  std::vector<float> whole(isReceiver ? size : 0), received;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const RankPosition position = positionOf(rank);
    if (position.along(replicaAxes) != 0) // another rank has the same shard
      continue;
    if (rank == device.rank() && !isReceiver)
      device.world().send(device.read(held.shard), held.shard.count, DType::F32,
                          positionOf(0).along(allAxes));
    if (!isReceiver)
      continue;
    const float *shard = nullptr;
    if (rank == device.rank()) {
      shard = device.read(held.shard);
    } else {
      received.resize(held.shard.count);
      device.world().receive(received.data(), held.shard.count, DType::F32,
                             position.along(allAxes));
      shard = received.data();
    }
    for (const Run &run : shardRuns(held, position))
      std::copy_n(shard + run.inShard, run.count,
                  whole.data() + starts[run.member] + run.inParameter);
  }
  return whole;
}

} // namespace

void loadShard(const InitialWeights &weights, const Storage &storage, const RankPosition &position,
               std::uint64_t seed, float *shard) {
  std::vector<const FileTensor *> tensors;
  for (const Parameter &member : storage.members)
    tensors.push_back(weights.find(member.name));
  if (std::find(tensors.begin(), tensors.end(), nullptr) != tensors.end())
    initializeShard(storage, position, seed, shard);
  else
    std::fill_n(shard, storage.shard.count, 0.0f);
  for (const Run &run : shardRuns(storage, position))
    if (const FileTensor *tensor = tensors[run.member])
      tensor->readFloats(run.inParameter, run.count, shard + run.inShard);
}

void exportWeights(const OutputPath &path, const Program &program, Device &device,
                   const std::vector<std::string> &only) {
  const auto isWritten = [&](const Parameter &parameter) {
    return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string &pattern) {
             return matchesPattern(pattern, parameter.name);
           });
  };
  // Tensors are written in the order of the model, for any placement, so a storage stays in memory
  // from its first member to its last.
  struct Member {
    const Storage *storage;
    const Parameter *parameter;
  };
  std::multimap<int, Member> members;             ///< by position
  std::map<const Storage *, std::size_t> missing; ///< number of members that are not written yet
  for (const Storage &storage : program.storages) {
    for (const Parameter &parameter : storage.members)
      if (isWritten(parameter)) {
        members.emplace(parameter.position, Member{&storage, &parameter});
        ++missing[&storage];
      }
  }
  std::optional<SafetensorsWriter> writer;
  if (device.rank() == 0) {
    std::vector<TensorDeclaration> tensors;
    for (const auto &[position, member] : members) {
      const Shape &shape = member.parameter->fileShape;
      tensors.push_back({member.parameter->name, {shape.begin(), shape.end()}});
    }
    writer.emplace(path, tensors);
  }

  std::map<const Storage *, std::vector<float>> gathered;
  for (const auto &[position, member] : members) {
    const auto [storage, parameter] = member;
    auto [at, isFirst] = gathered.try_emplace(storage);
    std::vector<float> &whole = at->second;
    if (isFirst)
      whole = gatherMembers(*storage, program, device);
    if (writer) {
      const float *first = whole.data();
      for (const Parameter *before = storage->members.begin(); before != parameter; ++before)
        first += elements(before->shape);
      const auto count = static_cast<std::size_t>(elements(parameter->shape));
      if (const auto bad = std::count_if(first, first + count,
                                         [](float value) { return !std::isfinite(value); }))
        throw Error("cannot export to '" + path.name() + "': parameter '" + parameter->name +
                    "' has " + std::to_string(bad) + " value(s) that are not finite, of " +
                    std::to_string(count) + "; lower the learning rate or clip the gradients");
      writer->write(first, count);
    }
    if (--missing[storage] == 0)
      gathered.erase(at);
  }
  if (writer)
    writer->commit();
}

} // namespace fsdp::rt
