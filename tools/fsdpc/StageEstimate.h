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

/// Seconds of a step of `plan`, which has stages: the rank that computes longest does so for
/// `computing`. Forward, cotangents and gradients of weights are taken to be equally long. Of P
/// ranks, K microbatches and V stages of a rank (docs/cost-model.md, Pipelines):
///
///   the first and the last microbatch: (P-1)/V of computing/K, a third of it with `zb`, and all
///   transfers forth and back
///   each microbatch, the longest of three: its computation; its 2 V transfers, which share a link;
///   and the limit of the microbatches in flight, the time from a forward to its backward over
///   their number (Little's law)
double timePipeline(const PlanSpec &plan, double computing, const StageTransfers &transfers);

/// The seconds of each unit in a step of `whole`: of an estimate, each of the `blocks` equal units
/// takes the time of one more block, and the other units share the rest by flops; else all units
/// share the time by flops.
std::vector<double> timeUnits(const PlanCosts &whole, llvm::ArrayRef<UnitWork> units,
                              int64_t blocks);

/// The costs of `plan` from those of plan.withoutStages(). Sets its stages by the times of units,
/// if these are more than shares of flops. Nothing where the schedule does not suit the
/// microbatches, or there are fewer units than stages.
std::optional<PlanCosts> estimateStages(PlanSpec &plan, const PlanCosts &whole,
                                        llvm::ArrayRef<UnitWork> units, int64_t blocks,
                                        const StageTransfers &transfers);

} // namespace fsdpc

#endif // TOOLS_FSDPC_STAGEESTIMATE_H
