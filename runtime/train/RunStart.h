//===- RunStart.h - what a run began with, for its restarts -----*- C++ -*-===//
//
// A restart may come at any moment. Until the run has opened its files, it has changed nothing but
// names: the next attempt does what the first one did. From then on the folder of --save has no
// checkpoint of a later step than the run's first but those that it has saved, and the log is its
// own: the next attempt continues from these, or from what the run began with, and from nothing
// else that happens to be there.
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

/// In memory that the ranks of all attempts share with the process that starts them.
class RunStart {
public:
  RunStart();

  // On the ranks.

  /// The attempt continues from candidate `index` of its list, a checkpoint of `step`; -1 and 0:
  /// from none. Every rank says so before rank 0 opens files. Nothing where an attempt before has
  /// opened them.
  void begin(int index, std::int64_t step);
  /// Rank 0: checkpoints of later steps are set aside, and the log, if there is one, is open.
  void noteOpened(const base::FileIdentity &log);
  /// Whether an attempt of this run has opened its files.
  bool hasOpened() const { return shared.isOpen != 0; }
  /// Whether `log` is the one that this run has opened.
  bool owns(const base::FileIdentity &log) const;

  // In the process that restarts.

  /// What the next attempt may go on from when the files are open: what the run has saved in
  /// `root`, the latest first, and what it began with, one of `candidates`, those of the attempt
  /// before.
  std::vector<SavedStep> candidates(const std::string &root,
                                    const std::vector<SavedStep> &candidates);
  /// Locks the folder of --save, where it is there, so that between attempts no other run takes it.
  /// Where another run has: nothing, as rank 0 prints it.
  void lock(const std::string &root);
  /// Whether the folder is locked here, for the ranks too.
  bool holdsLock() const { return bool(rootLock); }

private:
  struct Shared {
    std::atomic<std::int32_t> isOpen{0}, index{-1};
    std::atomic<std::int64_t> step{0};
    std::atomic<std::uint64_t> logDevice{0}, logInode{0};
  };
  Mapping pages;
  Shared &shared;
  bool isKnown = false;           ///< `first` is
  std::optional<SavedStep> first; ///< what the run began with
  base::Descriptor rootLock;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNSTART_H
