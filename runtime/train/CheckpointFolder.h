//===- CheckpointFolder.h - how a checkpoint is written -------------------===//
//
// A root holds a folder for each saved step, `step-00000100`. What is in one is a checkpoint once
// its manifest stands there under its name. The order of the calls is what makes that true after a
// power failure at any moment ([Note: commit]):
//
//   1. `begin`, rank 0: the folder, in it the manifest under its unfinished name, and the names of
//   both
//      on the device; then the files, at their full size, with their headers.
//   2. `write`, every rank: its ranges, and the content of the files on the device.
//   3. All ranks have done 2 (a barrier).
//   4. `commit`, rank 0: the names of the files on the device; the content of the manifest on the
//      device; its rename; the names on the device.
//
// A manifest under its name therefore stands over content that was on the device before. Whoever
// takes a checkpoint away does it in the other order: the manifest gets its unfinished name again,
// on the device, before anything else goes, and goes last.
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

/// The folders of a run's checkpoints. Every error names the file, the reason of the system and
/// what is left as it was.
class CheckpointRoot {
public:
  /// `extras`: files that are written beside the tensors as they are.
  CheckpointRoot(base::FileSystem &system, std::string path, Table<ExtraFile> extras = {},
                 const RangeWriter::Sizes &sizes = {})
      : system(system), path(std::move(path)), extras(extras), sizes(sizes) {}

  const std::string &name() const { return path; }
  /// "ROOT/step-00000100"
  std::string folderOf(std::int64_t step) const;

  /// Those that have a manifest, or may have one as their folder cannot be read now, the latest
  /// first: who reads the manifest gets the error. None where there is no root. Error: the root
  /// cannot be read.
  std::vector<SavedStep> saved() const;
  /// Creates the root if it is not there; the folder around it must exist.
  void create();
  /// Renames checkpoints that are not of the run that begins to "step-00000100.1" or the first
  /// number that is free: those of steps after `after`, where it begins with the checkpoint of that
  /// step in this root, else all. Returns the new names.
  std::vector<std::string> setAside(std::optional<std::int64_t> after);

  /// [Note: commit]
  void begin(std::int64_t step, const CheckpointLayout &layout);
  /// `valuesOf(i)`: element 0 of the shard of shares[i]. Adds the checksum of each tensor, file
  /// after file, to `checksums`.
  void write(std::int64_t step, const CheckpointLayout &layout,
             const std::vector<ShardShare> &shares,
             const std::function<const float *(std::size_t)> &valuesOf,
             std::vector<std::uint64_t> &checksums);
  void commit(std::int64_t step, const CheckpointManifest &manifest);

  /// Removes the folder of a save that failed.
  void discard(std::int64_t step) noexcept;
  /// Removes all but the latest `keep` checkpoints (0: none), and what saves before that of `step`
  /// have left unfinished. Errors: the first that cannot be removed, after the others are; one that
  /// holds a folder, or is a symbolic link, stays as it is, with what the link leads to.
  void prune(std::int64_t step, std::int64_t keep);

private:
  /// `saved`. Error where not `takesUnreadable`: the folder of a step cannot be read either.
  std::vector<SavedStep> find(bool takesUnreadable) const;
  std::vector<std::string> namesIn(const std::string &folder) const;
  void remove(const std::string &folder);
  int writeFile(const std::string &file, const std::string &text);
  void require(int reason, const char *doing, const std::string &file) const;

  base::FileSystem &system;
  std::string path;
  Table<ExtraFile> extras;
  RangeWriter::Sizes sizes;
};

/// Error: the folder `root` is there and does not list what it holds within `seconds`, as on a disk
/// that hangs.
void requireAnswer(const std::string &root, double seconds);

/// The step of a folder called so; nothing for any other name.
std::optional<std::int64_t> stepOfName(const std::string &name);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTFOLDER_H
