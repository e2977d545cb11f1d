//===- StepControl.cpp ----------------------------------------------------===//

#include "runtime/kernels/StepControl.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

float learningRate(Schedule schedule, const StepState &state) {
  const double base = state.baseLearningRate;
  const auto step = static_cast<double>(state.step + 1);
  const double warmup = schedule.warmup;
  if (step <= warmup)
    return static_cast<float>(base * step / warmup);
  const double length = std::max(static_cast<double>(state.totalSteps) - warmup, 1.0);
  const double progress = std::min((step - warmup) / length, 1.0);
  switch (schedule.kind) {
  case Schedule::Linear:
    return static_cast<float>(base * (1 - progress));
  case Schedule::Cosine:
    return static_cast<float>(base * 0.5 * (1 + std::cos(3.14159265358979323846 * progress)));
  case Schedule::Constant:
    break;
  }
  return static_cast<float>(base);
}

void advance(StepState &state, BadGradients &bad, bool ok) {
  ++state.step;
  state.updates += ok;
  state.badSteps = ok ? 0 : state.badSteps + 1;
  if (ok)
    bad = BadGradients();
}

std::int64_t microbatchSamples(Microbatches batches, const StepState &state) {
  const std::int64_t samples =
      samplesOfRank(std::min(batches.batch, state.samples), batches.rows, batches.index);
  const std::int64_t left = samples - state.microbatch * batches.part;
  return std::clamp<std::int64_t>(left, 0, batches.part);
}

} // namespace fsdp::rt::kernels
