//===- StageCosts.h - seconds of the units of a pipeline --------*- C++ -*-===//

#ifndef PASSES_PREDICTION_STAGECOSTS_H
#define PASSES_PREDICTION_STAGECOSTS_H

#include "passes/global/UnitRuns.h"
#include "passes/prediction/Prediction.h"

namespace mlir::fsdp {

/// The seconds of each of `runs` for one microbatch, forward and backward: [run][resource]. The
/// resources work at the same time: computation, with the collectives that it waits for; gathers of
/// parameters; reductions of gradients. Launches are those of `simulation`, a pipeline, each alone;
/// `stages` has the stage of each run there. Several runs of a unit in one stage share its
/// seconds by their flops; launches without a unit count for the last run of their stage.
std::vector<std::vector<double>> timeRuns(const StepSimulation &simulation, ArrayRef<UnitRun> runs,
                                          ArrayRef<int64_t> stages);

} // namespace mlir::fsdp

#endif // PASSES_PREDICTION_STAGECOSTS_H
