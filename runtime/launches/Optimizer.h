//===- Optimizer.h - launches of kernels/Optimizer.h ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
#define FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/Optimizer.h"
#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace fsdp::rt {

/// The part that this rank works on.
inline ShardOf shardOf(Context &c, const Storage &storage) {
  return {&storage, storage.communicator < 0 ? 0 : c.comm(storage.communicator).rank()};
}

namespace detail {

/// What a launch of `optimizer_step` runs: `all` are the addresses that it reads and writes, in
/// order.
template <bool Scaled, typename Kernel, typename Addresses, std::size_t... I>
void runUpdate(ShardOf shard, bool deferred, Kernel kernel, const Addresses &all,
               std::index_sequence<I...>) {
  constexpr std::size_t states = sizeof...(I), lr = 2 + states, ok = lr + 1 + Scaled,
                        written = ok + 3;
  const float *gradient = std::get<1>(all);
  if (!*std::get<ok>(all))
    return kernels::noteBadGradient(shard, gradient, *std::get<written + 1 + states>(all));
  const std::int64_t count = std::get<ok + 1>(all)->updates + !deferred;
  UpdateStep step{*std::get<lr>(all), 1.0f, static_cast<double>(count), false};
  if constexpr (Scaled)
    step.scale = *std::get<lr + 1>(all);
  float *parameter = std::get<written>(all);
  kernels::forEachDecayPart(shard, [&](std::size_t begin, std::size_t end, bool decays) {
    step.decays = decays;
    kernel(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), step, parameter,
           gradient, std::get<written + 1 + I>(all)..., parameter,
           std::get<written + 1 + I>(all)...);
  });
}

template <typename Kernel, typename Slices, std::size_t... I>
void launchUpdate(Context &c, int stream, const char *name, const Storage &storage, bool deferred,
                  Kernel kernel, ArenaSpan<float> parameter, ArenaSpan<float> gradient,
                  const Slices &slices, std::index_sequence<I...> states) {
  constexpr std::size_t count = sizeof...(I);
  const ArenaSpan<float> lr = std::get<count>(slices), scale = std::get<count + 1>(slices);
  const ArenaSpan<bool> ok = std::get<count + 2>(slices);
  const ArenaSpan<StepState> state = std::get<count + 3>(slices);
  const ArenaSpan<std::int32_t> firstBad = std::get<count + 4>(slices);
  const ShardOf shard = shardOf(c, storage);
  const auto written = writes(parameter, std::get<I>(slices)..., firstBad);
  if (scale.count == 0)
    launch(
        c, stream, name,
        reads(parameter, gradient, std::get<I>(slices)..., lr, ok, state, firstBad), written,
        [=](auto... addresses) {
          runUpdate<false>(shard, deferred, kernel, std::make_tuple(addresses...), states);
        },
        Work{"optimizer_step"});
  else
    launch(
        c, stream, name,
        reads(parameter, gradient, std::get<I>(slices)..., lr, scale, ok, state, firstBad), written,
        [=](auto... addresses) {
          runUpdate<true>(shard, deferred, kernel, std::make_tuple(addresses...), states);
        },
        Work{"optimizer_step"});
}

} // namespace detail

/// Applies a rule to the shard of `storage`: `kernel(begin, end, step, parameter, gradient,
/// states..., newParameter, newStates...)` updates its elements [begin, end) in place. `deferred`:
/// the step state has counted the update already. `slices` are the states, then lr, scale, ok, step
/// state and first bad gradient. An update reads parameter, gradient, states, lr, [scale], ok, step
/// state, first bad gradient, in this order, and writes parameter, states and first bad gradient.
template <typename Kernel, typename... Slices>
void optimizer_step(Context &c, int stream, const char *name, const Storage &storage, bool deferred,
                    Kernel kernel, ArenaSpan<float> parameter, ArenaSpan<float> gradient,
                    Slices... slices) {
  detail::launchUpdate(c, stream, name, storage, deferred, kernel, parameter, gradient,
                       std::make_tuple(slices...),
                       std::make_index_sequence<sizeof...(Slices) - 5>());
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
