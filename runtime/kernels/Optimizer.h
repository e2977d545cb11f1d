//===- Optimizer.h - updates of parameter shards ----------------*- C++ -*-===//
//
// A program brings its update rule as a kernel, generated from the rule's row in
// dialect/fsdp/UpdateRule.cpp. All updates are in place, elementwise on a shard, and skipped as a
// whole when `ok` is false. The gradient is multiplied by `scale` (the clipping coefficient) first;
// an empty slice means 1 and is not read. Padding has gradient zero and stays zero.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_OPTIMIZER_H
#define FSDP_RUNTIME_KERNELS_OPTIMIZER_H

#include "runtime/device/Workers.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/Program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace fsdp::rt {

namespace kernels {
/// Notes the first parameter of the shard whose gradient is not finite in `firstBad` (see
/// BadGradients), unless that is an earlier one.
void noteBadGradient(ShardOf shard, const float *gradient, std::int32_t &firstBad);

/// Calls `visit(begin, end, setting)` for the parts of a shard with one UpdateSetting each, in
/// order, until they cover all of it. Padding has no gradient and is zero, so any suits it.
template <typename Visit> void forEachUpdatePart(ShardOf shard, Visit visit) {
  const Storage &storage = *shard.storage;
  const std::size_t count = storage.shard.count;
  const Table<Parameter> &members = storage.members;
  if (storage.layout == Layout::Dimension)
    return visit(std::size_t(0), count, shard.settingOf(0));
  const std::size_t first = static_cast<std::size_t>(shard.coordinate) * count,
                    last = first + count;
  for (std::size_t m = 0, begin = first; begin < last; ++m) {
    const bool isLast = m + 1 == members.size();
    if (!isLast && (members[m + 1].offset <= first || shard.settingOf(m + 1) == shard.settingOf(m)))
      continue;
    const std::size_t end = isLast ? last : std::min(members[m + 1].offset, last);
    visit(begin - first, end - first, shard.settingOf(m));
    begin = end;
  }
}
/// The kernel of the launch of an update: `kernel(begin, end, step, parameter, gradient, states...,
/// newParameter, newStates...)` updates the elements [begin, end) of the shard.
template <bool Scaled, std::size_t states, typename Kernel> struct UpdateKernel {
  ShardOf shard;
  bool deferred;
  Kernel kernel;

  /// The addresses that the launch reads and writes, in order.
  template <typename... Pointers> void operator()(Pointers... addresses) const {
    const void *all[] = {addresses...};
    run(all, std::make_index_sequence<states>());
  }

private:
  template <std::size_t... I> void run(const void **all, std::index_sequence<I...>) const {
    constexpr std::size_t lr = 2 + states, ok = lr + 1 + Scaled, written = ok + 3;
    const auto floats = [all](std::size_t i) { return static_cast<const float *>(all[i]); };
    const auto target = [=](std::size_t i) { return const_cast<float *>(floats(written + i)); };
    const float *gradient = floats(1);
    if (!*static_cast<const bool *>(all[ok])) {
      const auto *firstBad = static_cast<const std::int32_t *>(all[written + 1 + states]);
      return noteBadGradient(shard, gradient, *const_cast<std::int32_t *>(firstBad));
    }
    const auto &state = *static_cast<const StepState *>(all[ok + 1]);
    UpdateStep step{*floats(lr), 1.0f, static_cast<double>(state.updates + !deferred), false, {}};
    std::copy(std::begin(state.constants), std::end(state.constants), step.constants);
    if constexpr (Scaled)
      step.scale = *floats(lr + 1);
    const float rate = step.lr;
    forEachUpdatePart(shard, [&](std::size_t begin, std::size_t end, UpdateSetting setting) {
      step.lr = rate * setting.rateScale;
      step.decays = setting.decays;
      forEachPart(end - begin, 1, 64, [&](std::size_t first, std::size_t last) {
        kernel(static_cast<std::int64_t>(begin + first), static_cast<std::int64_t>(begin + last),
               step, target(0), gradient, target(1 + I)..., target(0), target(1 + I)...);
      });
    });
  }
};
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_OPTIMIZER_H
