//===- Optimizer.h - launches of update rules -------------------*- C++ -*-===//
//
// As runtime/launches/Kernels.h for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
#define FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H

#include "runtime/device/Work.h"
#include "runtime/program/ShardUpdates.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace fsdp::rt {

/// The update of one shard in a launch.
template <std::size_t N> struct ShardUpdate {
  const Storage *storage;
  ByteRange parameter, gradient;
  std::array<ByteRange, N> states;
};
template <typename... States>
ShardUpdate<sizeof...(States)> shard_update(const Storage &storage, ArenaSpan<float> parameter,
                                            ArenaSpan<float> gradient, States... states) {
  return {&storage, parameter.range(), gradient.range(), {{states.range()...}}};
}

namespace detail {

/// The kernel of a launch of `updates` updates by a rule of `states` states.
template <bool Scaled, std::size_t states, std::size_t updates, typename Kernel>
struct UpdateKernel {
  struct Part {
    const Storage *storage;
    int coordinate;
  };
  Part parts[updates];
  const UpdateSetting *settings;
  bool deferred;
  Kernel kernel;

  /// The addresses that the launch reads and writes, in order, and the stream of a device. Without
  /// a device no tuple of them is made: for one of 30 elements a compiler takes longer than for the
  /// rest of the launch.
  template <typename... P> auto operator()(P... p) const {
    constexpr std::size_t addresses = updates * (3 + 2 * states) + 5 + Scaled;
    const void *all[] = {p...};
    if constexpr (sizeof...(P) == addresses)
      return FSDP_KERNEL_FUNCTION(perform_updates, performUpdates)(shardsAt(all), kernel);
    else
      return FSDP_KERNEL_FUNCTION(perform_updates, performUpdates)(
          shardsAt(all), kernel, std::get<addresses>(std::tie(p...)));
  }

private:
  ShardUpdates<states + 1> shardsAt(const void *const *all) const {
    const auto floats = [&](std::size_t i) { return static_cast<const float *>(all[i]); };
    constexpr std::size_t each = 2 + states, lr = updates * each, ok = lr + 1 + Scaled;
    ShardUpdates<states + 1> group{};
    group.count = updates;
    for (std::size_t u = 0; u < updates; ++u) {
      auto &shard = group.shards[u];
      shard.shard = {parts[u].storage, parts[u].coordinate, settings};
      shard.gradient = floats(u * each + 1);
      shard.updated[0] = const_cast<float *>(floats(u * each));
      for (std::size_t s = 0; s < states; ++s)
        shard.updated[1 + s] = const_cast<float *>(floats(u * each + 2 + s));
    }
    group.lr = floats(lr);
    group.scale = Scaled ? floats(lr + 1) : nullptr;
    group.ok = static_cast<const bool *>(all[ok]);
    group.state = static_cast<const StepState *>(all[ok + 1]);
    group.firstBad = const_cast<std::int32_t *>(static_cast<const std::int32_t *>(all[ok + 2]));
    group.deferred = deferred;
    return group;
  }
};

template <std::size_t> using UpdateFloat = float;

template <typename Kernel, std::size_t states, std::size_t updates, std::size_t... R,
          std::size_t... W>
void launchUpdates(Context &c, int stream, ActionName name, bool deferred, Kernel kernel,
                   ByteRange lr, ByteRange scale, ByteRange ok, ByteRange state, ByteRange firstBad,
                   const std::array<ShardUpdate<states>, updates> &group, std::index_sequence<R...>,
                   std::index_sequence<W...>) {
  static_assert(updates <= limits::mostUpdates(states), "too many updates of a launch");
  std::array<ByteRange, sizeof...(R)> read{};
  Writes<UpdateFloat<W>..., std::int32_t> written{};
  std::size_t r = 0, w = 0;
  for (const ShardUpdate<states> &update : group) {
    read[r++] = written.ranges[w++] = update.parameter;
    read[r++] = update.gradient;
    for (ByteRange of : update.states)
      read[r++] = written.ranges[w++] = of;
  }
  written.ranges[w] = firstBad;
  const Work work{"optimizer_step"};
  const auto enqueue = [&](auto scaled, const auto &reads) {
    UpdateKernel<decltype(scaled)::value, states, updates, Kernel> all{
        {}, c.updateSettings, deferred, kernel};
    for (std::size_t u = 0; u < updates; ++u) {
      const int over = group[u].storage->communicator;
      all.parts[u] = {group[u].storage, over < 0 ? 0 : c.rankIn(over)};
    }
    launch(c, stream, name, reads, written, all, work);
  };
  if (scale.bytes == 0)
    enqueue(std::false_type(), Reads<UpdateFloat<R>..., float, bool, StepState, std::int32_t>{
                                   {{read[R]..., lr, ok, state, firstBad}}});
  else
    enqueue(std::true_type(), Reads<UpdateFloat<R>..., float, float, bool, StepState, std::int32_t>{
                                  {{read[R]..., lr, scale, ok, state, firstBad}}});
}

} // namespace detail

/// Applies the generated rule `kernel` to shards, in place: shard_update(storage, parameter,
/// gradient, states...) each. `deferred`: the step state has counted the updates already. An empty
/// `scale` means 1. A launch reads parameter, gradient and states of each shard, then lr, [scale],
/// ok, step state and first bad gradient, in this order, and writes parameter and states of each,
/// and first bad gradient.
template <typename Kernel, std::size_t states, typename... More>
void optimizer_steps(Context &c, int stream, ActionName name, bool deferred, Kernel kernel,
                     ArenaSpan<float> lr, ArenaSpan<float> scale, ArenaSpan<bool> ok,
                     ArenaSpan<StepState> state, ArenaSpan<std::int32_t> firstBad,
                     ShardUpdate<states> first, More... more) {
  constexpr std::size_t updates = 1 + sizeof...(More);
  detail::launchUpdates(c, stream, name, deferred, kernel, lr.range(), scale.range(), ok.range(),
                        state.range(), firstBad.range(),
                        std::array<ShardUpdate<states>, updates>{{first, more...}},
                        std::make_index_sequence<updates * (2 + states)>(),
                        std::make_index_sequence<updates * (1 + states)>());
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
