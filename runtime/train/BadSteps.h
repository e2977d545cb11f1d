//===- BadSteps.h - steps whose loss or norm is not finite ------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_BADSTEPS_H
#define FSDP_RUNTIME_TRAIN_BADSTEPS_H

#include "base/Error.h"
#include "runtime/data/Dataset.h"
#include "runtime/train/Options.h"
#include "runtime/train/Prints.h"
#include "runtime/train/Spikes.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Maximum number of rollbacks to one checkpoint: each skips other samples, so the samples are not
/// the cause.
constexpr std::int64_t kMaxRollbacks = 3;

/// A step whose loss or gradient norm is not finite, or in which a check of the model failed, or a
/// spike. Its update was skipped on the device, except with --on-spike=warn.
struct BadStep {
  std::int64_t step;
  double loss, gradNorm, rate;
  std::string parameter;             ///< the first with a gradient that is not finite; "": none
  std::int64_t position;             ///< of the batch's first sample in the order of the run
  std::vector<std::int64_t> samples; ///< of the batch, numbers in the data set
  std::optional<FailedCheck> failed = {}; ///< the first
  std::optional<Spike> spike = {};

  /// "got loss inf and gradient norm nan in step 7, WHAT; the first gradient that is not finite is
  /// that of 'kernel'"; begins with describeBad. Of a spike "got loss 9 above 4 in step 7, WHAT".
  std::string describe(const std::string &what) const;
  /// "a step that is not finite", or Spike::kind.
  std::string kind() const { return spike ? spike->kind() : "a step that is not finite"; }
  /// A JSON object on one line: `{"step": 7, "loss": "inf", "grad_norm": "nan", "lr": 0.1,
  /// "parameter": "kernel", "data": ["d.bin"], "position": 60, "samples": [60, …], "inputs":
  /// "b.safetensors"}`; `parameter` is null where every gradient is finite, `inputs`, the file of
  /// writeBadInputs, where it is empty. Of a check with `"check": "scores", "values": 3`, of a
  /// spike with `"loss_limit": 4, "grad_norm_limit": 2`.
  std::string record(const std::vector<std::string> &data, const std::string &inputs) const;
};

/// "got loss inf and gradient norm nan", or of a check "got 3 values that are not finite in
/// 'scores', with loss …".
std::string describeBad(const std::optional<FailedCheck> &failed, double loss, double gradNorm);

/// Ends the run, with a message for all ranks together; it is not restarted.
[[noreturn]] void endRun(const BadStep &bad, const std::string &what);
/// The error of the last of `count` bad steps in a row, after which a restart is tried.
base::Error tooManyBadSteps(const BadStep &bad, int count);

/// The rollbacks of a run.
class Rollbacks {
public:
  /// One more, to the checkpoint of step `target`; returns its number. Ends the run if there have
  /// been too many to that checkpoint.
  std::int64_t add(const BadStep &bad, std::int64_t target);

private:
  std::int64_t count = 0, latestTarget = -1, toTarget = 0;
};

/// "got loss …: rollback 1 to step 50, past 70 samples"
std::string describeRollback(std::int64_t number, const BadStep &bad, std::int64_t target,
                             std::int64_t samples);

/// Warns on standard error of a last step whose update was skipped, but which did not end the run.
void warnOfLastStep(const char *program, const BadStep &bad);

/// Writes the samples `samples` of `data`, the batch of a bad step, to the safetensors file `path`,
/// atomically: a tensor for each of `inputs`, of its name and type, [samples, extents of one
/// sample], as `--data` takes it. False on failure, with a note why on standard error.
bool writeBadInputs(const std::string &path, Table<Input> inputs, const Dataset &data,
                    const std::vector<std::int64_t> &samples);

/// Replaces the file atomically. Prints where it is, or on failure a note why not, on standard
/// error.
void writeBadStep(const std::string &path, const std::string &record);

/// Writes the file of the options with the record of `bad`, and the one beside it with its inputs,
/// of `data` (null: the program has none).
void writeBadStep(const BadStep &bad, const Options &options, Table<Input> inputs,
                  const Dataset *data);

/// The line of a log after the step to which the run has gone back: `{"rollback": {"number": 1,
/// "from_step": 57, "to_step": 50, "skipped": [500, 570], "cause": "…"}}`. `skipped`: positions in
/// the order of the run, from the first to before the second.
std::string rollbackLine(std::int64_t number, const BadStep &bad, std::int64_t toStep,
                         std::int64_t skippedFrom, std::int64_t skippedTo);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_BADSTEPS_H
