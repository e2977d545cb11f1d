//===- Optimizer.cu - updates of parameter shards -------------------------===//
//
// Floors for n elements of f32: 28 n bytes for adam and adamw (parameter and both moments read and
// written, gradient read), 20 n for sgd with momentum, 12 n without: one pass, in 16-byte accesses.
// Rate, scale, verdict and step number are read on the device.
//
// square_sum: 4 n bytes. A block sums a fixed stretch in double, a second kernel sums the stretches
// in order: no bit depends on the device.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/ShardParts.h"

#include <cmath>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;
constexpr std::size_t kChunk = 8192; ///< elements of a block

/// What all updates read and write. `buffer`, `first` and `second` are the states, null where an
/// update has none.
struct Update {
  float *parameter;
  const float *gradient;
  float *first, *second;
  const float *lr, *scale; ///< scale null: 1
  const bool *ok;
  const StepState *state;
  std::int32_t *firstBad; ///< see BadGradients
};

// Rules are plain, so that one may lie in shared memory: what depends on the step is computed once
// a block.
struct SgdRule {
  float momentum, weightDecay;
  bool hasBuffer;
  float lr, scale;

  __device__ void prepare(const Update &u) {
    lr = *u.lr;
    scale = u.scale ? *u.scale : 1.0f;
  }
  __device__ void apply(bool decays, float g, float &p, float &buffer, float &) const {
    const float step = g * scale + (decays ? weightDecay : 0.0f) * p;
    buffer = hasBuffer ? momentum * buffer + step : step;
    p -= lr * buffer;
  }
};

struct AdamRule {
  float beta1, beta2, epsilon, weightDecay;
  bool decoupled, deferred;
  float scale, rate, secondFix, shrink;

  __device__ void prepare(const Update &u) {
    const double t = static_cast<double>(u.state->updates + !deferred), lr = *u.lr;
    scale = u.scale ? *u.scale : 1.0f;
    rate = static_cast<float>(lr / (1 - pow(double(beta1), t)));
    secondFix = static_cast<float>(1 / sqrt(1 - pow(double(beta2), t)));
    shrink = static_cast<float>(1 - lr * double(weightDecay));
  }
  __device__ void apply(bool decays, float g, float &p, float &m, float &v) const {
    const float decay = decays && !decoupled ? weightDecay : 0.0f;
    const float gradient = g * scale + decay * p;
    m = beta1 * m + (1.0f - beta1) * gradient;
    v = beta2 * v + (1.0f - beta2) * (gradient * gradient);
    // With epsilon 0 an element that never had a gradient would get 0 / 0.
    const float root = sqrtf(v) * secondFix + epsilon;
    p = p * (decays && decoupled ? shrink : 1.0f) - rate * (root == 0 ? 0.0f : m / root);
  }
};

template <int N, class Rule>
__device__ void updateAt(const Rule &rule, const ShardParts &parts, const Update &u, int states,
                         std::size_t i, int &part) {
  float g[N], p[N], m[N] = {}, v[N] = {};
  loadFloats(u.gradient + i, true, g);
  loadFloats(static_cast<const float *>(u.parameter) + i, true, p);
  if (states > 0)
    loadFloats(static_cast<const float *>(u.first) + i, true, m);
  if (states > 1)
    loadFloats(static_cast<const float *>(u.second) + i, true, v);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    part = parts.partOf(i + k, part);
    rule.apply(parts.decays(part), g[k], p[k], m[k], v[k]);
  }
  storeFloats(p, u.parameter + i);
  if (states > 0)
    storeFloats(m, u.first + i);
  if (states > 1)
    storeFloats(v, u.second + i);
}

/// Elements [begin, end) of the shard; `vectors`: all addresses are aligned.
template <class Rule>
__global__ void __launch_bounds__(kThreads)
    update(Rule rule, ShardParts parts, Update u, int states, std::size_t begin, std::size_t end,
           bool vectors) {
  const std::size_t first = begin + blockIdx.x * kChunk;
  const std::size_t last = first + kChunk < end ? first + kChunk : end;
  int part = 0;
  if (!*u.ok) {
    // The first parameter with a gradient that is not finite, for the message that ends the job.
    for (std::size_t i = first + threadIdx.x; i < last; i += kThreads)
      if (!isfinite(u.gradient[i])) {
        part = parts.partOf(i, part);
        // -1, which stands for none, is the largest unsigned number.
        atomicMin(reinterpret_cast<unsigned *>(u.firstBad),
                  static_cast<unsigned>(parts.firstParameter + part));
      }
    return;
  }
  __shared__ Rule prepared;
  if (threadIdx.x == 0) {
    rule.prepare(u);
    prepared = rule;
  }
  __syncthreads();
  rule = prepared;
  const std::size_t whole = vectors ? first + (last - first) / 4 * 4 : first;
  for (std::size_t i = first + threadIdx.x * 4; i < whole; i += kThreads * 4)
    updateAt<4>(rule, parts, u, states, i, part);
  for (std::size_t i = whole + threadIdx.x; i < last; i += kThreads)
    updateAt<1>(rule, parts, u, states, i, part);
}

