//===- Hyperparameters.h - rate, schedule and constants of a run -*- C++ -*-===//
//
// Each setting comes from the command line, otherwise from the checkpoint that the run continues
// from, otherwise from the program.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_HYPERPARAMETERS_H
#define FSDP_RUNTIME_TRAIN_HYPERPARAMETERS_H

#include "runtime/program/Program.h"
#include "runtime/train/CheckpointManifest.h"
#include "runtime/train/CommandLine.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// A setting whose value differs from the checkpoint's.
struct ChangedSetting {
  std::string name; ///< "min_lr", as records have it; the option is --min-lr
  std::string before, now;
};

/// "--weight-decay": the option of the constant `weight_decay`.
std::string constantOption(std::string name);

struct Hyperparameters {
  using Constant = CheckpointManifest::Constant;

  float rate = 0; ///< at the end of the warmup
  ScheduleOptions schedule;
  std::int64_t end = 0; ///< the step where the schedule ends
  bool endIsGiven = false;
  std::string rule;                ///< Program::updateRule
  std::vector<Constant> constants; ///< of it, in the order of Program::updateConstants
  float clip = 0;                  ///< norm to which gradients are clipped; 0: to none
  base::ParameterGroups groups;
  std::vector<ChangedSetting> changes; ///< since the checkpoint

  /// `from`: the manifest of the checkpoint that a run of `steps` steps continues from; null: none.
  /// Errors, with the exit status of a bad command line, the same on all ranks: an option that has
  /// no effect with the schedule or the weight decay; a minimum above the rate; a rate of a
  /// parameter that f32 does not have.
  static Hyperparameters of(const Program &program, const Options &options, std::int64_t steps,
                            const CheckpointManifest *from);

  /// Whether the schedule has an end.
  bool ends() const {
    return schedule.kind != Schedule::Constant && schedule.kind != Schedule::InverseSqrt;
  }
  /// Whether the update has a weight decay other than 0.
  bool decays() const;
  /// ParameterGroups::remarkOnNoDecay() of the parameters of `program`.
  std::string remarkOnNoDecay(const Program &program) const;
  /// Names of settings and their values, with the fewest digits that read back as the same f32.
  std::vector<std::pair<std::string, std::string>> settings() const;
  /// The settings of a step state.
  void writeTo(StepState &state) const;
  /// "--schedule=cosine --warmup=3": the settings besides the rate that are not those of `program`.
  std::string describeOther(const Program &program) const;
  /// "--lr 0.1 (was 0.05), --warmup 3 (was 2)"; empty if none has changed.
  std::string describeChanges() const;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_HYPERPARAMETERS_H
