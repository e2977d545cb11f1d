//===- PlanCosts.h - memory and time of a plan ------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_PLANCOSTS_H
#define TOOLS_FSDPC_PLANCOSTS_H

#include <cstdint>
#include <string>

namespace fsdpc {

/// Memory and time of a step of a plan; times in seconds, flops of a rank.
struct PlanCosts {
  bool exact = true; ///< compiled as it is; else extrapolated from models with fewer blocks
  int64_t arena = 0; ///< bytes of a rank
  /// For an estimate: its arena for a model of three times the fewest blocks.
  int64_t arenaOfThree = 0;
  /// Of the peak of the arena: parameters, gathered ones too, gradients and optimizer state;
  /// activations that are kept for backward; and buffers that a kernel or a block needs while it
  /// computes. Of an estimate the first two are the bytes that grow with the blocks.
  int64_t stored = 0, saved = 0, working = 0;
  double step = 0, computing = 0, exposed = 0, modelFlops = 0, mfu = 0, itemsPerSecond = 0;
  bool itemsAreTokens = false;
  bool hasTied = false; ///< --tied-gradients makes a difference
  int64_t gathers = 0;  ///< all-gathers of a step
  double longestGather = 0;
  double secondsOfBlock = 0; ///< for an estimate: of `step`, the time of one more block
};

/// Whether `one` is to be preferred: it fits the limit and the other does not, or is faster, or,
/// where neither fits, smaller.
bool isBetter(const PlanCosts &one, const PlanCosts &other, int64_t limit);

/// "3.1 ms"
std::string milliseconds(double seconds);
/// "4.1 ms more exposed, 3 ms more computing, 1 ms more idle", of which those that matter: why
/// `plan` is slower than `best`; empty where it is not.
std::string explainTimes(const PlanCosts &plan, const PlanCosts &best);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANCOSTS_H
