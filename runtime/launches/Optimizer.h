//===- Optimizer.h - launches of kernels/Optimizer.h ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
#define FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/Optimizer.h"
#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>
#include <tuple>

namespace fsdp::rt {

/// The part that this rank works on.
inline ShardOf shardOf(Context &c, const Storage &storage) {
  return {&storage, storage.communicator < 0 ? 0 : c.comm(storage.communicator).rank()};
}

namespace detail {

/// Enqueues `update(parameter, gradient, first state, second state, lr, scale, number)`, with null
/// for what is not there. `Scaled`: a scale is read.
template <bool Scaled, typename... R, typename... W, typename Update>
void launchUpdate(Context &c, int stream, const char *name, const char *kind, ShardOf shard,
                  Reads<R...> read, Writes<W...> written, Update update) {
  const auto kernel = [shard, update](auto... addresses) {
    constexpr std::size_t states = sizeof...(W) - 2, reads = sizeof...(R);
    const auto all = std::make_tuple(addresses...);
    const float *gradient = std::get<1>(all), *lr = std::get<2 + states>(all), *scale = nullptr;
    if constexpr (Scaled)
      scale = std::get<3 + states>(all);
    const bool *ok = std::get<reads - 3>(all);
    const StepState *state = std::get<reads - 2>(all);
    float *parameter = std::get<reads>(all), *first = nullptr, *second = nullptr;
    if constexpr (states > 0)
      first = std::get<reads + 1>(all);
    if constexpr (states > 1)
      second = std::get<reads + 2>(all);
    if (*ok)
      update(shard, parameter, gradient, first, second, *lr, scale, state->updates + 1);
    else
      kernels::noteBadGradient(shard, gradient, *std::get<reads + 1 + states>(all));
  };
  launch(c, stream, name, read, written, kernel, Work{kind});
}

template <typename Update, typename... State>
void launchUpdate(Context &c, int stream, const char *name, const char *kind,
                  const Storage &storage, ArenaSpan<float> parameter, ArenaSpan<float> gradient,
                  ArenaSpan<float> lr, ArenaSpan<float> scale, ArenaSpan<bool> ok,
                  ArenaSpan<StepState> state, ArenaSpan<std::int32_t> firstBad, Update update,
                  State... states) {
  const ShardOf shard = shardOf(c, storage);
  if (scale.count == 0)
    launchUpdate<false>(c, stream, name, kind, shard,
                        reads(parameter, gradient, states..., lr, ok, state, firstBad),
                        writes(parameter, states..., firstBad), update);
  else
    launchUpdate<true>(c, stream, name, kind, shard,
                       reads(parameter, gradient, states..., lr, scale, ok, state, firstBad),
                       writes(parameter, states..., firstBad), update);
}

} // namespace detail

/// Plain gradient descent. Like all updates it reads parameter, gradient, states, lr, [scale], ok,
/// step state, first bad gradient, in this order, and writes parameter, states and first bad
/// gradient.
inline void sgd(Context &c, int stream, const char *name, const Storage &storage, Sgd options,
                ArenaSpan<float> parameter, ArenaSpan<float> gradient, ArenaSpan<float> lr,
                ArenaSpan<float> scale, ArenaSpan<bool> ok, ArenaSpan<StepState> state,
                ArenaSpan<std::int32_t> firstBad) {
  detail::launchUpdate(c, stream, name, "sgd", storage, parameter, gradient, lr, scale, ok, state,
                       firstBad,
                       [options](ShardOf shard, float *p, const float *g, float *, float *,
                                 float lr, const float *scale, std::int64_t) {
                         kernels::sgd(shard, options, p, g, nullptr, lr, scale);
                       });
}

/// Gradient descent with momentum.
inline void sgd(Context &c, int stream, const char *name, const Storage &storage, Sgd options,
                ArenaSpan<float> parameter, ArenaSpan<float> gradient, ArenaSpan<float> buffer,
                ArenaSpan<float> lr, ArenaSpan<float> scale, ArenaSpan<bool> ok,
                ArenaSpan<StepState> state, ArenaSpan<std::int32_t> firstBad) {
  detail::launchUpdate(
      c, stream, name, "sgd", storage, parameter, gradient, lr, scale, ok, state, firstBad,
      [options](ShardOf shard, float *p, const float *g, float *buffer, float *, float lr,
                const float *scale,
                std::int64_t) { kernels::sgd(shard, options, p, g, buffer, lr, scale); },
      buffer);
}

/// Adam.
inline void adam(Context &c, int stream, const char *name, const Storage &storage, Adam options,
                 ArenaSpan<float> parameter, ArenaSpan<float> gradient, ArenaSpan<float> first,
                 ArenaSpan<float> second, ArenaSpan<float> lr, ArenaSpan<float> scale,
                 ArenaSpan<bool> ok, ArenaSpan<StepState> state, ArenaSpan<std::int32_t> firstBad) {
  detail::launchUpdate(
      c, stream, name, "adam", storage, parameter, gradient, lr, scale, ok, state, firstBad,
      [options](ShardOf shard, auto... rest) { kernels::adam(shard, options, rest...); }, first,
      second);
}

/// AdamW.
inline void adamw(Context &c, int stream, const char *name, const Storage &storage, Adam options,
                  ArenaSpan<float> parameter, ArenaSpan<float> gradient, ArenaSpan<float> first,
                  ArenaSpan<float> second, ArenaSpan<float> lr, ArenaSpan<float> scale,
                  ArenaSpan<bool> ok, ArenaSpan<StepState> state,
                  ArenaSpan<std::int32_t> firstBad) {
  detail::launchUpdate(
      c, stream, name, "adamw", storage, parameter, gradient, lr, scale, ok, state, firstBad,
      [options](ShardOf shard, auto... rest) { kernels::adamw(shard, options, rest...); }, first,
      second);
}

/// out = sum of the squares of `values`, in double.
inline void square_sum(Context &c, int stream, const char *name, ArenaSpan<float> values,
                       ArenaSpan<double> out) {
  launch(
      c, stream, name, reads(values), writes(out),
      [count = values.count](const float *values, double *out) {
        *out = kernels::squareSum(values, count);
      },
      Work{"square_sum"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
