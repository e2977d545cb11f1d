//===- StageEstimate.h - a pipeline by the plan without one -----*- C++ -*-===//
// The ranks of one stage, given all layers and the same microbatches, are a plan without a
// pipeline, which is cheap to compile and to estimate. Its costs, the division of the units into
// stages and the order of the microbatches give those of the pipeline, without compiling it.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_STAGEESTIMATE_H
#define TOOLS_FSDPC_STAGEESTIMATE_H

#include "tools/fsdpc/PlanCosts.h"
#include "tools/fsdpc/PlanSpace.h"

namespace fsdpc {

/// The time in which a rank of `plan`, which has stages of equal length, waits for the first and
/// the last microbatch, over the time in which it computes (docs/pipeline.md, Schedules).
double idleOf(const PlanSpec &plan);

/// The seconds of each unit in a step of `whole`: of an estimate, each of the `blocks` equal units
/// takes what one more block takes, and the other units share the rest by flops; else all do.
std::vector<double> timeUnits(const PlanCosts &whole, llvm::ArrayRef<UnitWork> units,
                              int64_t blocks);

/// The costs of `plan` from those of plan.withoutStages(). Sets its stages by the times of units,
/// if these are more than shares of flops. Nothing where the schedule does not suit the
/// microbatches, or there are fewer units than stages.
std::optional<PlanCosts> estimateStages(PlanSpec &plan, const PlanCosts &whole,
                                        llvm::ArrayRef<UnitWork> units, int64_t blocks);

} // namespace fsdpc

#endif // TOOLS_FSDPC_STAGEESTIMATE_H
