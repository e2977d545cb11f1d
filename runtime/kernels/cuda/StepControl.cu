//===- StepControl.cu - kernels that carry a step to the next -------------===//
//
// One thread each: their cost is their launch. And the sum over the ranks of one device.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

namespace {

using namespace device;

__global__ void setRate(const StepState *state, float *lr) {
  const Schedule &schedule = state->schedule;
  const double base = state->baseLearningRate, minimum = schedule.minimum;
  const auto step = static_cast<double>(state->step + 1),
             steps = static_cast<double>(schedule.steps);
  const auto warmup = static_cast<double>(schedule.warmup);
  const double begin = schedule.kind == Schedule::Wsd
                           ? fmax(warmup, steps - static_cast<double>(schedule.decaySteps))
                           : warmup;
  const double progress = fmin(fmax((step - begin) / fmax(steps - begin, 1.0), 0.0), 1.0);
  double rate = base;
  if (step <= warmup)
    rate = base * step / warmup;
  else if (schedule.kind == Schedule::Linear || schedule.kind == Schedule::Wsd)
    rate = minimum + (base - minimum) * (1 - progress);
  else if (schedule.kind == Schedule::Cosine)
    rate = minimum + (base - minimum) * 0.5 * (1 + cos(3.14159265358979323846 * progress));
  else if (schedule.kind == Schedule::InverseSqrt)
    rate = fmax(minimum, base * sqrt(fmax(warmup, 1.0) / step));
  *lr = static_cast<float>(rate);
}

__global__ void setClipScale(const StepState *state, const float *norm, float *scale) {
  const float ratio = state->clip / (*norm + 1e-6f);
  *scale = ratio >= 1 ? 1.0f : ratio; // NaN stays one
}

__global__ void accept(const StepState *state, const float *loss, const float *norm, bool *ok) {
  *ok =
      isfinite(*loss) && isfinite(*norm) && *loss <= state->lossLimit && *norm <= state->normLimit;
}

__global__ void countSamples(const StepState *state, std::int64_t *count) {
  *count = state->samples;
}

/// How many of the first `counting` samples of the batch are in part `number` of the rank.
__device__ inline std::int64_t samplesOfPart(const Microbatches &batches, std::int64_t counting,
                                             std::int64_t number) {
  const std::int64_t behind = counting - batches.rows * batches.index;
  const std::int64_t samples = behind < batches.rows ? behind : batches.rows;
  const std::int64_t left = samples - number * batches.part;
  return left < 0 ? 0 : left < batches.part ? left : batches.part;
}

__global__ void countMicrobatch(Microbatches batches, const StepState *state, std::int64_t *count) {
  *count = samplesOfPart(batches, batches.batch < state->samples ? batches.batch : state->samples,
                         batches.number < 0 ? state->microbatch : batches.number);
}

__global__ void countMicrobatchAt(Microbatches batches, std::int64_t *count) {
  *count = samplesOfPart(batches, batches.batch, batches.number);
}

__global__ void nextMicrobatch(std::int64_t count, StepState *state) {
  state->microbatch = static_cast<std::int32_t>((state->microbatch + 1) % count);
}

__global__ void nextStep(const bool *ok, StepState *state, BadGradients *bad) {
  ++state->step;
  state->updates += *ok;
  state->badSteps = *ok ? 0 : state->badSteps + 1;
  if (*ok)
    bad->ofStep = bad->ofDeferred = -1;
}

} // namespace

cudaError_t learning_rate(const StepState *state, float *lr, cudaStream_t stream) {
  return launchKernel(setRate, dim3(1), 1, 0, stream, state, lr);
}

cudaError_t clip_scale(const StepState *state, const float *norm, float *scale,
                       cudaStream_t stream) {
  return launchKernel(setClipScale, dim3(1), 1, 0, stream, state, norm, scale);
}

cudaError_t acceptable(const StepState *state, const float *loss, const float *norm, bool *ok,
                       cudaStream_t stream) {
  return launchKernel(accept, dim3(1), 1, 0, stream, state, loss, norm, ok);
}

cudaError_t sample_count(const StepState *state, std::int64_t *count, cudaStream_t stream) {
  return launchKernel(countSamples, dim3(1), 1, 0, stream, state, count);
}

cudaError_t microbatch_samples(Microbatches batches, const StepState *state, std::int64_t *count,
                               cudaStream_t stream) {
  return launchKernel(countMicrobatch, dim3(1), 1, 0, stream, batches, state, count);
}

cudaError_t microbatch_samples(Microbatches batches, std::int64_t *count, cudaStream_t stream) {
  return launchKernel(countMicrobatchAt, dim3(1), 1, 0, stream, batches, count);
}

cudaError_t next_microbatch(std::int64_t count, const StepState *, StepState *next,
                            cudaStream_t stream) {
  return launchKernel(nextMicrobatch, dim3(1), 1, 0, stream, count, next);
}

cudaError_t advance(const StepState *, const bool *ok, const BadGradients *, StepState *next,
                    BadGradients *bad, cudaStream_t stream) {
  return launchKernel(nextStep, dim3(1), 1, 0, stream, ok, next, bad);
}

cudaError_t find_kernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, nextStep);
}

} // namespace fsdp::rt
