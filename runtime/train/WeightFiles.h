//===- WeightFiles.h - the tensors of weight files --------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_WEIGHTFILES_H
#define FSDP_RUNTIME_TRAIN_WEIGHTFILES_H

#include "base/Safetensors.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

/// The tensors of a safetensors file, or of several that an index names.
class WeightFiles {
public:
  /// `path` is a safetensors file; an index, `….index.json`, whose "weight_map" maps each tensor to
  /// a file beside it; or a folder with `model.safetensors.index.json` or `model.safetensors`, with
  /// `adapter_model.safetensors`, or with both, the adapters of the model; or a checkpoint, whose
  /// data is checked, or a root of checkpoints, of which the latest is used.
  /// Errors name the missing or malformed file.
  explicit WeightFiles(const std::string &path);

  const std::string &path() const { return name; }
  /// Every file that was read: the index, if there is one, and the safetensors files.
  const std::vector<std::string> &files() const { return paths; }
  /// The tensor called `tensor`, or nullptr.
  const base::FileTensor *find(std::string_view tensor) const;
  /// All of them, in the order of their names.
  std::vector<const base::FileTensor *> tensors() const;
  /// Releases the memory of the pages read so far. All tensors stay valid.
  void releasePages() const;

private:
  void open(const std::string &file);
  void openFolder(const std::string &path);
  void openCheckpoint(const std::string &folder);
  void openIndex(const std::string &file);

  std::string name;
  std::vector<std::string> paths;
  std::vector<std::unique_ptr<base::SafetensorsFile>> opened;
  std::map<std::string, const base::FileTensor *, std::less<>> byName;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_WEIGHTFILES_H
