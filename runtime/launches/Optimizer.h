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
#include <type_traits>

namespace fsdp::rt {

/// The update of one shard in a launch.
template <std::size_t N> struct ShardUpdate {
  const Storage *storage;
  ByteRange parameter, gradient;
  std::array<ByteRange, N> states;
};
template <typename... T>
ShardUpdate<sizeof...(T)> shard_update(const Storage &storage, ArenaSpan<float> parameter,
                                       ArenaSpan<float> gradient, ArenaSpan<T>... states) {
  static_assert((std::is_same_v<T, float> && ...), "the states of an update are floats");
  return {&storage, parameter.range(), gradient.range(), {{states.range()...}}};
}

namespace detail {

/// The kernel of a launch of updates by a rule of `states` states.
template <std::size_t states, typename Kernel> struct UpdateKernel {
  static constexpr std::size_t most = limits::mostUpdates(states);
  struct Part {
    const Storage *storage;
    int coordinate;
  };
  Part parts[most];
  const UpdateSetting *settings;
  std::uint32_t count;
  bool scaled, deferred;
  Kernel kernel;

  /// The addresses that the launch reads and writes, in order, and the stream of a device.
  template <typename... Stream> auto operator()(void *const *all, Stream... on) const {
    constexpr std::size_t each = 2 + states;
    const std::size_t lr = count * each, ok = lr + 1 + scaled;
    const auto floats = [all](std::size_t i) { return static_cast<float *>(all[i]); };
    ShardUpdates<states + 1> group{};
    group.count = count;
    for (std::size_t u = 0; u < count; ++u) {
      auto &shard = group.shards[u];
      shard.shard = {parts[u].storage, parts[u].coordinate, settings};
      shard.gradient = floats(u * each + 1);
      shard.updated[0] = floats(u * each);
      for (std::size_t s = 0; s < states; ++s)
        shard.updated[1 + s] = floats(u * each + 2 + s);
    }
    group.lr = floats(lr);
    group.scale = scaled ? floats(lr + 1) : nullptr;
    group.ok = static_cast<const bool *>(all[ok]);
    group.state = static_cast<const StepState *>(all[ok + 1]);
    group.firstBad = static_cast<std::int32_t *>(all[ok + 2]);
    group.deferred = deferred;
    return FSDP_KERNEL_FUNCTION(perform_updates, performUpdates)(group, kernel, on...);
  }
};

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
  using Updates = detail::UpdateKernel<states, Kernel>;
  const ShardUpdate<states> group[] = {first, more...};
  constexpr std::uint32_t count = 1 + sizeof...(More);
  static_assert(count <= Updates::most, "too many updates of a launch");
  constexpr std::size_t mostRead = Updates::most * (2 + states) + 5,
                        mostWritten = Updates::most * (1 + states) + 1;
  ByteRange read[mostRead], written[mostWritten];
  std::size_t r = 0, w = 0;
  Updates all{{}, c.updateSettings, count, scale.count > 0, deferred, kernel};
  for (std::size_t u = 0; u < count; ++u) {
    const ShardUpdate<states> &update = group[u];
    const int over = update.storage->communicator;
    all.parts[u] = {update.storage, over < 0 ? 0 : c.rankIn(over)};
    read[r++] = written[w++] = update.parameter;
    read[r++] = update.gradient;
    for (ByteRange of : update.states)
      read[r++] = written[w++] = of;
  }
  read[r++] = lr.range();
  if (all.scaled)
    read[r++] = scale.range();
  read[r++] = ok.range();
  read[r++] = state.range();
  read[r++] = written[w++] = firstBad.range();
  launchUntyped<mostRead + mostWritten>(c, stream, name, {read, r}, {written, w}, all,
                                        Work{"optimizer_step"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_OPTIMIZER_H
