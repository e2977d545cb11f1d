//===- RunCheckpoints.h - when a training run saves, and from where it goes on -===//

#ifndef FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H
#define FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H

#include "base/Descriptor.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/RunStart.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// What --resume names, before there are ranks; the latest first. Errors, unless it is `latest`:
/// nothing that fits the program, or the latest that may cannot be read now.
std::vector<SavedStep> findCheckpoints(const Program &program, const Options &options);
/// What ranks compare of it.
std::string describeResumed(const std::vector<SavedStep> &checkpoints);
/// Error: a folder of --save that could not be written.
void checkRoot(const std::string &root, const Program &program);

/// The checkpoints of one run: --resume, --save and what goes with it. Every rank calls each
/// member, in the same order.
class RunCheckpoints {
public:
  /// `options`: those of the run; a checkpoint's seed and learning rate replace them where they are
  /// not given. `candidates`: what it may go on from, the latest first. `samples`: of the data set,
  /// 0 without one.
  RunCheckpoints(const Program &program, Options &options, std::int64_t steps, Device &device,
                 const std::vector<SavedStep> &candidates, RunStart &runStart,
                 std::int64_t samples);

  ~RunCheckpoints();
  RunCheckpoints(const RunCheckpoints &) = delete;
  RunCheckpoints &operator=(const RunCheckpoints &) = delete;

  /// First of all: locks the folder of --save, if it is there, against other runs until this one
  /// ends. Error: another run saves there.
  void claim();
  /// Fills all shards from the latest checkpoint that can be used; all ranks agree which that is.
  /// False: there is none, and training begins anew. Errors, but with --start-over until the run
  /// has opened its files: one that may be whole cannot be read now; none can be used. Options that
  /// do not go with it.
  bool resume();
  /// Where training begins: step 0, or that of the checkpoint.
  const CheckpointManifest &start() const { return from; }
  /// Its folder; empty where training begins.
  const std::string &folder() const { return resumed; }
  /// What checkpoints keep of this run besides: RunHeader::record.
  void describe(std::string run) { record = std::move(run); }
  /// Before the first step: takes the folder of --save.
  void open();
  /// Saves after a step where that is due, having called `settle`. Returns the signal that ends the
  /// run, or 0: ranks agree on both.
  int afterStep(std::int64_t step, const std::function<void()> &settle);
  /// Waits for what is being written.
  void finish();
  /// The folders of checkpoints that have become complete since the last call.
  std::vector<std::string> takeSaved() {
    return saver ? saver->takeSaved() : std::vector<std::string>();
  }

private:
  const CheckpointLayout &layout();
  std::vector<ShardShare> shares();
  void continueFrom(const Checkpoint &checkpoint);
  /// Ends the attempt: the first of the ranks where `isOwn` throws `error`.
  [[noreturn]] void refuse(bool isOwn, const base::Error &error);
  void save(std::int64_t step);
  bool beganInRoot() const;
  void lockRoot();

  const Program &program;
  Options &options;
  std::int64_t steps;
  Device &device;
  const std::vector<SavedStep> &candidates;
  RunStart &runStart;
  std::int64_t samples;
  CheckpointManifest from;
  std::optional<CheckpointLayout> checkpointLayout;
  std::optional<CheckpointSaver> saver;
  base::Descriptor lock;      ///< on rank 0: the folder of --save, open and locked
  std::string resumed;        ///< the folder of `from`
  std::string record;         ///< of this run
  std::int64_t lastSaved = 0; ///< step
  std::int64_t seen = 0;      ///< signals of this rank that ask for saves
  std::int64_t agreed = 0; ///< of the rank that has had most, when ranks last agreed that one asks
  double lastAsked = -1;   ///< when that was, by now()
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H
