//===- RunCheckpoints.h - --save and --resume of a run --------------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H
#define FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H

#include "base/Descriptor.h"
#include "runtime/data/DataFiles.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/RunStart.h"
#include "runtime/train/Spikes.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// The checkpoints that --resume names, the latest first; called before the ranks are started.
/// Errors, except for `latest`: none fits the program, or the latest one that may fit cannot be
/// read now.
std::vector<SavedStep> findCheckpoints(const Program &program, const Options &options);
/// The description of these that ranks compare.
std::string describeResumed(const std::vector<SavedStep> &checkpoints);
/// Error: the folder of --save cannot be written.
void checkRoot(const std::string &root, const Program &program);

/// The checkpoints of one run: --resume, --save and the options of these. Every rank calls each
/// member, in the same order.
class RunCheckpoints {
public:
  /// `options`: those of the run; the seed of a checkpoint replaces theirs where it is
  /// not given. `candidates`: checkpoints to continue from, the latest first. `samples`: of the
  /// data set, 0 without one, and `sources`: which it consists of. `carried`: files for each
  /// checkpoint.
  RunCheckpoints(const Program &program, Options &options, std::int64_t steps, Device &device,
                 const std::vector<SavedStep> &candidates, RunStart &runStart, std::int64_t samples,
                 const std::vector<DataSource> &sources, const BesideFiles &carried);

  ~RunCheckpoints();
  RunCheckpoints(const RunCheckpoints &) = delete;
  RunCheckpoints &operator=(const RunCheckpoints &) = delete;

  /// Called first: locks the folder of --save, if it exists, against other runs until this one
  /// ends. Error: another run saves there.
  void claim();
  /// The step of the checkpoint that goBack takes; 0: none.
  std::int64_t latest() const { return completed.empty() ? began : completedStep; }
  /// Fills all shards from the latest checkpoint that can be used, the same on all ranks. False:
  /// there is none, and training begins at step 0. Errors, except with --start-over before the run
  /// has opened its files: a checkpoint that may be complete cannot be read now; none can be used.
  /// Error: options that do not fit the checkpoint.
  bool resume();
  /// The start of training: step 0, or the state of the checkpoint.
  const CheckpointManifest &start() const { return from; }
  /// Its folder; empty without a checkpoint.
  const std::string &folder() const { return resumed; }
  /// Sets the RunHeader::record, the learning rate and the history that checkpoints contain.
  void describe(std::string run, Hyperparameters used, const StepHistory &steps) {
    record = std::move(run);
    hyper = std::move(used);
    history = &steps;
  }
  /// Before the first step: creates and locks the folder of --save.
  void open();
  /// Saves after a step if that is due, after a call of `settle`. Returns the signal that ends the
  /// run, or 0. Ranks agree on both.
  int afterStep(std::int64_t step, const std::function<void()> &settle);
  /// Waits for the save in progress.
  void finish();
  /// The folders of checkpoints completed since the last call.
  std::vector<std::string> takeSaved();
  /// The position in the order of the data after step `step`.
  std::int64_t samplesAfter(std::int64_t step) const;
  /// Fills all shards from the latest checkpoint that takeSaved has returned, else from the one
  /// that the run began with; `start` is then its state, but for the samples: training continues
  /// with that at position `samples`. The device is idle and no save in progress. False: the run
  /// began without a checkpoint and has saved none, so that it goes back to step 0; the caller
  /// fills the parameters. Error: it cannot be read, or is damaged.
  bool goBack(std::int64_t samples);

private:
  const CheckpointLayout &layout();
  std::vector<ShardShare> shares();
  void continueFrom(const Checkpoint &checkpoint);
  void warnOfOtherData() const;
  /// Ends the attempt: the first rank with `isOwn` throws `error`.
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
  std::vector<DataSource> sources; ///< if there are several, without their files
  const BesideFiles &carried;
  CheckpointManifest from;
  std::optional<CheckpointLayout> checkpointLayout;
  std::optional<CheckpointSaver> saver;
  base::Descriptor lock;                     ///< on rank 0: the open and locked folder of --save
  std::string resumed;                       ///< the folder of `from`
  std::string completed;                     ///< the folder of the latest checkpoint of this run
  std::int64_t completedStep = 0, began = 0; ///< its step, and that of the first `from`
  std::string record;                        ///< of this run
  Hyperparameters hyper;                     ///< of this run
  const StepHistory *history = nullptr;      ///< of this run
  std::int64_t lastSaved = 0;                ///< step
  std::int64_t seen = 0;                     ///< requests to save that this rank has handled
  std::int64_t agreed = 0; ///< the most requests on any rank when ranks last agreed to save
  double lastAsked = -1;   ///< when that was, by now()
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNCHECKPOINTS_H
