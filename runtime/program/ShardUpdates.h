//===- ShardUpdates.h - the updates of a launch -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_PROGRAM_SHARDUPDATES_H
#define FSDP_RUNTIME_PROGRAM_SHARDUPDATES_H

#include "runtime/program/Limits.h"
#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Updates of shards by one rule, with N tensors that change for each: the parameter and the
/// states.
template <int N> struct ShardUpdates {
  static constexpr std::size_t kMax = limits::mostUpdates(N - 1);

  struct Shard {
    ShardOf shard;
    const float *gradient;
    float *updated[N]; ///< the parameter, then the states
  };

  std::size_t count;
  Shard shards[kMax];
  const float *lr, *scale; ///< scale null: 1
  const bool *ok;
  const StepState *state;
  std::int32_t *firstBad; ///< see BadGradients
  bool deferred;          ///< the step state has counted the updates already
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_SHARDUPDATES_H
