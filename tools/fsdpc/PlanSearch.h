//===- PlanSearch.h - the fastest plans of a model --------------*- C++ -*-===//
// Searches the plans of PlanSpace.h. Small searches compile every plan that the lower bounds do not
// exclude. In others a plan that fits ends the search for plans with more recomputation and more
// microbatches; of models whose number of blocks is an option, candidates are ranked on models of
// few blocks, and the best ones compiled exactly. Pipelines are ranked by the plans of one of their
// stages (StageEstimate.h).
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANSEARCH_H
#define TOOLS_FSDPC_PLANSEARCH_H

#include "tools/fsdpc/PlanCompiler.h"
#include "tools/fsdpc/PlanSpace.h"

namespace fsdpc {

/// A plan with its costs.
struct RankedPlan : PlanCosts {
  PlanSpec spec;
};

/// A mesh and strategy that a lower bound excluded before compilation.
struct BoundedPlan {
  PlanSpec spec;
  int64_t memory = 0; ///< bytes that do not fit; 0 where time was the reason
  double seconds = 0; ///< of the step, at least
};

struct PlanSearchResult {
  /// At most PlanRequest::best that fit, the fastest exact one first, then the fastest. All are
  /// exact, but for pipelines of large models, which take long to compile, if the request takes
  /// estimates.
  std::vector<RankedPlan> best;
  std::vector<RankedPlan> losing;   ///< others that fit, the fastest first
  std::vector<RankedPlan> tooLarge; ///< the smallest excess first
  std::vector<BoundedPlan> bounded;
  int64_t limit = 0;
  bool exhaustive = false;
  size_t untried = 0; ///< plans with stages whose time no estimate was made of
  /// The options for which only meshes with an axis were compared, and the axes.
  std::vector<std::pair<std::string, std::string>> axisOptions;
  std::string machine;

  /// Why `best` is empty.
  std::string explainNone(const PlanRequest &request) const;
};

/// Throws Failure where the compiler refuses every plan, after printing the reason.
PlanSearchResult searchPlans(PlanModel &model, const PlanRequest &request, const Options &options);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANSEARCH_H
