//===- Weights.cpp --------------------------------------------------------===//

#include "runtime/train/Weights.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/program/Shard.h"

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

/// What wrappers of a model put before the names of its tensors.
constexpr std::string_view kWrappers[] = {"transformer.", "model."};
/// The ends of names of constants that old files hold beside the parameters.
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

/// Whether the tensor repeats one that a parameter has: older files hold tied weights twice.
bool isCopy(const FileTensor &tensor, const std::vector<const FileTensor *> &used) {
  return std::any_of(used.begin(), used.end(), [&](const FileTensor *other) {
    return tensor.dtype == other->dtype && tensor.shape == other->shape &&
           std::memcmp(tensor.data, other->data, tensor.bytes) == 0;
  });
}

/// Elements that each rank takes at once from those that have other parts of a split parameter.
constexpr std::size_t kGatheredElements = std::size_t(1) << 20;

/// How the communicator of a storage puts its pieces together.
ShardLayout layoutOf(const Storage &storage) {
  ShardLayout tile;
  tile.local = storage.shard.count;
  tile.total = storage.size;
  if (storage.layout != Layout::Dimension)
    return tile;
  const Parameter &parameter = storage.members[0];
  const auto dim = static_cast<std::size_t>(storage.dim);
  for (std::size_t d = 0; d < parameter.shape.size(); ++d)
    if (d != dim)
      (d < dim ? tile.outer : tile.inner) *= static_cast<std::size_t>(partExtent(parameter, d));
  tile.total = static_cast<std::size_t>(partExtent(parameter, dim));
  tile.local = storage.shard.count / std::max<std::size_t>(tile.outer * tile.inner, 1);
  return tile;
}

/// The members of `storage`, whole and one after another, on the first rank; others have part in it
/// and get nothing.
std::vector<float> gatherMembers(const Storage &storage, const Program &program, Device &device) {
  const bool isFirst = device.rank() == 0;
  const float *shard = device.read(storage.shard.isPlaced() ? storage.shard : storage.copy);
  std::vector<float> parts;
  if (storage.communicator >= 0 && storage.shard.isPlaced()) {
    parts.resize(storage.size);
    device.communicator(storage.communicator).allGather(shard, parts.data(), layoutOf(storage));
    shard = parts.data();
  }
  if (storage.splitCommunicator < 0 && !isFirst)
    return {};
  const auto isWhole = [](const Parameter &parameter) { return parameter.splits.empty(); };
  if (std::all_of(storage.members.begin(), storage.members.end(), isWhole)) {
    if (parts.empty())
      parts.assign(shard, shard + storage.size);
    return parts;
  }
  // None where they are padded, but not split.
  Communicator *others =
      storage.splitCommunicator < 0 ? nullptr : &device.communicator(storage.splitCommunicator);
  std::vector<std::size_t> starts;
  std::size_t size = 0;
  for (const Parameter &parameter : storage.members) {
    starts.push_back(size);
    size += static_cast<std::size_t>(elements(parameter.shape));
  }
  std::vector<float> whole(isFirst ? size : 0);
  // What a rank with these parts has, stored whole; in the order of the shard.
  Storage part = storage.asReplicated();
  part.shard = Buffer::unplaced(storage.size);
  const std::size_t count = others ? static_cast<std::size_t>(others->size()) : 1;
  std::vector<std::vector<Run>> runs(isFirst ? count : 0);
  std::vector<std::size_t> next(runs.size());
  for (std::size_t index = 0; index < runs.size(); ++index) {
    RankPosition position{program.axes, std::vector<int>(program.axes.size())};
    int rest = static_cast<int>(index);
    for (int a = storage.splitAxes.count; a-- > 0;) {
      const auto axis = static_cast<std::size_t>(storage.splitAxes.axis[a]);
      position.coordinates[axis] = rest % program.axes[axis].size;
      rest /= program.axes[axis].size;
    }
    runs[index] = shardRuns(part, position);
  }
  // All ranks have what is gathered at once, so that is little.
  const std::size_t most = std::max(kGatheredElements / count, std::size_t(1));
  std::vector<float> all(std::min(most, storage.size) * count);
  for (std::size_t begin = 0; begin < storage.size; begin += most) {
    const std::size_t end = std::min(begin + most, storage.size), now = end - begin;
    ShardLayout joined;
    joined.local = now;
    joined.total = now * count;
    if (others)
      others->allGather(shard + begin, all.data(), joined);
    else
      std::copy_n(shard + begin, now, all.data());
    for (std::size_t index = 0; index < runs.size(); ++index)
      for (std::size_t &r = next[index]; r < runs[index].size() && runs[index][r].inShard < end;
           ++r) {
        const Run &run = runs[index][r];
        const std::size_t from = std::max(run.inShard, begin),
                          to = std::min(run.inShard + run.count, end);
        std::copy_n(all.data() + index * now + (from - begin), to - from,
                    whole.data() + starts[run.member] + run.inParameter + (from - run.inShard));
        if (to == end && to < run.inShard + run.count) // goes on
          break;
      }
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
        !isCopy(*tensor, used))
      unused.add(tensor->name);
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
  // Tensors stand in the order of the model, whatever the placement made of it; so a storage is
  // kept from its first member to its last.
  struct Member {
    const Storage *storage;
    const Parameter *parameter;
  };
  std::multimap<int, Member> members;             ///< by position
  std::map<const Storage *, std::size_t> missing; ///< members that are not written yet
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

  const Parameter *spoilt = nullptr;
  std::size_t badValues = 0;
  std::map<const Storage *, std::vector<float>> gathered;
  for (const auto &[position, member] : members) {
    const auto [storage, parameter] = member;
    auto [at, isFirst] = gathered.try_emplace(storage);
    std::vector<float> &whole = at->second;
    if (isFirst)
      whole = gatherMembers(*storage, program, device);
    if (writer && !spoilt) { // else the other ranks gather on
      const float *first = whole.data();
      for (const Parameter &before : storage->members) {
        if (&before == parameter)
          break;
        first += elements(before.shape);
      }
      const auto count = static_cast<std::size_t>(elements(parameter->shape));
      badValues = static_cast<std::size_t>(
          std::count_if(first, first + count, [](float value) { return !std::isfinite(value); }));
      if (badValues)
        spoilt = parameter;
      else
        writer->write(first, count);
    }
    if (--missing[storage] == 0)
      gathered.erase(at);
  }
  if (spoilt)
    throw Error("cannot export to '" + path.name() + "': parameter '" + spoilt->name + "' has " +
                std::to_string(badValues) + " value(s) that are not finite, of " +
                std::to_string(elements(spoilt->shape)) +
                "; lower the learning rate or clip the gradients");
  if (writer)
    writer->commit();
}

} // namespace fsdp::rt
