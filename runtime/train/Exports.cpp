#include "runtime/train/Exports.h"

#include "base/Error.h"
#include "base/NamePattern.h"
#include "base/PrintableText.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/program/Roles.h"
#include "runtime/program/Shard.h"
#include "runtime/train/ParameterNames.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// The members of `storage`, whole and one after another, on rank 0, to which the other ranks send
/// their shards. Empty on the other ranks.
std::vector<float> gatherMembers(const Storage &storage, const Program &program, Device &device) {
  const Storage held = storage.shard.isPlaced() ? storage : storage.asReplicated();
  const Mesh &mesh = device.job().mesh();
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
    const std::optional<Replica> replica = replicaAt(program, held, position);
    if (!replica || replica->index != 0) // it has no shard, or another rank has the same
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

/// A tensor of an exported file: a parameter, with its adapter added if there is one.
struct ExportedTensor {
  Member weight, down = {}, up = {};
  double scale = 0;
  bool isTransposed = false;
};

/// Adds scale * up * down to `weight`, all in their shapes in files: see Adapter. In double,
/// rounded once.
void addAdapter(const ExportedTensor &tensor, const float *down, const float *up, float *weight) {
  const auto rows = [](const Member &member, std::size_t dim) {
    return static_cast<std::size_t>(member.parameter->fileShape[dim]);
  };
  const std::size_t rank = rows(tensor.down, 0), in = rows(tensor.down, 1),
                    out = rows(tensor.up, 0);
  std::vector<double> row(in);
  for (std::size_t o = 0; o < out; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t r = 0; r < rank; ++r)
      for (std::size_t i = 0; i < in; ++i)
        row[i] += tensor.scale * up[o * rank + r] * down[r * in + i];
    for (std::size_t i = 0; i < in; ++i) {
      float &element = weight[tensor.isTransposed ? i * out + o : o * in + i];
      element = static_cast<float>(element + row[i]);
    }
  }
}

/// Writes the tensors; called by every rank.
class Exporter {
public:
  Exporter(const Program &program, Device &device) : program(program), device(device) {}

  void write(const OutputPath &path, const std::vector<ExportedTensor> &tensors) {
    std::optional<SafetensorsWriter> writer;
    std::vector<TensorDeclaration> declared;
    for (const ExportedTensor &tensor : tensors) {
      const Shape &shape = tensor.weight.parameter->fileShape;
      declared.push_back({tensor.weight.parameter->name, {shape.begin(), shape.end()}});
      for (const Member &member : {tensor.weight, tensor.down, tensor.up})
        if (member.storage)
          ++uses[member.storage];
    }
    if (device.rank() == 0)
      writer.emplace(path, declared);
    for (const ExportedTensor &tensor : tensors) {
      float *values = gather(tensor.weight);
      if (tensor.up.storage) {
        const float *down = gather(tensor.down), *up = gather(tensor.up);
        if (writer) // each weight is written once, so it may change in place
          addAdapter(tensor, down, up, values);
      }
      if (writer)
        append(*writer, path, *tensor.weight.parameter, values);
      for (const Member &member : {tensor.weight, tensor.down, tensor.up})
        if (member.storage && --uses[member.storage] == 0)
          gathered.erase(member.storage);
    }
    if (writer)
      writer->commit();
  }

private:
  /// The values of a parameter on rank 0; nothing of use on others. A storage stays in memory from
  /// its first use to its last.
  float *gather(const Member &member) {
    auto [at, isFirst] = gathered.try_emplace(member.storage);
    if (isFirst)
      at->second = gatherMembers(*member.storage, program, device);
    std::int64_t first = 0;
    for (const Parameter *before = member.storage->members.begin(); before != member.parameter;
         ++before)
      first += elements(before->shape);
    return device.rank() == 0 ? at->second.data() + first : nullptr;
  }

  static void append(SafetensorsWriter &writer, const OutputPath &path, const Parameter &parameter,
                     const float *values) {
    const auto count = static_cast<std::size_t>(elements(parameter.shape));
    if (const auto bad = std::count_if(values, values + count,
                                       [](float value) { return !std::isfinite(value); }))
      throw Error("cannot export to '" + path.name() + "': parameter '" + parameter.name +
                  "' has " + std::to_string(bad) + " value(s) that are not finite, of " +
                  std::to_string(count) + "; lower the learning rate or clip the gradients");
    writer.write(values, count);
  }

  const Program &program;
  Device &device;
  std::map<const Storage *, std::size_t> uses; ///< remaining
  std::map<const Storage *, std::vector<float>> gathered;
};

} // namespace

void exportWeights(const OutputPath &path, const Program &program, Device &device,
                   const std::vector<std::string> &only) {
  std::vector<ExportedTensor> tensors;
  for (const Member &member : membersOf(program))
    if (only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string &pattern) {
          return matchesPattern(pattern, member.parameter->name);
        }))
      tensors.push_back({member});
  Exporter(program, device).write(path, tensors);
}

void exportMerged(const OutputPath &path, const Program &program, Device &device) {
  const std::vector<std::string> adapters = adapterNames(program);
  std::map<std::string_view, Member> byName;
  std::vector<ExportedTensor> tensors;
  for (const Member &member : membersOf(program)) {
    byName[member.parameter->name] = member;
    if (std::find(adapters.begin(), adapters.end(), member.parameter->name) == adapters.end())
      tensors.push_back({member});
  }
  for (ExportedTensor &tensor : tensors)
    for (const Adapter &adapter : program.adapters.products)
      if (std::string_view(adapter.weight) == tensor.weight.parameter->name) {
        tensor.down = byName.at(adapter.down);
        tensor.up = byName.at(adapter.up);
        tensor.scale = adapter.scale;
        tensor.isTransposed = adapter.transposed;
      }
  Exporter(program, device).write(path, tensors);
}

void sayWrote(const Device &device, const OutputPath &path) {
  if (device.rank() != 0)
    return;
  std::printf("wrote '%s'\n", printable(path.name()).c_str());
  showOutput();
}

void writeExports(const RunOutputs &outputs, const Program &program, Device &device,
                  const BesideFiles &carried) {
  if (!outputs.exported.empty()) {
    exportWeights(outputs.exported, program, device, outputs.exportOnly);
    if (!outputs.exportFolder.empty() && device.rank() == 0)
      writeFiles(outputs.exportsAdapters ? BesideFiles(program.adapters.files)
                                         : filesBeside(program, carried),
                 outputs.exportFolder);
    sayWrote(device, outputs.exported);
  }
  if (!outputs.merged.empty()) {
    exportMerged(outputs.merged, program, device);
    if (!outputs.mergedFolder.empty() && device.rank() == 0)
      writeFiles(filesBeside(program, carried), outputs.mergedFolder);
    sayWrote(device, outputs.merged);
  }
}

} // namespace fsdp::rt
