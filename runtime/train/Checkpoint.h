//===- Checkpoint.h - reads and writes checkpoints ------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINT_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINT_H

#include "runtime/execution/Device.h"
#include "runtime/train/CheckpointFolder.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace fsdp::rt {

/// A checkpoint whose manifest fits the program, with open files.
class Checkpoint {
public:
  /// Errors, with file, got and expected: no manifest, one of another version, or an altered one; a
  /// file with another size or header than in the manifest; a parameter or optimizer state of the
  /// program that is missing or has another shape; a parameter that the program does not have.
  Checkpoint(std::string folder, const CheckpointLayout &layout);

  const std::string &name() const { return folder; }
  const CheckpointManifest &manifest() const { return description; }
  /// Fills every shard. Called by all ranks together. Returns the fault of the data, the same on
  /// every rank, or an empty text.
  std::string load(const std::vector<ShardShare> &shares, const Program &program,
                   Device &device) const;

private:
  const CheckpointLayout &layout;
  std::string folder;
  CheckpointManifest description;
  std::vector<std::unique_ptr<base::SafetensorsFile>> files;
  std::vector<std::vector<const base::FileTensor *>> tensors; ///< of each file of the layout
};

/// The checkpoints for `--resume=PATH`: the one in the folder PATH, or those in the root PATH, the
/// latest first.
std::vector<SavedStep> checkpointsAt(const std::string &path);

/// Saves a run. All ranks construct it and call its members together.
class CheckpointSaver {
public:
  struct Settings {
    std::string root;
    std::int64_t keep = 0; ///< 0: all
    bool behind = false;   ///< writes while training continues
    bool warns = false;    ///< a failed save does not end the run
    BesideFiles carried;   ///< besides those of the program
  };

  CheckpointSaver(const Program &program, Device &device, const CheckpointLayout &layout,
                  std::vector<ShardShare> shares, Settings settings,
                  base::FileSystem &system = base::FileSystem::real());
  /// Waits for the writing thread.
  ~CheckpointSaver();

  /// Creates the folder of the checkpoints if it does not exist.
  void createRoot();
  /// Before the first step: renames checkpoints of other runs in the root, which must exist, and
  /// returns their new names on rank 0. `after` as in CheckpointRoot::setAside.
  std::vector<std::string> open(std::optional<std::int64_t> after);
  /// Saves the state of the device, which must be idle. Without `behind` returns when the
  /// checkpoint is complete; else waits for the previous save and returns when the device's memory
  /// may change. Error: a save failed, unless that is only a warning.
  void save(CheckpointManifest manifest);
  /// Waits for the save in progress. Errors as save().
  void finish();
  /// The folders of checkpoints completed since the last call. Does not wait. Errors as save(), on
  /// the rank that failed.
  std::vector<std::string> takeSaved();

private:
  void copyToHost();
  void write(const std::function<const float *(std::size_t)> &valuesOf);
  void attempt(const std::function<void()> &action) noexcept;
  bool anyFailed();
  void report(bool together);

  const Program &program;
  Device &device;
  const CheckpointLayout &layout;
  std::vector<ShardShare> shares;
  Settings settings;
  CheckpointRoot root;
  std::unique_ptr<Communicator> ranks; ///< used by the writing thread while it runs
  std::shared_ptr<float> hostCopy;     ///< copies of the shares, one after another
  std::thread writer;
  std::atomic<bool> written{false}; ///< the thread is done
  CheckpointManifest manifest;      ///< of the save in progress
  std::string problem;              ///< of this rank in it
  bool failed = false;              ///< on any rank
  std::string folder,
      pruneFault; ///< the complete checkpoint; the error of removing old ones
  std::vector<std::string> saved;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINT_H
