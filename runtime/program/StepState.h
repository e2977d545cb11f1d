//===- StepState.h - state that changes from step to step -------*- C++ -*-===//
//
// The state of training that is not a tensor of the model. It is in the
// arena and is advanced by a launch, not by the host: nothing that changes
// from step to step is passed by value, so one captured program serves every
// step.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_STEPSTATE_H
#define FSDP_RUNTIME_PROGRAM_STEPSTATE_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/Limits.h"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace fsdp::rt {

/// How the learning rate changes over the steps. With warmup w, the rate of step t (from 1) is
/// base * t / w while t <= w. After it, with n = steps:
///   Constant:    base;
///   Linear:      minimum + (base - minimum) * (1 - p(w));
///   Cosine:      minimum + (base - minimum) * (1 + cos(pi p(w))) / 2;
///   InverseSqrt: max(minimum, base * sqrt(max(w, 1) / t));
///   Wsd:         minimum + (base - minimum) * (1 - p(max(w, n - decaySteps))),
/// where p(s) = (t - s) / (n - s), in [0, 1], is how far step t is from step s to the end.
/// docs/optimizers.md has the sources.
struct Schedule {
  enum Kind : std::int32_t { Constant, Linear, Cosine, InverseSqrt, Wsd };

  Kind kind;
  float minimum;           ///< rate
  std::int64_t warmup;     ///< steps
  std::int64_t steps;      ///< where it ends; later steps have the last rate
  std::int64_t decaySteps; ///< in which the rate of Wsd falls, the last ones of `steps`
};

/// The words of options and checkpoints, by kind.
constexpr const char *kScheduleNames[] = {"constant", "linear", "cosine", "inverse-sqrt", "wsd"};

/// A schedule for any number of steps.
struct ScheduleOptions {
  Schedule::Kind kind = Schedule::Constant;
  std::int64_t warmup = 0; ///< steps
  float minimum = 0;       ///< rate
  float decayShare = 0.1f; ///< of the steps, in which the rate of Wsd falls; in [0, 1)

  /// The schedule that ends at step `steps`.
  Schedule over(std::int64_t steps) const {
    const double decay = static_cast<double>(decayShare) * static_cast<double>(steps);
    return {kind, minimum, warmup, steps, static_cast<std::int64_t>(decay + 0.5)};
  }
};

/// Held in the arena; written by the driver at the start, advanced by `advance`. Programs read the
/// settings of the run here, so that none is compiled into a kernel.
struct StepState {
  std::int64_t step;    ///< finished steps; the current one is step + 1
  std::int64_t updates; ///< steps whose update was applied: Adam's t - 1
  std::uint64_t seed;
  float baseLearningRate;
  std::int32_t badSteps; ///< consecutive steps whose loss or norm was not finite
  std::int64_t
      samples; ///< of the global batch being performed, how many count: the first ones. Set by
               ///< the driver before the segment; read on the device, never passed by value
  std::int32_t microbatch; ///< the current one of the step, from 0
  float clip;              ///< norm to which gradients are clipped; infinity: no clipping
  Schedule schedule;       ///< of the learning rate
  float constants[limits::kMaxUpdateConstants]; ///< of the update rule, in the order of its row
  /// Of loss and gradient norm: where one is above its limit, no update is applied.
  float lossLimit = std::numeric_limits<float>::infinity();
  float normLimit = std::numeric_limits<float>::infinity();
};

/// The entries that skipped updates write for the message that ends the job: on this rank, the
/// first parameter (in table order) with a gradient that is not finite in the last bad step; -1:
/// none. Deferred updates run on a stream of their own and have an entry of their own: no update
/// waits for one of another stream to write it.
struct BadGradients {
  std::int32_t ofStep = -1, ofDeferred = -1;

  /// The first parameter of both; -1: none.
  int first() const {
    if (ofStep < 0 || ofDeferred < 0)
      return ofStep < 0 ? ofDeferred : ofStep;
    return ofStep < ofDeferred ? ofStep : ofDeferred;
  }
};

/// The step state's buffer in the arena.
struct alignas(32) StepBuffer {
  StepState state;
  BadGradients bad;
};

static_assert(sizeof(StepState) == limits::kStepStateBytes &&
                  sizeof(BadGradients) == limits::kBadGradientsBytes &&
                  sizeof(BadGradients::ofStep) == limits::kBadGradientBytes &&
                  sizeof(StepBuffer) == limits::kStepBufferBytes,
              "the compiler plans so many bytes");
static_assert(std::is_trivially_copyable_v<StepBuffer>, "the step state is copied as bytes");

/// Entries after the step state.
constexpr ArenaSpan<BadGradients> badGradients(ArenaSpan<StepState> state) {
  return {state.end(), state.count};
}
/// Where updates of the step's own, and deferred ones, note the first parameter.
constexpr ArenaSpan<std::int32_t> badGradient(ArenaSpan<StepState> state) {
  return {state.end(), state.count};
}
constexpr ArenaSpan<std::int32_t> deferredBadGradient(ArenaSpan<StepState> state) {
  return {state.end() + sizeof(BadGradients::ofStep), state.count};
}

/// A number as a sum over samples and the total weight of its terms.
struct WeightedSum {
  double sum = 0, weight = 0;

  /// The mean; the sum, which is 0 then, where nothing counts.
  constexpr double mean() const { return weight == 0 ? sum : sum / weight; }
};

/// This many bad steps in a row end the job.
constexpr int kBadStepsInARow = 3;

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_STEPSTATE_H
