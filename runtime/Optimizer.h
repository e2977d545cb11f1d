//===- Optimizer.h - updates of parameter shards ----------------*- C++ -*-===//
//
// All updates are in place, elementwise on a shard, and skipped as a whole when
// `ok` is false. The gradient is multiplied by `scale` (the clipping
// coefficient) first; an empty slice stands for 1 and is not read. Padding has
// gradient zero and stays zero.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_OPTIMIZER_H
#define FSDP_RUNTIME_OPTIMIZER_H

#include "runtime/Launch.h"
#include "runtime/Program.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// buffer = momentum * buffer + g;  p -= lr * buffer, where g includes
/// weightDecay * p. Without momentum there is no buffer.
struct Sgd {
  float momentum = 0;
  float weightDecay = 0;
};

/// Kingma & Ba, bias-corrected. `adam` adds weightDecay * p to the gradient;
/// `adamw` (Loshchilov & Hutter) shrinks p by 1 - lr * weightDecay instead.
struct Adam {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weightDecay = 0;
};

/// Which part of a shard a kernel works on: the storage's table (a constant of
/// the program) and this rank's coordinate, which say where weight decay applies.
struct ShardOf {
  const Storage *storage;
  int coordinate;
};

inline ShardOf shardOf(Context &c, const Storage &storage) {
  return {&storage, storage.communicator < 0 ? 0 : c.comm(storage.communicator).rank()};
}

namespace kernels {
/// `buffer` is null when momentum is 0; `scale` null stands for 1.
void sgd(ShardOf shard, Sgd options, float *parameter, float *buffer, const float *gradient,
         float lr, const float *scale);
/// `update` is the number of this update, from 1.
void adam(ShardOf shard, Adam options, float *parameter, float *first, float *second,
          const float *gradient, float lr, const float *scale, std::int64_t update);
void adamw(ShardOf shard, Adam options, float *parameter, float *first, float *second,
           const float *gradient, float lr, const float *scale, std::int64_t update);
/// The sum of squares in double, in index order within fixed lanes.
double squareSum(const float *values, std::size_t count);
} // namespace kernels

/// Plain gradient descent. Reads parameter, gradient, lr, [scale], ok.
inline void sgd(Context &c, int stream, const char *name, const Storage &storage, Sgd options,
                Slice<float> parameter, Slice<float> gradient, Slice<float> lr, Slice<float> scale,
                Slice<bool> ok) {
  const ShardOf shard = shardOf(c, storage);
  if (scale.count == 0)
    launch(
        c, stream, name, reads(parameter, gradient, lr, ok), writes(parameter),
        [shard, options](const float *, const float *g, const float *lr, const bool *ok, float *p) {
          if (*ok)
            kernels::sgd(shard, options, p, nullptr, g, *lr, nullptr);
        });
  else
    launch(c, stream, name, reads(parameter, gradient, lr, scale, ok), writes(parameter),
           [shard, options](const float *, const float *g, const float *lr, const float *scale,
                            const bool *ok, float *p) {
             if (*ok)
               kernels::sgd(shard, options, p, nullptr, g, *lr, scale);
           });
}

/// Gradient descent with momentum. Reads parameter, buffer, gradient, lr, [scale], ok.
inline void sgd(Context &c, int stream, const char *name, const Storage &storage, Sgd options,
                Slice<float> parameter, Slice<float> buffer, Slice<float> gradient, Slice<float> lr,
                Slice<float> scale, Slice<bool> ok) {
  const ShardOf shard = shardOf(c, storage);
  if (scale.count == 0)
    launch(c, stream, name, reads(parameter, buffer, gradient, lr, ok), writes(parameter, buffer),
           [shard, options](const float *, const float *, const float *g, const float *lr,
                            const bool *ok, float *p, float *buffer) {
             if (*ok)
               kernels::sgd(shard, options, p, buffer, g, *lr, nullptr);
           });
  else
    launch(c, stream, name, reads(parameter, buffer, gradient, lr, scale, ok),
           writes(parameter, buffer),
           [shard, options](const float *, const float *, const float *g, const float *lr,
                            const float *scale, const bool *ok, float *p, float *buffer) {
             if (*ok)
               kernels::sgd(shard, options, p, buffer, g, *lr, scale);
           });
}

namespace detail {

using AdamKernel = void (*)(ShardOf, Adam, float *, float *, float *, const float *, float,
                            const float *, std::int64_t);

/// What adam and adamw share. `Call` names the kernel without referring to it
/// when the program is only recorded.
template <typename Call>
void launchAdam(Context &c, int stream, const char *name, const Storage &storage, Adam options,
                Slice<float> parameter, Slice<float> first, Slice<float> second,
                Slice<float> gradient, Slice<float> lr, Slice<float> scale, Slice<bool> ok,
                Slice<StepState> state, Call call) {
  const ShardOf shard = shardOf(c, storage);
  if (scale.count == 0)
    launch(c, stream, name, reads(parameter, first, second, gradient, lr, ok, state),
           writes(parameter, first, second),
           [=](const float *, const float *, const float *, const float *g, const float *lr,
               const bool *ok, const StepState *state, float *p, float *m, float *v) {
             if (*ok)
               call(shard, options, p, m, v, g, *lr, nullptr, state->updates + 1);
           });
  else
    launch(c, stream, name, reads(parameter, first, second, gradient, lr, scale, ok, state),
           writes(parameter, first, second),
           [=](const float *, const float *, const float *, const float *g, const float *lr,
               const float *scale, const bool *ok, const StepState *state, float *p, float *m,
               float *v) {
             if (*ok)
               call(shard, options, p, m, v, g, *lr, scale, state->updates + 1);
           });
}

} // namespace detail

/// Adam. Reads parameter, first and second moment, gradient, lr, [scale], ok, step state.
inline void adam(Context &c, int stream, const char *name, const Storage &storage, Adam options,
                 Slice<float> parameter, Slice<float> first, Slice<float> second,
                 Slice<float> gradient, Slice<float> lr, Slice<float> scale, Slice<bool> ok,
                 Slice<StepState> state) {
  detail::launchAdam(c, stream, name, storage, options, parameter, first, second, gradient, lr,
                     scale, ok, state, [](auto... arguments) { kernels::adam(arguments...); });
}

/// AdamW. Reads what `adam` reads.
inline void adamw(Context &c, int stream, const char *name, const Storage &storage, Adam options,
                  Slice<float> parameter, Slice<float> first, Slice<float> second,
                  Slice<float> gradient, Slice<float> lr, Slice<float> scale, Slice<bool> ok,
                  Slice<StepState> state) {
  detail::launchAdam(c, stream, name, storage, options, parameter, first, second, gradient, lr,
                     scale, ok, state, [](auto... arguments) { kernels::adamw(arguments...); });
}

/// out = sum of the squares of `values`, in double.
inline void square_sum(Context &c, int stream, const char *name, Slice<float> values,
                       Slice<double> out) {
  launch(c, stream, name, reads(values), writes(out),
         [count = values.count](const float *values, double *out) {
           *out = kernels::squareSum(values, count);
         });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_OPTIMIZER_H
