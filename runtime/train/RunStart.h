//===- RunStart.h - state of a run across restarts --------------*- C++ -*-===//
//
// A restart may happen at any moment. Before the run has opened its files it has only renamed
// files, and the next attempt starts as the first one did. After that, all checkpoints of later
// steps in the folder of --save are of this run, and so is the log: the next attempt continues from
// these checkpoints, or from the one that the run began with, and never from those of another run.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNSTART_H
#define FSDP_RUNTIME_TRAIN_RUNSTART_H

#include "base/Descriptor.h"
#include "base/OutputPath.h"
#include "runtime/device/Mapping.h"
#include "runtime/train/CheckpointFolder.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// State in memory that the ranks of all attempts share with the process that starts them.
class RunStart {
public:
  RunStart();

  // On the ranks.

  /// The attempt continues from candidate `index` of its list, a checkpoint of `step`; -1 and 0:
  /// from none. Called by every rank before rank 0 opens files. Does nothing if an earlier attempt
  /// has opened them.
  void begin(int index, std::int64_t step);
  /// Called by rank 0: checkpoints of later steps are renamed, and the log, if there is one, is
  /// open.
  void noteOpened(const base::FileIdentity &log);
  /// Whether an attempt of this run has opened its files.
  bool hasOpened() const { return shared.isOpen != 0; }
  /// Whether `log` is the one that this run has opened.
  bool owns(const base::FileIdentity &log) const;

  // In the process that restarts the ranks.

  /// The checkpoints from which the next attempt may continue after the files were opened: those
  /// that the run has saved in `root`, the latest first, and the one that it began with, which is
  /// one of `candidates`, the list of the previous attempt.
  std::vector<SavedStep> candidates(const std::string &root,
                                    const std::vector<SavedStep> &candidates);
  /// Locks the folder of --save, if it exists, so that no other run uses it between attempts. Does
  /// nothing if another run has locked it: rank 0 reports that.
  void lock(const std::string &root);
  /// Whether this process has locked the folder, for the ranks too.
  bool holdsLock() const { return bool(rootLock); }

private:
  struct Shared {
    std::atomic<std::int32_t> isOpen{0}, index{-1};
    std::atomic<std::int64_t> step{0};
    std::atomic<std::uint64_t> logDevice{0}, logInode{0};
  };
  Mapping pages;
  Shared &shared;
  bool isKnown = false;           ///< whether `first` is set
  std::optional<SavedStep> first; ///< the checkpoint that the run began with
  base::Descriptor rootLock;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNSTART_H
