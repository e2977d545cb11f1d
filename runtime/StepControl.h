//===- StepControl.h - launches that carry a step to the next ---*- C++ -*-===//

#ifndef FSDP_RUNTIME_STEPCONTROL_H
#define FSDP_RUNTIME_STEPCONTROL_H

#include "runtime/Launch.h"
#include "runtime/Program.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// The learning rate of the step being performed (see Schedule).
float learningRate(Schedule schedule, const StepState &state);
/// The first element that is NaN or infinite; `count` if none is.
std::size_t firstNonfinite(const float *values, std::size_t count);
/// The number of the parameter, in table order, that holds element `index` of the shard.
int parameterAt(const Storage &storage, int coordinate, std::size_t index);
/// Moves on to the next step.
void advance(StepState &state, bool ok);
} // namespace kernels

/// lr = the schedule's rate for this step.
inline void learning_rate(Context &c, int stream, const char *name, Schedule schedule,
                          Slice<StepState> state, Slice<float> lr) {
  launch(c, stream, name, reads(state), writes(lr), [schedule](const StepState *state, float *lr) {
    *lr = kernels::learningRate(schedule, *state);
  });
}

/// ok = loss and gradient norm are finite. Both must be equal on every rank, so that all agree.
template <typename Loss>
void check_finite(Context &c, int stream, const char *name, Slice<Loss> loss, Slice<float> gradNorm,
                  Slice<bool> ok) {
  launch(c, stream, name, reads(loss, gradNorm), writes(ok),
         [](const Loss *loss, const float *gradNorm, bool *ok) {
           *ok = __builtin_isfinite(*loss) && __builtin_isfinite(*gradNorm);
         });
}

/// Where the step is bad, notes the first parameter of `storage` whose gradient is not finite.
/// Costs nothing in a good step.
inline void find_nonfinite(Context &c, int stream, const char *name, const Storage &storage,
                           Slice<float> gradient, Slice<bool> ok, Slice<StepState> state) {
  const int coordinate = storage.communicator < 0 ? 0 : c.comm(storage.communicator).rank();
  launch(c, stream, name, reads(gradient, ok, state), writes(state),
         [storage = &storage, coordinate, count = gradient.count](
             const float *gradient, const bool *ok, const StepState *, StepState *state) {
           if (*ok)
             return;
           const std::size_t bad = kernels::firstNonfinite(gradient, count);
           if (bad == count)
             return;
           const int parameter = kernels::parameterAt(*storage, coordinate, bad);
           if (state->firstBad < 0 || parameter < state->firstBad)
             state->firstBad = parameter;
         });
}

/// Ends the step: counts it, and the update if there was one.
inline void advance(Context &c, int stream, const char *name, Slice<StepState> state,
                    Slice<bool> ok) {
  launch(
      c, stream, name, reads(state, ok), writes(state),
      [](const StepState *, const bool *ok, StepState *state) { kernels::advance(*state, *ok); });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_STEPCONTROL_H
