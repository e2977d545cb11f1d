//===- RunHeader.h - what a training run is, for people and logs ------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNHEADER_H
#define FSDP_RUNTIME_TRAIN_RUNHEADER_H

#include "runtime/train/CommandLine.h"

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// Shown when training starts; `--log-header` writes it into the log as well.
struct RunHeader {
  const Program &program;
  const Options &options;
  std::int64_t steps;
  std::string mesh;      ///< "fsdp=2"
  std::string libraries; ///< "oneDNN 2.6.3"
  std::string collectives; ///< how they are made, or ""

  /// The number of trained and frozen elements of all parameters.
  std::int64_t parameters() const;
  /// Lines for people.
  std::string text() const;
  /// One line: `{"run": {"model": ..., "version": ..., "parameters": ..., "mesh": ..., "ranks": ...,
  /// "steps": ..., "batch": ..., "arena_bytes": ..., "compiled": ..., "seed": ..., "lr": ..., "data": ...,
  /// "libraries": ..., "collectives": ..., "digest": ...}}`
  std::string json() const;
};

/// The line of a log that says why a run was restarted, after the step before it:
/// `{"restart": {"number": 1, "after_step": 20, "cause": "rank 1: was killed by signal 9 (Killed)"}}`
std::string restartLine(std::int64_t number, std::int64_t step, const std::string &mesh, const std::string &cause);

/// The version of the runtime, and where it is known its commit: "0.1.0 (f88a390)".
const char *runtimeVersion();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNHEADER_H
