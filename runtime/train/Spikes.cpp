#include "runtime/train/Spikes.h"

#include "base/Error.h"
#include "runtime/train/Log.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt {

using namespace base;

StepHistory::StepHistory(std::int64_t kept)
    : kept(static_cast<std::size_t>(std::max(kept, kMinKept))) {
  losses_.reserve(this->kept);
  norms_.reserve(this->kept);
}

void StepHistory::restore(const std::vector<float> &losses, const std::vector<float> &norms) {
  losses_.clear();
  norms_.clear();
  for (std::size_t i = 0; i < losses.size(); ++i)
    add(losses[i], norms[i]);
}

void StepHistory::add(float loss, float gradNorm) {
  if (!std::isfinite(loss) || !std::isfinite(gradNorm))
    return;
  for (auto [values, value] : {std::pair(&losses_, loss), std::pair(&norms_, gradNorm)}) {
    if (values->size() == kept)
      values->erase(values->begin());
    values->push_back(value);
  }
}

/// mean + deviations * sigma of the last `count` values, rounded to the type of the comparison.
static float limitOf(const std::vector<float> &values, std::size_t count, double deviations) {
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  double sum = 0, squares = 0;
  for (auto value = first; value != values.end(); ++value)
    sum += static_cast<double>(*value);
  const double mean = sum / static_cast<double>(count);
  for (auto value = first; value != values.end(); ++value) {
    const double difference = static_cast<double>(*value) - mean;
    squares += difference * difference;
  }
  return static_cast<float>(mean +
                            deviations * std::sqrt(squares / static_cast<double>(count - 1)));
}

SpikeLimits StepHistory::limits(const SpikeRule &rule) const {
  const std::size_t count = std::min(losses_.size(), static_cast<std::size_t>(rule.window));
  if (count < static_cast<std::size_t>(std::max<std::int64_t>(2, rule.window / 2)))
    return {};
  return {limitOf(losses_, count, rule.deviations), limitOf(norms_, count, rule.deviations),
          static_cast<std::int64_t>(count)};
}

std::string Spike::describe(double loss, double gradNorm) const {
  std::string text = "got ";
  const bool isLoss = loss > static_cast<double>(limits.loss);
  if (isLoss)
    text += format("loss %g above %g", loss, static_cast<double>(limits.loss));
  if (gradNorm > static_cast<double>(limits.gradNorm))
    text += (isLoss ? " and " : "") +
            format("gradient norm %g above %g", gradNorm, static_cast<double>(limits.gradNorm));
  return text;
}

std::string Spike::kind() const {
  return format("a spike of more than %s standard deviations over %lld steps",
                shortest(static_cast<float>(rule.deviations)).c_str(),
                static_cast<long long>(limits.steps));
}

} // namespace fsdp::rt
