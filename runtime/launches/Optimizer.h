//===- Optimizer.h - launches of update rules -------------------*- C++ -*-===//
//
// As runtime/launches/Kernels.h for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
#define FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H

#include "runtime/device/Work.h"
#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace fsdp::rt {

namespace detail {

template <typename Kernel, typename Slices, std::size_t... I>
void launchUpdate(Context &c, int stream, ActionName name, const Storage &storage, bool deferred,
                  Kernel kernel, ArenaSpan<float> parameter, ArenaSpan<float> gradient,
                  const Slices &slices, std::index_sequence<I...>) {
  constexpr std::size_t count = sizeof...(I);
  const ArenaSpan<float> lr = std::get<count>(slices), scale = std::get<count + 1>(slices);
  const ArenaSpan<bool> ok = std::get<count + 2>(slices);
  const ArenaSpan<StepState> state = std::get<count + 3>(slices);
  const ArenaSpan<std::int32_t> firstBad = std::get<count + 4>(slices);
  const ShardOf shard = {&storage, storage.communicator < 0 ? 0 : c.rankIn(storage.communicator)};
  const auto written = writes(parameter, std::get<I>(slices)..., firstBad);
  const Work work{"optimizer_step"};
  if (scale.count == 0)
    launch(c, stream, name,
           reads(parameter, gradient, std::get<I>(slices)..., lr, ok, state, firstBad), written,
           FSDP_KERNEL_FUNCTION(UpdateKernel, UpdateKernel) < false, count,
           Kernel > {shard, deferred, kernel}, work);
  else
    launch(c, stream, name,
           reads(parameter, gradient, std::get<I>(slices)..., lr, scale, ok, state, firstBad),
           written, FSDP_KERNEL_FUNCTION(UpdateKernel, UpdateKernel) < true, count,
           Kernel > {shard, deferred, kernel}, work);
}

} // namespace detail

/// Applies the generated rule `kernel` to the shard of `storage`, in place. `deferred`: the step
/// state has counted the update already. `slices` are the states, then lr, scale, ok, step state
/// and first bad gradient. An update reads parameter, gradient, states, lr, [scale], ok, step
/// state, first bad gradient, in this order, and writes parameter, states and first bad gradient.
template <typename Kernel, typename... Slices>
void optimizer_step(Context &c, int stream, ActionName name, const Storage &storage, bool deferred,
                    Kernel kernel, ArenaSpan<float> parameter, ArenaSpan<float> gradient,
                    Slices... slices) {
  detail::launchUpdate(c, stream, name, storage, deferred, kernel, parameter, gradient,
                       std::make_tuple(slices...),
                       std::make_index_sequence<sizeof...(Slices) - 5>());
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
