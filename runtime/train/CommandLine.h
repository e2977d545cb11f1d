//===- CommandLine.h - the options of a generated program -------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_COMMANDLINE_H
#define FSDP_RUNTIME_TRAIN_COMMANDLINE_H

#include "base/OutputPath.h"
#include "runtime/program/Program.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// What the command line asks for.
struct Options {
  std::string data;
  std::string valData;
  std::string init;
  std::string exportTo;
  std::string log;
  bool logHeader = false;
  std::string trace;
  std::string save;           ///< root of checkpoints
  std::int64_t saveEvery = 0; ///< steps; 0: only after the last one and where a signal asks
  std::int64_t keep = 0;      ///< checkpoints; 0: all
  bool saveAsync = false;
  std::string saveErrors = "stop";
  std::string resume;     ///< a root, the folder of a step, or "latest": that of `save`
  bool startOver = false; ///< checkpoints that cannot be used are passed over, all of them too
  const Program *plan = nullptr; ///< that of --plan; null: the number of ranks picks one
  std::int64_t maxRestarts = 0;
  bool elastic = false;          ///< a restart takes a plan for fewer ranks, if there is one
  std::int64_t restarts = 0;     ///< how often this run has been restarted
  std::string restartCause;      ///< the last time
  bool allowModelChange = false; ///< go on though the weights are of another model
  std::string arguments;         ///< the command line, as a shell reads it
  std::string communicator = "auto";
  std::optional<double> timeout; ///< seconds
  std::string flightRecord;      ///< "none": not written
  bool flightRecordIsGiven = false;
  std::optional<std::int64_t> steps;
  std::optional<double> epochs;
  std::optional<double> learningRate;
  std::int64_t evalEvery = 0; ///< steps; 0: only after the last one
  std::uint64_t seed = 0;
  bool seedIsGiven = false;
  bool shuffle = false;
  bool report = false;
  bool trustNetwork = false;

  /// `--steps=0`: the run evaluates, and trains nothing.
  bool onlyEvaluates() const { return steps && *steps == 0; }
  /// Where a failure leaves the last actions; each start of a run has a file of its own. Empty:
  /// nowhere.
  std::string flightRecordFile() const;
};

/// Reads the command line of a program with these plans into `options`. Returns nothing if the
/// program is to go on; otherwise the exit status (0 after `--help`, 2 for an unknown or ill-formed
/// option, one given twice or a number outside of its range), the message having been printed.
std::optional<int> parseCommandLine(Plans plans, int argc, char **argv, Options &options);

/// Errors: the flight record of a failure, of this start or of a restart, of all ranks or of some,
/// would replace one of `files`, which are those of the run; one that the command line names would
/// lie in a folder of checkpoints, cannot be written, or is the log of another run.
void checkFlightRecord(const Options &options, const std::vector<base::NamedFile> &files);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_COMMANDLINE_H
