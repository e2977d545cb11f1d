#include "runtime/train/Weights.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/program/Shard.h"
#include "runtime/train/CheckpointLayout.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// Prefixes that wrappers of a model add to the names of its tensors.
constexpr std::string_view kWrappers[] = {"transformer.", "model."};
/// The ends of the names of constants that old files contain beside the parameters.
constexpr std::string_view kBuffers[] = {"attn.bias", "attn.masked_bias", "rotary_emb.inv_freq"};

/// The parameter's tensor, or nullptr.
const FileTensor *find(const WeightFiles &file, const Parameter &parameter) {
  if (const FileTensor *tensor = file.find(parameter.name))
    return tensor;
  if (parameter.alias)
    if (const FileTensor *tensor = file.find(parameter.alias))
      return tensor;
  const std::string_view name = parameter.name;
  for (std::string_view wrapper : kWrappers) {
    const bool wrapped = name.substr(0, wrapper.size()) == wrapper;
    const FileTensor *tensor = wrapped ? file.find(name.substr(wrapper.size()))
                                       : file.find(std::string(wrapper).append(name));
    if (tensor)
      return tensor;
  }
  return nullptr;
}

void check(const WeightFiles &file, const Parameter &parameter, const FileTensor &tensor) {
  const auto refuse = [&](const std::string &why) {
    throw Error("'" + file.path() + "': parameter '" + parameter.name + "': " + why);
  };
  if (!tensor.isFloat())
    refuse("got dtype " + tensor.dtype + ", expected F32, BF16, F16 or F64");
  const Shape &shape = parameter.fileShape;
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end()))
    refuse("got shape " +
           shapeText(tensor.shape.data(), tensor.shape.data() + tensor.shape.size()) +
           ", expected " + shapeText(shape.begin(), shape.end()));
  const std::size_t bad = tensor.firstNonfinite();
  if (bad != tensor.elements())
    refuse("got a value that is not finite at element " + std::to_string(bad) +
           ", expected finite numbers");
}

bool isBuffer(std::string_view name) {
  const auto endsName = [name](std::string_view end) {
    if (name.size() < end.size() || name.substr(name.size() - end.size()) != end)
      return false;
    return name.size() == end.size() || name[name.size() - end.size() - 1] == '.';
  };
  return std::any_of(std::begin(kBuffers), std::end(kBuffers), endsName);
}

/// Whether the tensor is a copy of one that a parameter uses: older files contain tied weights
/// twice.
bool isCopy(const FileTensor &tensor, const std::vector<const FileTensor *> &used) {
  return std::any_of(used.begin(), used.end(), [&](const FileTensor *other) {
    return tensor.dtype == other->dtype && tensor.shape == other->shape &&
           std::memcmp(tensor.data, other->data, tensor.bytes) == 0;
  });
}

/// Whether the weight of the model's head is that of its embedding, by its config.json.
bool tiesHead(const Program &program) {
  const Table<ConfigEntry> &entries = program.config.entries;
  return std::any_of(entries.begin(), entries.end(), [](const ConfigEntry &entry) {
    return std::string_view(entry.names) == "tie_word_embeddings" &&
           std::string_view(entry.value) == "true";
  });
}

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

std::string checkWeights(const WeightFiles &file, const Program &program) {
  std::vector<const FileTensor *> used;
  NameList missing, unused;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members)
      if (const FileTensor *tensor = find(file, parameter))
        used.push_back(tensor);
      else
        missing.add(parameter.name);
  for (const FileTensor *tensor : file.tensors())
    if (std::find(used.begin(), used.end(), tensor) == used.end() && !isBuffer(tensor->name) &&
        !isCopy(*tensor, used)) {
      if (tensor->name == "lm_head.weight" && tiesHead(program))
        throw Error("'" + file.path() +
                    "': 'lm_head.weight' is not the weight of the embedding, with which the head "
                    "of this model is tied; expected equal tensors, or a model with a head of its "
                    "own ('tie_word_embeddings' false)");
      unused.add(tensor->name);
    }
  if (missing.size() > 0)
    throw Error("'" + file.path() + "': got no tensor for " + std::to_string(missing.size()) +
                " parameter(s): " + missing.list() +
                "; expected one for every parameter of the model" +
                (unused.size() ? ", which does not use: " + unused.list() : ""));
  std::size_t next = 0;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members)
      check(file, parameter, *used[next++]);
  if (unused.size() == 0)
    return "";
  return "'" + file.path() + "' has " + std::to_string(unused.size()) +
         " tensor(s) that the model does not use: " + unused.list();
}

void loadShard(const WeightFiles &file, const Storage &storage, const RankPosition &position,
               float *shard) {
  std::fill_n(shard, storage.shard.count, 0.0f);
  std::vector<const FileTensor *> tensors(storage.members.size());
  for (const Run &run : shardRuns(storage, position)) {
    const FileTensor *&tensor = tensors[run.member];
    if (!tensor)
      tensor = find(file, storage.members[run.member]);
    tensor->readFloats(run.inParameter, run.count, shard + run.inShard);
  }
}

void exportWeights(const OutputPath &path, const Program &program, Device &device) {
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
      members.emplace(parameter.position, Member{&storage, &parameter});
    missing[&storage] = storage.members.size();
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
