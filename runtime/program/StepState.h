//===- StepState.h - what changes from step to step -------------*- C++ -*-===//
//
// The state of training that is not a tensor of the model. It stands in the
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
#include <type_traits>

namespace fsdp::rt {

/// How the learning rate changes over the steps. With warmup w, the rate of
/// step s (from 1) is base * s / w while s <= w. After it:
///   Constant: base;
///   Linear:   base * (1 - p);
///   Cosine:   base * (1 + cos(pi p)) / 2,
/// where p = (s - w) / (total - w) reaches 1 with the last step.
struct Schedule {
  enum Kind : std::int32_t { Constant, Linear, Cosine };

  Kind kind;
  std::int64_t warmup; ///< steps
};

/// Held in the arena; written by the driver at the start, advanced by `advance`.
struct alignas(64) StepState {
  std::int64_t step;       ///< steps finished; the one being performed is step + 1
  std::int64_t totalSteps; ///< where linear and cosine schedules end
  std::int64_t updates;    ///< steps whose update was applied: Adam's t - 1
  std::uint64_t seed;
  float baseLearningRate;
  std::int32_t badSteps; ///< consecutive steps whose loss or norm was not finite
  std::int64_t
      samples; ///< of the global batch being performed, how many count: the first ones. Set by
               ///< the driver before the segment; read on the device, never passed by value
  std::int64_t microbatch; ///< of the step, the one being performed, from 0
};

/// What updates note when they are skipped, for the message that ends the job: on this rank, the
/// first parameter (in table order) with a gradient that is not finite in the last bad step; -1:
/// none. Deferred updates run on a stream of their own and have an entry of their own: no update
/// waits for one of another stream to write it.
struct alignas(64) BadGradients {
  std::int32_t ofStep = -1, ofDeferred = -1;

  /// The first parameter of both; -1: none.
  int first() const {
    if (ofStep < 0 || ofDeferred < 0)
      return ofStep < 0 ? ofDeferred : ofStep;
    return ofStep < ofDeferred ? ofStep : ofDeferred;
  }
};

/// The step state's buffer in the arena.
struct StepBuffer {
  StepState state;
  BadGradients bad;
};

static_assert(sizeof(StepState) == limits::kStepStateBytes &&
                  sizeof(BadGradients) == limits::kBadGradientsBytes &&
                  sizeof(BadGradients::ofStep) == limits::kBadGradientBytes &&
                  sizeof(StepBuffer) == limits::kStepBufferBytes,
              "the compiler plans so many bytes");
static_assert(std::is_trivially_copyable_v<StepBuffer>, "the step state is copied as bytes");

/// What lies behind the step state.
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

/// A number as a sum over samples and the weight of what it runs over.
struct WeightedSum {
  double sum = 0, weight = 0;
};

/// This many bad steps in a row end the job.
constexpr int kBadStepsInARow = 3;

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_STEPSTATE_H
