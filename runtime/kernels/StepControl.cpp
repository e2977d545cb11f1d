//===- StepControl.cpp ----------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

static double rateOf(Schedule schedule, const StepState &state) {
  const double base = state.baseLearningRate;
  const auto step = static_cast<double>(state.step + 1);
  const double warmup = schedule.warmup;
  if (step <= warmup)
    return base * step / warmup;
  const double length = std::max(static_cast<double>(state.totalSteps) - warmup, 1.0);
  const double progress = std::min((step - warmup) / length, 1.0);
  switch (schedule.kind) {
  case Schedule::Linear:
    return base * (1 - progress);
  case Schedule::Cosine:
    return base * 0.5 * (1 + std::cos(3.14159265358979323846 * progress));
  case Schedule::Constant:
    break;
  }
  return base;
}

void learningRate(Schedule schedule, const StepState *state, float *lr) {
  *lr = static_cast<float>(rateOf(schedule, *state));
}

void sampleCount(const StepState *state, std::int64_t *count) { *count = state->samples; }

void advance(const StepState *, const bool *ok, const BadGradients *, StepState *state,
             BadGradients *bad) {
  ++state->step;
  state->updates += *ok;
  state->badSteps = *ok ? 0 : state->badSteps + 1;
  if (*ok)
    *bad = BadGradients();
}

void microbatchSamples(Microbatches batches, const StepState *state, std::int64_t *count) {
  const std::int64_t samples =
      samplesOfRank(std::min(batches.batch, state->samples), batches.rows, batches.index);
  const std::int64_t left = samples - state->microbatch * batches.part;
  *count = std::clamp<std::int64_t>(left, 0, batches.part);
}

void nextMicrobatch(std::int64_t count, const StepState *, StepState *state) {
  state->microbatch = (state->microbatch + 1) % count;
}

} // namespace fsdp::rt::kernels
