//===- Options.h - options of a generated program ---------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_OPTIONS_H
#define FSDP_RUNTIME_TRAIN_OPTIONS_H

#include "base/ParameterGroups.h"
#include "runtime/program/Program.h"
#include "runtime/train/InitialWeights.h"
#include "runtime/train/Spikes.h"
#include "runtime/train/TextGeneration.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The options of the command line.
struct Options {
  std::vector<std::string> data;    ///< words of --data, see sourcesOf()
  std::vector<std::string> valData; ///< of --val-data
  std::vector<InitialFile> init;
  std::string initMissing = "error"; ///< or "draw"
  std::string exportTo;
  std::string exportMerged;
  std::vector<std::string> exportOnly; ///< patterns of names; empty for all parameters
  std::string log;
  std::string onNan;   ///< "stop", "skip", "rollback"; "" (not given) skips and writes no BadStep
  std::string onSpike; ///< "warn", "stop", "skip", "rollback"; "" (not given): nothing is a spike
  SpikeRule spikes;
  bool logHeader = false;
  bool logData = false; ///< the log has a digest of the samples of each step
  std::string trace;
  std::string save;           ///< root of checkpoints
  std::int64_t saveEvery = 0; ///< steps; 0: only after the last one and on a signal
  std::int64_t keep = 0;      ///< checkpoints; 0: all
  bool saveAsync = false;
  std::string saveErrors = "stop";
  std::string
      resume; ///< a root, the folder of a step, or "latest": the latest checkpoint of `save`
  bool startOver = false; ///< skips checkpoints that cannot be used, even if that is all of them
  const Program *plan = nullptr; ///< that of --plan; null: chosen by the number of ranks
  std::int64_t maxRestarts = 0;
  bool elastic = false;          ///< a restart uses a plan for fewer ranks, if there is one
  std::int64_t restarts = 0;     ///< number of restarts of this run so far
  std::string restartCause;      ///< of the last restart
  bool allowModelChange = false; ///< continue although the weights are of another model
  std::string command;           ///< the program, as the user named it
  std::string arguments;         ///< the command line after it, as a shell reads it; of @FILE
                                 ///< the options
  std::string communicator = "auto";
  std::int64_t threads = 0;      ///< that compute in a rank; 0: as many as it has cores
  std::optional<double> timeout; ///< seconds
  std::string flightRecord;      ///< "none": not written
  bool flightRecordIsGiven = false;
  std::optional<std::int64_t> steps;
  std::optional<double> epochs;
  std::optional<double> learningRate;
  std::optional<std::string> schedule; ///< a name of kScheduleNames
  std::optional<std::int64_t> warmup;  ///< steps
  std::optional<double> minRate;
  std::optional<double> decayShare;
  std::optional<std::int64_t> scheduleSteps; ///< where the schedule ends
  std::map<std::string, double> constants;   ///< of the update rule, by name, and "clip"
  base::GroupOptions groups;
  std::int64_t evalEvery = 0; ///< steps; 0: only after the last one
  std::uint64_t seed = 0;
  bool seedIsGiven = false;
  bool shuffle = false;
  bool report = false;
  bool printsConfig = false;
  bool trustNetwork = false;
  std::string tokenizer; ///< folder whose tokenizer goes with the weights; empty: theirs
  std::optional<GenerationOptions> generation; ///< of `generate`, which trains nothing either

  /// `eval` and `--steps=0`: the run evaluates, and trains nothing; `generate` too.
  bool onlyEvaluates() const { return steps && *steps == 0; }
  /// Whether the output and the log are the result of an evaluation.
  bool evaluates() const { return onlyEvaluates() && !valData.empty(); }
  /// The file for the latest actions after a failure; each restart has its own. Empty: none.
  std::string flightRecordFile() const;
  /// The file for BadStep::record, beside the flight record. Empty: none, as where the record is
  /// for the user's temporary folder.
  std::string badStepFile() const;
  /// The safetensors file beside it, for the inputs of that step.
  std::string badInputsFile() const;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_OPTIONS_H
