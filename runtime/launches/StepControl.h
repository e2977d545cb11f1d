//===- StepControl.h - launches of kernels/StepControl.h -----*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_STEPCONTROL_H
#define FSDP_RUNTIME_LAUNCHES_STEPCONTROL_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/StepControl.h"
#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// lr = the schedule's rate for this step.
inline void learning_rate(Context &c, int stream, const char *name, Schedule schedule,
                          ArenaSpan<StepState> state, ArenaSpan<float> lr) {
  launch(
      c, stream, name, reads(state), writes(lr),
      [schedule](const StepState *state, float *lr) {
        *lr = kernels::learningRate(schedule, *state);
      },
      Work{"learning_rate"});
}

/// ok = all of the scalars are finite. They must be equal on every rank, so that all agree.
template <typename... Scalar>
void all_finite(Context &c, int stream, const char *name, ArenaSpan<bool> ok,
                ArenaSpan<Scalar>... values) {
  launch(
      c, stream, name, reads(values...), writes(ok),
      [](const Scalar *...values, bool *ok) { *ok = (... && __builtin_isfinite(*values)); },
      Work{"all_finite"});
}

/// Leaves a number for the log, as output `index` of the walk. The slice may be reused after it.
inline void output(Context &c, int stream, const char *name, int index, ArenaSpan<float> value) {
  launch(
      c, stream, name, reads(value), writes(),
      [outputs = c.outputs, index](const float *value) { outputs[index] = *value; },
      Work{"output"});
  c.leftOutput(stream);
}

/// Leaves a sum and its weight, as output `index` of a walk that evaluates.
inline void output(Context &c, int stream, const char *name, int index, ArenaSpan<double> sum,
                   ArenaSpan<double> weight) {
  launch(
      c, stream, name, reads(sum, weight), writes(),
      [sums = c.sums, index](const double *sum, const double *weight) {
        sums[index] = {*sum, *weight};
      },
      Work{"output"});
  c.leftOutput(stream);
}

/// count = how many samples of the batch being performed count.
inline void sample_count(Context &c, int stream, const char *name, ArenaSpan<StepState> state,
                         ArenaSpan<std::int64_t> count) {
  launch(
      c, stream, name, reads(state), writes(count),
      [](const StepState *state, std::int64_t *count) { *count = state->samples; },
      Work{"sample_count"});
}

/// count = how many samples of the microbatch being performed count.
inline void microbatch_samples(Context &c, int stream, const char *name, Microbatches batches,
                               ArenaSpan<StepState> state, ArenaSpan<std::int64_t> count) {
  launch(
      c, stream, name, reads(state), writes(count),
      [batches](const StepState *state, std::int64_t *count) {
        *count = kernels::microbatchSamples(batches, *state);
      },
      Work{"microbatch_samples"});
}

/// Goes on to the next of `count` microbatches of the step, after the last to the first.
inline void next_microbatch(Context &c, int stream, const char *name, std::int64_t count,
                            ArenaSpan<StepState> state) {
  launch(
      c, stream, name, reads(state), writes(state),
      [count](const StepState *, StepState *state) {
        state->microbatch = (state->microbatch + 1) % count;
      },
      Work{"next_microbatch"});
}

/// Ends the step: counts it, and the update if there was one. `bad` lies behind `state`.
inline void advance(Context &c, int stream, const char *name, ArenaSpan<StepState> state,
                    ArenaSpan<bool> ok, ArenaSpan<BadGradients> bad) {
  launch(
      c, stream, name, reads(state, ok, bad), writes(state, bad),
      [](const StepState *, const bool *ok, const BadGradients *, StepState *state,
         BadGradients *bad) { kernels::advance(*state, *bad, *ok); },
      Work{"advance"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_STEPCONTROL_H
