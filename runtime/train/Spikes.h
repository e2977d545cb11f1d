//===- Spikes.h - steps whose loss or norm is far above those before ------===//

#ifndef FSDP_RUNTIME_TRAIN_SPIKES_H
#define FSDP_RUNTIME_TRAIN_SPIKES_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace fsdp::rt {

/// A step is a spike if its loss or its gradient norm is above mean + deviations * sigma of those
/// of the steps before it: the latest `window`, as soon as there are half as many, and two at
/// least. sigma^2 is the sum of the squared differences from the mean by n - 1. The rule and the
/// numbers are those of SkipStepOptimizer in OLMo-core
/// (src/olmo_core/optim/skip_step_optimizer.py).
struct SpikeRule {
  double deviations = 6;
  std::int64_t window = 128; ///< steps
};

/// Upper limits of the loss and gradient norm of a step; infinity: no limit.
struct SpikeLimits {
  float loss = std::numeric_limits<float>::infinity();
  float gradNorm = std::numeric_limits<float>::infinity();
  std::int64_t steps = 0; ///< from so many; 0: no limits

  bool allow(float stepLoss, float stepNorm) const {
    return !(stepLoss > loss) && !(stepNorm > gradNorm);
  }
};

/// Losses and gradient norms of the latest steps in which both are finite, whether their update was
/// applied or not. All ranks have the same values, and so has a run that continues from a
/// checkpoint.
class StepHistory {
public:
  /// Checkpoints have at least as many steps, so that a run may watch from the first step after
  /// one.
  static constexpr std::int64_t kMinKept = SpikeRule().window;

  /// Of the latest `kept` steps, or kMinKept if that is more. Later calls allocate nothing.
  explicit StepHistory(std::int64_t kept = kMinKept);

  /// Begins anew with these, the earliest first; as many norms as losses.
  void restore(const std::vector<float> &losses, const std::vector<float> &norms);
  void add(float loss, float gradNorm);
  /// Of the step after those.
  SpikeLimits limits(const SpikeRule &rule) const;

  const std::vector<float> &losses() const { return losses_; }
  const std::vector<float> &gradNorms() const { return norms_; }

private:
  std::size_t kept;
  std::vector<float> losses_, norms_;
};

/// A step above its limits.
struct Spike {
  SpikeLimits limits;
  SpikeRule rule;

  /// "got loss 31 above 4.1" or "got gradient norm 9 above 2", or both.
  std::string describe(double loss, double gradNorm) const;
  /// "a spike of more than 6 standard deviations over 64 steps"
  std::string kind() const;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_SPIKES_H
