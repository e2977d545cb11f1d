//===- StepControl.cpp ----------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

static double rateOf(const StepState &state) {
  const Schedule &schedule = state.schedule;
  const double base = state.baseLearningRate, minimum = schedule.minimum;
  const auto step = static_cast<double>(state.step + 1),
             steps = static_cast<double>(schedule.steps);
  const auto warmup = static_cast<double>(schedule.warmup);
  if (step <= warmup)
    return base * step / warmup;
  const auto progressFrom = [&](double begin) {
    return std::clamp((step - begin) / std::max(steps - begin, 1.0), 0.0, 1.0);
  };
  switch (schedule.kind) {
  case Schedule::Linear:
    return minimum + (base - minimum) * (1 - progressFrom(warmup));
  case Schedule::Cosine:
    return minimum +
           (base - minimum) * 0.5 * (1 + std::cos(3.14159265358979323846 * progressFrom(warmup)));
  case Schedule::InverseSqrt:
    return std::max(minimum, base * std::sqrt(std::max(warmup, 1.0) / step));
  case Schedule::Wsd: {
    const double begin = std::max(warmup, steps - static_cast<double>(schedule.decaySteps));
    return minimum + (base - minimum) * (1 - progressFrom(begin));
  }
  case Schedule::Constant:
    break;
  }
  return base;
}

void learningRate(const StepState *state, float *lr) { *lr = static_cast<float>(rateOf(*state)); }

void clipScale(const StepState *state, const float *norm, float *scale) {
  const float ratio = state->clip / (*norm + 1e-6f);
  *scale = ratio >= 1 ? 1.0f : ratio; // NaN stays one
}

void acceptable(const StepState *state, const float *loss, const float *norm, bool *ok) {
  *ok = std::isfinite(*loss) && std::isfinite(*norm) && *loss <= state->lossLimit &&
        *norm <= state->normLimit;
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

/// How many of the first `counting` samples of the batch are in part `number` of the rank.
static std::int64_t samplesOfPart(const Microbatches &batches, std::int64_t counting,
                                  std::int64_t number) {
  const std::int64_t samples = samplesOfRank(counting, batches.rows, batches.index);
  return std::clamp<std::int64_t>(samples - number * batches.part, 0, batches.part);
}

void microbatchSamples(Microbatches batches, const StepState *state, std::int64_t *count) {
  *count = samplesOfPart(batches, std::min(batches.batch, state->samples),
                         batches.number < 0 ? state->microbatch : batches.number);
}

void microbatchSamplesAt(Microbatches batches, std::int64_t *count) {
  *count = samplesOfPart(batches, batches.batch, batches.number);
}

void nextMicrobatch(std::int64_t count, const StepState *, StepState *state) {
  state->microbatch = static_cast<std::int32_t>((state->microbatch + 1) % count);
}

} // namespace fsdp::rt::kernels
