//===- CheckpointFolder.h - the folders of checkpoints --------------------===//
//
// A root holds a folder for each saved step, `step-00000100`. A folder is a checkpoint once its
// manifest has its final name. The order of the calls ensures that after a power failure at any
// moment ([Note: commit]):
//
//   1. `begin`, rank 0: the folder, in it the manifest under its unfinished name, and the names of
//   both
//      on the device; then the files, at their full size, with their headers.
//   2. `write`, every rank: its ranges, and the content of the files on the device.
//   3. All ranks have done 2 (a barrier).
//   4. `commit`, rank 0: the names of the files on the device; the content of the manifest on the
//      device; its rename; the names on the device.
//
// So the content of a checkpoint is on the device before the manifest has its final name. A
// checkpoint is removed in the opposite order: first the manifest gets its unfinished name again,
// on the device, and it is removed last.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINTFOLDER_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINTFOLDER_H

#include "runtime/files/RangeWriter.h"
#include "runtime/train/CheckpointManifest.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// A saved step.
struct SavedStep {
  std::int64_t step;
  std::string folder;
};

/// The folders of a run's checkpoints. Every error names the file, the reason of the system, and
/// the checkpoints that are unchanged.
class CheckpointRoot {
public:
  /// `extras`: files that are written unchanged beside the tensors.
  CheckpointRoot(base::FileSystem &system, std::string path, BesideFiles extras = {},
                 const RangeWriter::Sizes &sizes = {})
      : system(system), path(std::move(path)), extras(std::move(extras)), sizes(sizes) {}

  const std::string &name() const { return path; }
  /// "ROOT/step-00000100"
  std::string folderOf(std::int64_t step) const;

  /// The checkpoints with a manifest, or whose folder cannot be read now, the latest first; reading
  /// the manifest of the latter gives the error. None if there is no root. Error: the root cannot
  /// be read.
  std::vector<SavedStep> saved() const;
  /// Creates the root if it does not exist; its parent folder must exist.
  void create();
  /// Renames checkpoints of other runs to "step-00000100.1" or the first free number: those of
  /// steps after `after`, if the run continues from the checkpoint of that step in this root, else
  /// all. Returns the new names.
  std::vector<std::string> setAside(std::optional<std::int64_t> after);

  /// [Note: commit]
  void begin(std::int64_t step, const CheckpointLayout &layout);
  /// `valuesOf(i)`: address of element 0 of the shard of shares[i]. Adds the checksum of each
  /// tensor, file after file, to `checksums`.
  void write(std::int64_t step, const CheckpointLayout &layout,
             const std::vector<ShardShare> &shares,
             const std::function<const float *(std::size_t)> &valuesOf,
             std::vector<std::uint64_t> &checksums);
  void commit(std::int64_t step, const CheckpointManifest &manifest);

  /// Removes the folder of a failed save.
  void discard(std::int64_t step) noexcept;
  /// Removes all but the latest `keep` checkpoints (0: removes none), and unfinished folders of
  /// saves before that of `step`. Error: the first one that cannot be removed, after the others
  /// are. A checkpoint that contains a folder, or is a symbolic link, is not changed.
  void prune(std::int64_t step, std::int64_t keep);

private:
  /// As saved(). Without `takesUnreadable`, a folder of a step that cannot be read is an error.
  std::vector<SavedStep> find(bool takesUnreadable) const;
  std::vector<std::string> namesIn(const std::string &folder) const;
  void remove(const std::string &folder);
  int writeFile(const std::string &file, const std::string &text);
  void require(int reason, const char *doing, const std::string &file) const;

  base::FileSystem &system;
  std::string path;
  BesideFiles extras;
  RangeWriter::Sizes sizes;
};

/// Error: the folder `root` exists and cannot be listed within `seconds`, as on a disk that hangs.
void requireAnswer(const std::string &root, double seconds);

/// The step of a folder with this name; nothing for other names.
std::optional<std::int64_t> stepOfName(const std::string &name);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTFOLDER_H
