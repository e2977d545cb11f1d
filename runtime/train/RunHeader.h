//===- RunHeader.h - the description of a run -----------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNHEADER_H
#define FSDP_RUNTIME_TRAIN_RUNHEADER_H

#include "runtime/execution/AttentionLibrary.h"
#include "runtime/train/CheckpointManifest.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/RunContents.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The description of a run: printed when training starts, recorded in checkpoints, and with
/// `--log-header` in the log.
struct RunHeader {
  const Program &program;
  const Options &options;
  std::int64_t steps;
  const Hyperparameters &hyper;
  std::string mesh;        ///< "fsdp=2"
  int threads;             ///< that compute in a rank; 0 on a GPU
  std::string libraries;   ///< "oneDNN 2.6.3"
  std::string collectives; ///< how they are performed, or ""
  RunContents contents;    ///< of the files it reads; may be empty
  /// The checkpoint that the run continues from, and its folder; step 0: none.
  CheckpointManifest from = {};
  std::string folder = {};
  /// The names of the parameters that no file of --init has; empty where all or none are drawn.
  std::vector<std::string> drawn = {};
  RunData data = {};
  /// Of each of several sources of `data`, by the end of the run.
  std::vector<double> epochs = {};
  AttentionLibrary attention = {};

  /// Text for users.
  std::string text() const;
  /// The part of it about --data, a line for each of several sources; empty for one file.
  std::string describeData() const;
  /// Warns on standard error if the run ends before its warmup does, or draws no sample of a
  /// source.
  void warn() const;
  /// A JSON object: `{"model": ..., "version": ..., "parameters": ..., "mesh": ..., "ranks": ...,
  /// "steps": ..., "batch": ..., "arena_bytes": ..., "compiled": ..., "seed": ..., "lr": ...,
  /// "data": ..., "threads": ..., "libraries": ..., "collectives": ..., "digest": ..., …}`;
  /// docs/files.md has all of its fields.
  std::string record() const;
  /// A line of a log: `{"run": ...}` with the record.
  std::string line() const;
};

/// The line of a log with the cause of a restart, after the step before it: `{"restart": {"number":
/// 1, "after_step": 20, "cause": "rank 1: was killed by signal 9 (Killed)"}}`
std::string restartLine(std::int64_t number, std::int64_t step, const std::string &mesh,
                        const std::string &cause);

/// A line about parameters that no file of --init has; empty where there are none.
std::string describeDrawn(const std::vector<std::string> &drawn);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNHEADER_H
