//===- PlanFit.h - the largest model that fits ------------------*- C++ -*-===//
// --fit=batch|context|layers|width: the largest value of an option of the model whose plan is
// within the memory limit; each tried value is compiled, about four of them if memory grows evenly.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANFIT_H
#define TOOLS_FSDPC_PLANFIT_H

#include "tools/fsdpc/PlanCompiler.h"
#include "tools/fsdpc/PlanSpace.h"
#include "llvm/Support/JSON.h"

namespace fsdpc {

/// The largest value of --`option` that is tried if the model has `given`: for layers, which take
/// some 10 ms each to compile, the larger of 1024 and the given number, as an exact plan should
/// take only seconds.
int64_t mostTried(llvm::StringRef option, int64_t given);

/// The result for a count that was tried.
struct FitAttempt {
  bool fits = false;
  std::optional<int64_t> bytes; ///< that a rank needs with it, where one plan alone is compiled
};

/// The largest count of at least 1 that fits, if all below it do; 0 if not even 1 fits, `most` if
/// that fits. `start` is tried first, then the count that the line through two counts of known
/// bytes predicts for `limit`: memory is almost affine in layers, samples and positions. Without
/// known counts, the count is doubled, and then bisected. The answer, and the next count unless it
/// is `most`, have been tried.
int64_t findLargest(int64_t start, int64_t most, int64_t limit,
                    llvm::function_ref<FitAttempt(int64_t)> attempt);

/// The largest value of --`option` that fits.
struct PlanFit {
  std::string option;
  int64_t value = 0, step = 0; ///< values are multiples of the step
  int64_t limit = 0;           ///< bytes of a rank
  PlanCosts costs;             ///< of the fastest plan that is searched
  std::string command;         ///< that compiles it
  std::string excess;          ///< why the next value does not fit
  int64_t promised = 0;        ///< larger values that may fit; 0: unknown, or none

  void print(llvm::raw_ostream &os) const;
  llvm::json::Object toJSON() const;
};

/// Fits --fit of `options`, by the plans of `request`, or by the plan of the options without a
/// request. `command` is that of the model, without the fitted option. Throws UsageError if the
/// model has no such option, Failure if no value fits.
PlanFit fitModel(const SizedModel &model, const PlanRequest *request, const Options &options,
                 const std::string &command);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANFIT_H
