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
#include <utility>

namespace fsdp::rt {

namespace detail {

template <std::size_t> using StateElement = float;

template <typename Kernel, std::size_t... I>
void launchUpdate(Context &c, int stream, ActionName name, const Storage &storage, bool deferred,
                  Kernel kernel, ByteRange parameter, ByteRange gradient, const ByteRange *states,
                  std::index_sequence<I...>) {
  constexpr std::size_t count = sizeof...(I);
  const ByteRange lr = states[count], scale = states[count + 1], ok = states[count + 2];
  const ByteRange state = states[count + 3], firstBad = states[count + 4];
  const ShardOf shard = {&storage, storage.communicator < 0 ? 0 : c.rankIn(storage.communicator),
                         c.updateSettings};
  const Writes<float, StateElement<I>..., std::int32_t> written{
      {{parameter, states[I]..., firstBad}}};
  const Work work{"optimizer_step"};
  if (scale.bytes == 0)
    launch(c, stream, name,
           Reads<float, float, StateElement<I>..., float, bool, StepState, std::int32_t>{
               {{parameter, gradient, states[I]..., lr, ok, state, firstBad}}},
           written, FSDP_KERNEL_FUNCTION(UpdateKernel, UpdateKernel) < false, count,
           Kernel > {shard, deferred, kernel}, work);
  else
    launch(c, stream, name,
           Reads<float, float, StateElement<I>..., float, float, bool, StepState, std::int32_t>{
               {{parameter, gradient, states[I]..., lr, scale, ok, state, firstBad}}},
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
  const ByteRange ranges[] = {slices.range()...};
  detail::launchUpdate(c, stream, name, storage, deferred, kernel, parameter.range(),
                       gradient.range(), ranges, std::make_index_sequence<sizeof...(Slices) - 5>());
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
