//===- PlanChoice.h - options that the cost model chooses -------*- C++ -*-===//
// For the options that are auto (Decisions.h) and for --memory-limit: compiles plans, reads their
// exact arenas, and simulates them.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANCHOICE_H
#define TOOLS_FSDPC_PLANCHOICE_H

#include "tools/fsdpc/ChoiceSearch.h"
#include "tools/fsdpc/Decisions.h"
#include "llvm/Support/JSON.h"

namespace fsdpc {

/// The decisions that `options` leave open for `model` on their mesh. Throws as configure does.
std::vector<OpenDecision> findOpenDecisions(const PlanModel &model, const Options &options);

/// A compiled plan.
struct PlanCandidate : PlanCosts {
  mlir::fsdp::PipelineOptions pipeline;
  std::string options; ///< "--remat=full --prefetch=2": the decisions that were open
};

/// The plans with every combination of the values of `open`, without those that the compiler
/// refuses. In the order of preference among equals: the last decision varies fastest.
std::vector<PlanCandidate> compilePlans(PlanModel &model, const Options &options,
                                        llvm::ArrayRef<OpenDecision> open);

struct PlanChoice {
  PlanCandidate plan;
  std::string reason; ///< the choices with reasons, and the cost of other plans
};

/// The fastest plan within --memory-limit, or the memory of the machine, else the smallest one
/// (ChoiceSearch.h). Of large models, plans are estimated during the search, and the best one
/// compiled; it is never worse than the defaults of the options. Throws Failure if all plans are
/// refused, after printing the reason. `scheduled`, if given, becomes the plan after its
/// diagnostics are emitted; its module is null if it must be compiled again.
PlanChoice choosePlan(PlanModel &model, const Options &options, CompiledPlan *scheduled = nullptr);

/// Whether a plan is within --memory-limit, and if not, which plans would be.
struct MemoryVerdict {
  int64_t limit = 0, arena = 0;
  std::vector<PlanCandidate> fitting; ///< the fastest first
  std::string command;                ///< that the options of a candidate complete

  bool fits() const { return arena <= limit; }
  void addTo(llvm::json::Object &report) const;
  void print(llvm::raw_ostream &os) const;
};

/// The verdict on a plan of `arena` bytes. `command` is the one that compiled it, quoted for a
/// shell.
MemoryVerdict judgeMemory(PlanModel &model, const Options &options, int64_t arena,
                          const std::string &command);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANCHOICE_H
