//===- Checkpoint.h - a training run to and from its checkpoints ----------===//

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

/// A checkpoint whose manifest fits the program, its files open.
class Checkpoint {
public:
  /// Errors, which name file, got and expected: no manifest, or one of another version or altered;
  /// files whose size or header the manifest does not have; parameters or optimizer states that the
  /// program has and the files do not, or in another shape; parameters that the program does not
  /// have.
  Checkpoint(std::string folder, const CheckpointLayout &layout);

  const std::string &name() const { return folder; }
  const CheckpointManifest &manifest() const { return description; }
  /// Fills every shard. All ranks together; returns what is wrong with the bytes, the same on every
  /// rank, or nothing.
  std::string load(const std::vector<ShardShare> &shares, const Program &program,
                   Device &device) const;

private:
  const CheckpointLayout &layout;
  std::string folder;
  CheckpointManifest description;
  std::vector<std::unique_ptr<base::SafetensorsFile>> files;
  std::vector<std::vector<const base::FileTensor *>> tensors; ///< of each file of the layout
};

/// The checkpoints that `--resume=PATH` may mean: that in the folder PATH, or those in the root
/// PATH, the latest first.
std::vector<SavedStep> checkpointsAt(const std::string &path);

/// Saves a run. All ranks construct it, and call each member, together.
class CheckpointSaver {
public:
  struct Settings {
    std::string root;
    std::int64_t keep = 0; ///< 0: all
    bool behind = false;   ///< writes while training goes on
    bool warns = false;    ///< a save that fails does not end the run
  };

  CheckpointSaver(const Program &program, Device &device, const CheckpointLayout &layout,
                  std::vector<ShardShare> shares, Settings settings,
                  base::FileSystem &system = base::FileSystem::real());
  /// Waits for the thread that writes.
  ~CheckpointSaver();

  /// Creates the folder of the checkpoints if it is not there.
  void createRoot();
  /// Before the first step: renames checkpoints in the root, which is there, that are not of this
  /// run, and returns their new names on rank 0. `after` as in CheckpointRoot::setAside.
  std::vector<std::string> open(std::optional<std::int64_t> after);
  /// Saves what the device holds, nothing being under way on it. Without `behind` returns when the
  /// checkpoint is complete; else when the device's memory may change, having waited for the save
  /// before. Errors: a save that failed, unless that is to warn.
  void save(CheckpointManifest manifest);
  /// Waits for what is being written. Errors: as of save.
  void finish();
  /// The folders of checkpoints that have become complete since the last call. Waits for nothing.
  /// Errors: as of save, on the rank that failed.
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
  std::unique_ptr<Communicator> ranks; ///< of the thread that writes, while it does
  std::shared_ptr<float> hostCopy;     ///< copies of the shares, one after another
  std::thread writer;
  std::atomic<bool> written{false}; ///< the thread has nothing more to do
  CheckpointManifest manifest;      ///< of the save under way
  std::string problem;              ///< of this rank in it
  bool failed = false;              ///< on any rank
  std::string folder,
      pruneFault; ///< the checkpoint where it has succeeded; what could not be removed
  std::vector<std::string> saved;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINT_H
