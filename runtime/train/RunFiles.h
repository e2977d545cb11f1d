//===- RunFiles.h - the files that a run reads and writes -----------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNFILES_H
#define FSDP_RUNTIME_TRAIN_RUNFILES_H

#include "base/OutputPath.h"
#include "runtime/data/Dataset.h"
#include "runtime/program/Program.h"
#include "runtime/train/CheckpointFolder.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/RunContents.h"
#include "runtime/train/WeightFiles.h"

#include <memory>
#include <vector>

namespace fsdp::rt {

/// What is read and checked once, before there are ranks.
struct RunSources {
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Dataset> valData;
  std::unique_ptr<WeightFiles> weights;
  std::vector<SavedStep> checkpoints; ///< to go on from, the latest first; not all may be valid
  RunContents contents;               ///< where something records them
};

/// What is written; open, where that is needed, before there are ranks.
struct RunOutputs {
  base::OutputPath exported, trace, log;
};

/// Opens and checks the inputs that `options` name. Throws where one is not what `program` needs.
RunSources openSources(const Program &program, const Options &options);

/// Refuses now what would fail after the last step, or would overwrite an input. `files` becomes
/// what the command line names.
RunOutputs openOutputs(const Options &options, std::vector<base::NamedFile> &files);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNFILES_H
