//===- WeightFiles.h - the tensors of a model, in one file or more -*- C++ -*-===//

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
  /// `path` is a safetensors file; an index, `….index.json`, whose "weight_map" says in which file
  /// beside it each tensor stands; or a folder with `model.safetensors.index.json` or
  /// `model.safetensors`; or a checkpoint, whose bytes are checked, or a root of checkpoints, of
  /// which the latest counts. Throws an Error that names what is missing or ill-formed.
  explicit WeightFiles(const std::string &path);

  const std::string &path() const { return name; }
  /// Every file that was read: the index, if there is one, and the safetensors files.
  const std::vector<std::string> &files() const { return paths; }
  /// The tensor called `tensor`, or nullptr.
  const base::FileTensor *find(std::string_view tensor) const;
  /// All of them, in the order of their names.
  std::vector<const base::FileTensor *> tensors() const;
  /// Gives back the memory of what was read so far. Everything is valid as before.
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
