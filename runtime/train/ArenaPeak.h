//===- ArenaPeak.h - the most bytes of any rank's arena ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_ARENAPEAK_H
#define FSDP_RUNTIME_TRAIN_ARENAPEAK_H

#include "runtime/execution/Device.h"
#include "runtime/program/Program.h"
#include <algorithm>

namespace fsdp::rt {

/// The high-water mark of the arenas of all ranks, in bytes. Ranks of one program use as much;
/// where they run different programs, they exchange their marks once after the first run of each
/// walk, which uses as much as later runs.
class ArenaPeak {
public:
  /// To be called by all ranks after a run of `plan`.
  void note(const Program &program, const ExecutionPlan &plan, Device &device) {
    if (program.programs.empty() || std::exchange(known[&plan == &program.train], true))
      return;
    auto bytes = static_cast<std::int64_t>(device.peakBytes());
    device.world().allReduce(&bytes, &bytes, 1, ReduceOp::Max);
    most = std::max(most, bytes);
  }
  std::int64_t bytes(const Device &device) const {
    return std::max(most, static_cast<std::int64_t>(device.peakBytes()));
  }

private:
  bool known[2] = {false, false}; ///< of the plan that evaluates, and of the one that trains
  std::int64_t most = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_ARENAPEAK_H
