#include "runtime/train/WeightFiles.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/JsonObject.h"
#include "base/MappedFile.h"
#include "runtime/train/AdapterFiles.h"
#include "runtime/train/CheckpointFolder.h"

#include <sys/stat.h>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::string_view kIndexEnding = ".index.json";

bool isFolder(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool isIndex(std::string_view path) {
  return path.size() > kIndexEnding.size() &&
         path.substr(path.size() - kIndexEnding.size()) == kIndexEnding;
}

} // namespace

WeightFiles::WeightFiles(const std::string &path) : name(path) {
  if (!isFolder(path)) {
    isIndex(path) ? openIndex(path) : open(path);
    return;
  }
  openFolder(path);
}

void WeightFiles::openFolder(const std::string &path) {
  if (fileExists(path + "/" + CheckpointManifest::kName))
    return openCheckpoint(path);
  if (fileExists(path + "/" + CheckpointManifest::kUnfinished))
    throw Error("'" + path + "' holds a checkpoint that was never finished; use an earlier one");
  const std::vector<SavedStep> saved = CheckpointRoot(FileSystem::real(), path).saved();
  if (!saved.empty())
    return openCheckpoint(saved.front().folder);
  const std::string whole = path + "/" + kModelWeights, index = whole + std::string(kIndexEnding),
                    adapter = path + "/" + kAdapterWeights;
  if (fileExists(index))
    openIndex(index);
  else if (fileExists(whole))
    open(whole);
  if (fileExists(adapter)) // transformers adds them to the model beside them
    open(adapter);
  else if (!paths.empty() && fileExists(path + "/" + kAdapterConfig))
    throw Error("'" + path + "' has '" + kAdapterConfig + "' and no '" + kAdapterWeights +
                "', expected the adapters beside the model, or neither; for the model alone name "
                "its file, '" +
                paths.front() + "'");
  if (paths.empty())
    throw Error("'" + path + "' has no 'model.safetensors', no 'model.safetensors" +
                std::string(kIndexEnding) +
                "' and no 'adapter_model.safetensors'; name the file itself");
}

void WeightFiles::open(const std::string &file) {
  paths.push_back(file);
  opened.push_back(std::make_unique<SafetensorsFile>(file));
  for (const FileTensor &tensor : opened.back()->tensors())
    if (!byName.emplace(tensor.name, &tensor).second)
      throw Error("'" + file + "': got the tensor '" + tensor.name + "', which is in '" +
                  paths.front() + "' too, expected names of adapters; name one of the files");
}

void WeightFiles::openCheckpoint(const std::string &folder) {
  const CheckpointManifest manifest = CheckpointManifest::read(folder);
  for (const CheckpointManifest::File &file : manifest.files) {
    if (file.name != "model.safetensors")
      continue;
    paths = {folder + "/" + CheckpointManifest::kName, folder + "/" + file.name};
    opened.push_back(openCheckpointFile(folder, file));
    for (const CheckpointManifest::Tensor &tensor : file.tensors) {
      const FileTensor *found = opened.back()->find(tensor.name);
      requireChecksum(paths.back(), tensor.name,
                      checksum(reinterpret_cast<const float *>(found->data), 0, found->elements()),
                      tensor.checksum);
      byName.emplace(tensor.name, found);
    }
    return;
  }
  throw Error("'" + folder + "' has no 'model.safetensors'; name the file itself");
}

void WeightFiles::openIndex(const std::string &file) {
  paths.push_back(file);
  const MappedFile bytes(file);
  const auto refuse = [&](const std::string &why) {
    throw Error("'" + file + "' is not an index of safetensors files: " + why);
  };
  nlohmann::json json;
  if (const std::string fault = parseJsonObject({bytes.data(), bytes.size()}, json); !fault.empty())
    refuse("it " + fault);
  if (!json.contains("weight_map") || !json["weight_map"].is_object())
    refuse("it has no object 'weight_map'");
  const std::size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : file.substr(0, slash + 1);
  std::map<std::string, const SafetensorsFile *> parts;
  for (const auto &[tensor, where] : json["weight_map"].items()) {
    const std::string part = where.is_string() ? where.get<std::string>() : "";
    if (part.empty() || part.find('/') != std::string::npos)
      refuse("tensor '" + tensor + "' is not in a file beside it");
    const SafetensorsFile *&at = parts[part];
    if (!at) {
      paths.push_back(folder + part);
      opened.push_back(std::make_unique<SafetensorsFile>(paths.back()));
      at = opened.back().get();
    }
    const FileTensor *found = at->find(tensor);
    if (!found)
      throw Error("'" + folder + part + "': got no tensor '" + tensor +
                  "', expected it there as '" + file + "' says");
    byName.emplace(tensor, found);
  }
}

const FileTensor *WeightFiles::find(std::string_view tensor) const {
  const auto found = byName.find(tensor);
  return found == byName.end() ? nullptr : found->second;
}

void WeightFiles::releasePages() const {
  for (const std::unique_ptr<SafetensorsFile> &file : opened)
    file->releasePages();
}

std::vector<const FileTensor *> WeightFiles::tensors() const {
  std::vector<const FileTensor *> list;
  for (const auto &[name, tensor] : byName)
    list.push_back(tensor);
  return list;
}

} // namespace fsdp::rt
