//===- Weights.cpp --------------------------------------------------------===//

#include "runtime/Weights.h"

#include "runtime/Error.h"
#include "runtime/Shard.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace fsdp::rt {

namespace {

const FileTensor *find(const SafetensorsFile &file, const Parameter &parameter) {
  const FileTensor *tensor = file.find(parameter.name);
  return tensor || !parameter.alias ? tensor : file.find(parameter.alias);
}

void check(const SafetensorsFile &file, const Parameter &parameter) {
  const auto refuse = [&](const std::string &why) {
    throw Error("'" + file.path() + "': parameter '" + parameter.name + "': " + why);
  };
  const FileTensor *tensor = find(file, parameter);
  if (!tensor)
    refuse("got no such tensor, expected one for every parameter of the model");
  if (!tensor->isFloat())
    refuse("got dtype " + tensor->dtype + ", expected F32, BF16 or F64");
  const Shape &shape = parameter.fileShape;
  if (!std::equal(tensor->shape.begin(), tensor->shape.end(), shape.begin(), shape.end()))
    refuse("got shape " +
           shapeText(tensor->shape.data(), tensor->shape.data() + tensor->shape.size()) +
           ", expected " + shapeText(shape.begin(), shape.end()));
  const std::size_t bad = tensor->firstNonfinite();
  if (bad != tensor->elements())
    refuse("got a value that is not finite at element " + std::to_string(bad) +
           ", expected finite numbers");
}

/// How the communicator of a storage puts its pieces together.
Tile tileOf(const Storage &storage) {
  Tile tile;
  tile.local = storage.shard.count;
  tile.total = storage.size;
  if (storage.layout != Layout::Dimension)
    return tile;
  const Shape &shape = storage.members[0].shape;
  const auto dim = static_cast<std::size_t>(storage.dim);
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d != dim)
      (d < dim ? tile.outer : tile.inner) *= static_cast<std::size_t>(shape[d]);
  tile.total = static_cast<std::size_t>(shape[dim]);
  tile.local = storage.shard.count / std::max<std::size_t>(tile.outer * tile.inner, 1);
  return tile;
}

} // namespace

std::string checkWeights(const SafetensorsFile &file, const Program &program) {
  std::vector<const FileTensor *> used;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members) {
      check(file, parameter);
      used.push_back(find(file, parameter));
    }
  std::string names;
  std::size_t ignored = 0;
  for (const FileTensor &tensor : file.tensors()) {
    if (std::find(used.begin(), used.end(), &tensor) != used.end())
      continue;
    if (++ignored <= 5)
      names += (names.empty() ? "'" : ", '") + tensor.name + "'";
  }
  if (ignored == 0)
    return "";
  return "'" + file.path() + "' has " + std::to_string(ignored) +
         " tensor(s) that the model does not use: " + names + (ignored > 5 ? ", …" : "");
}

void loadShard(const SafetensorsFile &file, const Storage &storage, int coordinate, float *shard) {
  std::fill_n(shard, storage.shard.count, 0.0f);
  for (const Run &run : shardRuns(storage, coordinate))
    find(file, storage.members[run.member])
        ->readFloats(run.inParameter, run.count, shard + run.inShard);
}

void exportWeights(const std::string &path, const Program &program, Context &c) {
  std::optional<SafetensorsWriter> writer;
  if (c.rank() == 0) {
    std::vector<SafetensorsWriter::Tensor> tensors;
    for (const Storage &storage : program.storages)
      for (const Parameter &parameter : storage.members)
        tensors.push_back(
            {parameter.name, {parameter.fileShape.begin(), parameter.fileShape.end()}});
    writer.emplace(path, tensors);
  }

  std::vector<float> whole;
  for (const Storage &storage : program.storages) {
    const auto *shard = reinterpret_cast<const float *>(c.base() + storage.shard.offset);
    const float *values = shard;
    if (storage.communicator >= 0) {
      whole.resize(storage.size);
      c.comm(storage.communicator).allGather(shard, whole.data(), tileOf(storage));
      values = whole.data();
    }
    if (!writer)
      continue;
    for (const Parameter &parameter : storage.members)
      writer->write(values + parameter.offset, static_cast<std::size_t>(elements(parameter.shape)));
  }
  if (writer)
    writer->commit();
}

} // namespace fsdp::rt
