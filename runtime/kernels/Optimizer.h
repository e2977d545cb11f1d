//===- Optimizer.h - updates of parameter shards ----------------*- C++ -*-===//
//
// A program brings its update rule as a kernel, generated from the rule's row in
// dialect/fsdp/UpdateRule.cpp. All updates are in place, elementwise on a shard, and skipped as a
// whole when `ok` is false. The gradient is multiplied by `scale` (the clipping coefficient) first;
// an empty slice stands for 1 and is not read. Padding has gradient zero and stays zero.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_OPTIMIZER_H
#define FSDP_RUNTIME_KERNELS_OPTIMIZER_H

#include "runtime/program/KernelArguments.h"
#include "runtime/program/Program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// Notes the first parameter of the shard whose gradient is not finite in `firstBad` (see
/// BadGradients), unless that is an earlier one.
void noteBadGradient(ShardOf shard, const float *gradient, std::int32_t &firstBad);
/// The sum of squares in double, in index order within fixed lanes.
double squareSum(const float *values, std::size_t count);

/// Calls `visit(begin, end, decays)` for the parts of a shard with and without weight decay, in
/// order, until they cover all of it. Padding has no gradient and is zero, so either kind suits it.
template <typename Visit> void forEachDecayPart(ShardOf shard, Visit visit) {
  const Storage &storage = *shard.storage;
  const std::size_t count = storage.shard.count;
  const Table<Parameter> &members = storage.members;
  if (storage.layout == Layout::Dimension)
    return visit(std::size_t(0), count, members[0].decay);
  const std::size_t first = static_cast<std::size_t>(shard.coordinate) * count,
                    last = first + count;
  for (std::size_t m = 0, begin = first; begin < last; ++m) {
    const bool isLast = m + 1 == members.size();
    if (!isLast && (members[m + 1].offset <= first || members[m + 1].decay == members[m].decay))
      continue;
    const std::size_t end = isLast ? last : std::min(members[m + 1].offset, last);
    visit(begin - first, end - first, members[m].decay);
    begin = end;
  }
}
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_OPTIMIZER_H
