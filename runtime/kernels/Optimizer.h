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
#include "runtime/program/ShardUpdates.h"

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
/// Calls `update(self, begin, end, step)` for all elements of a shard: for each UpdateSetting, with
/// the rate and the decay that `step` has there, and in the parts that threads take.
void forEachUpdateRange(ShardOf shard, UpdateStep step,
                        void (*update)(const void *self, std::int64_t begin, std::int64_t end,
                                       const UpdateStep &step),
                        const void *self);

namespace detail {
template <int N, typename Kernel> struct ShardUpdate {
  const typename ShardUpdates<N>::Shard &shard;
  const Kernel &kernel;

  template <std::size_t... S>
  static void perform(const void *self, std::int64_t begin, std::int64_t end,
                      const UpdateStep &step) {
    const ShardUpdate &update = *static_cast<const ShardUpdate *>(self);
    float *const *updated = update.shard.updated;
    update.kernel(begin, end, step, static_cast<const float *>(updated[0]), update.shard.gradient,
                  static_cast<const float *>(updated[1 + S])..., updated[0], updated[1 + S]...);
  }
  template <std::size_t... S>
  void perform(const UpdateStep &step, std::index_sequence<S...>) const {
    forEachUpdateRange(shard.shard, step, perform<S...>, this);
  }
};
} // namespace detail

/// Updates shards by the rule `kernel(begin, end, step, parameter, gradient, states...,
/// newParameter, newStates...)`, which updates the elements [begin, end) of one.
template <int N, typename Kernel>
void performUpdates(const ShardUpdates<N> &updates, const Kernel &kernel) {
  const StepState &state = *updates.state;
  UpdateStep step{*updates.lr,
                  updates.scale ? *updates.scale : 1.0f,
                  static_cast<double>(state.updates + !updates.deferred),
                  false,
                  {}};
  std::copy(std::begin(state.constants), std::end(state.constants), step.constants);
  for (std::size_t u = 0; u < updates.count; ++u) {
    const auto &shard = updates.shards[u];
    if (*updates.ok)
      detail::ShardUpdate<N, Kernel>{shard, kernel}.perform(step,
                                                            std::make_index_sequence<N - 1>());
    else
      noteBadGradient(shard.shard, shard.gradient, *updates.firstBad);
  }
}
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_OPTIMIZER_H
