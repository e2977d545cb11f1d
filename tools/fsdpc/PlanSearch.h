//===- PlanSearch.h - the fastest plans of a model --------------*- C++ -*-===//
// Searches the plans of PlanSpace.h. Small searches compile every plan that the lower bounds
// leave. In others a plan that fits ends the search for plans with more recomputation and more
// microbatches; of models whose number of blocks is an option, candidates are ranked on models of
// few blocks, and the best ones compiled exactly.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANSEARCH_H
#define TOOLS_FSDPC_PLANSEARCH_H

#include "mlir/IR/OwningOpRef.h"
#include "passes/prediction/Prediction.h"
#include "tools/fsdpc/PlanSpace.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fsdpc {

/// A plan with its costs; times in seconds.
struct RankedPlan {
  PlanSpec spec;
  bool exact = true; ///< compiled as it is; else extrapolated from models with fewer blocks
  int64_t arena = 0; ///< bytes of a rank
  double step = 0, computing = 0, exposed = 0, modelFlops = 0, mfu = 0, itemsPerSecond = 0;
  bool itemsAreTokens = false;
  bool hasTied = false; ///< --tied-gradients makes a difference
};

/// A mesh and strategy that was given up by a lower bound, before compiling.
struct BoundedPlan {
  PlanSpec spec;
  int64_t memory = 0; ///< bytes that do not fit; 0 where time was the reason
  double seconds = 0; ///< of the step, at least
};

struct PlanSearchResult {
  std::vector<RankedPlan> best;     ///< at most ten that fit, all exact, the fastest first
  std::vector<RankedPlan> losing;   ///< others that fit, the fastest first
  std::vector<RankedPlan> tooLarge; ///< the smallest excess first
  std::vector<BoundedPlan> bounded;
  int64_t limit = 0;
  int64_t compiled = 0; ///< modules that were scheduled
  bool exhaustive = false;
  std::string machine;
};

/// The model to plan for.
struct PlanModel {
  mlir::ModuleOp module;
  std::string name;
  int64_t blocks = 0; ///< of the whole model; 0 if it cannot be described with fewer
  /// The same model with fewer blocks; null if that is no valid model.
  std::function<mlir::OwningOpRef<mlir::ModuleOp>(int64_t blocks)> describe = nullptr;
};

/// Throws Failure where the compiler refuses every plan, after printing the reason, and where none
/// fits the limit.
PlanSearchResult searchPlans(const PlanModel &model, const PlanRequest &request,
                             const Options &options);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANSEARCH_H