template <class Rule>
cudaError_t launch(const Rule &rule, ShardOf shard, const Update &u, int states,
                   cudaStream_t stream) {
  const std::size_t count = shard.storage->shard.count;
  const bool vectors = aligned16(u.parameter, u.gradient, u.first, u.second);
  noteVectors(vectors);
  ShardParts parts;
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t end = parts.fill(shard, begin);
    if (cudaError_t status =
            launchKernel(update<Rule>, dim3(ceilDiv(end - begin, kChunk)), kThreads, 0, stream,
                         rule, parts, u, states, begin, end, vectors && begin % 4 == 0))
      return status;
    begin = end;
  }
  return cudaSuccess;
}

AdamRule ruleOf(const Adam &options, bool decoupled) {
  return {options.beta1,
          options.beta2,
          options.epsilon,
          options.weightDecay,
          decoupled,
          options.deferred,
          0,
          0,
          0,
          0};
}

constexpr std::size_t kStretch = 16384; ///< elements that one block squares

__global__ void __launch_bounds__(kThreads)
    squareStretches(std::size_t count, bool vectors, const float *values, double *sums) {
  __shared__ double scratch[kMaxWarps];
  const std::size_t first = blockIdx.x * kStretch;
  const std::size_t last = first + kStretch < count ? first + kStretch : count;
  double sum = 0;
  // A thread has the same elements, in the same order, whether it loads four at once or one.
  for (std::size_t i = first + threadIdx.x * 4; i < last; i += kThreads * 4) {
    float v[4] = {};
    if (vectors && i + 4 <= last)
      loadFloats(values + i, true, v);
    else
      for (std::size_t k = 0; i + k < last && k < 4; ++k)
        v[k] = values[i + k];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      sum += double(v[k]) * double(v[k]);
  }
  sum = blockReduce<Plus>(sum, scratch);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    sumStretches(std::size_t count, const double *sums, double *out) {
  __shared__ double scratch[kMaxWarps];
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < count; i += kThreads)
    sum += sums[i];
  sum = blockReduce<Plus>(sum, scratch);
  if (threadIdx.x == 0)
    *out = sum;
}

} // namespace

cudaError_t sgd(ShardOf shard, Sgd options, const float *, const float *gradient, const float *lr,
                const float *scale, const bool *ok, const StepState *state, const std::int32_t *,
                float *parameter, std::int32_t *firstBad, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return launch(SgdRule{options.momentum, options.weightDecay, false, 0, 0}, shard,
                {parameter, gradient, nullptr, nullptr, lr, scale, ok, state, firstBad}, 0, stream);
}

cudaError_t sgd(ShardOf shard, Sgd options, const float *, const float *gradient, const float *,
                const float *lr, const float *scale, const bool *ok, const StepState *state,
                const std::int32_t *, float *parameter, float *buffer, std::int32_t *firstBad,
                cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return launch(SgdRule{options.momentum, options.weightDecay, true, 0, 0}, shard,
                {parameter, gradient, buffer, nullptr, lr, scale, ok, state, firstBad}, 1, stream);
}

cudaError_t adam(ShardOf shard, Adam options, const float *, const float *gradient, const float *,
                 const float *, const float *lr, const float *scale, const bool *ok,
                 const StepState *state, const std::int32_t *, float *parameter, float *first,
                 float *second, std::int32_t *firstBad, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return launch(ruleOf(options, false), shard,
                {parameter, gradient, first, second, lr, scale, ok, state, firstBad}, 2, stream);
}

cudaError_t adamw(ShardOf shard, Adam options, const float *, const float *gradient, const float *,
                  const float *, const float *lr, const float *scale, const bool *ok,
                  const StepState *state, const std::int32_t *, float *parameter, float *first,
                  float *second, std::int32_t *firstBad, cudaStream_t stream) {
  FSDP_NOTE_WORK();
  return launch(ruleOf(options, true), shard,
                {parameter, gradient, first, second, lr, scale, ok, state, firstBad}, 2, stream);
}

cudaError_t square_sum(std::size_t count, const float *values, double *out, WorkStream stream) {
  FSDP_NOTE_WORK();
  const bool vectors = aligned16(values);
  noteVectors(vectors);
  const std::size_t stretches = ceilDiv(count, kStretch);
  double *sums = nullptr;
  if (cudaError_t status = stream.workspace->reserve(stretches * sizeof(double), sums))
    return status;
  if (cudaError_t status = launchKernel(squareStretches, dim3(stretches), kThreads, 0, stream,
                                        count, vectors, values, sums))
    return status;
  return launchKernel(sumStretches, dim3(1), kThreads, 0, stream, stretches, sums, out);
}

} // namespace fsdp::rt
