//===- Prints.h - prints and checks of a model ------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_PRINTS_H
#define FSDP_RUNTIME_TRAIN_PRINTS_H

#include "runtime/program/Program.h"

#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// A failed check of the model: its tensor has values that are not finite.
struct FailedCheck {
  std::string name;
  double values; ///< how many
};

/// Which outputs of a training step are those of `print` and `check`.
class Prints {
public:
  /// `plan` outlives this.
  explicit Prints(const ExecutionPlan &plan);

  bool empty() const { return printed.empty(); }
  /// True for an output of a print or check: a number among many.
  bool owns(std::size_t output) const { return owned[output]; }
  /// The first check, in the order of the model, that failed; `values`: of the outputs.
  std::optional<FailedCheck> findFailed(const std::vector<float> &values) const;
  /// "  scores: min -1.5  max 2  mean 0.25  nan 0\n" for each print.
  std::string describe(const std::vector<float> &values) const;

private:
  struct Print {
    std::string name;
    int min, max, mean, nan; ///< outputs
  };
  const ExecutionPlan &plan;
  std::vector<Print> printed;
  std::vector<bool> owned;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_PRINTS_H
