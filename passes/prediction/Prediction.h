//===- Prediction.h - time of a step by the cost model ----------*- C++ -*-===//
// The cost model (passes/cost) applied to a scheduled module: the time of a training step on a
// machine, its causes, and when each launch runs. A model, not a measurement; docs/cost-model.md
// describes its limits.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_PREDICTION_PREDICTION_H
#define PASSES_PREDICTION_PREDICTION_H

#include "passes/cost/LaunchTime.h"
#include "passes/cost/Simulator.h"
#include "passes/scheduled/ScheduleProblem.h"

#include <map>
#include <string>

namespace mlir::fsdp {

/// The products of a training step: flops of one rank or, if programs differ, the mean of all.
struct ModelWork {
  /// Three times the flops of forward: the work of the model, without recomputation and without
  /// samples that pad microbatches.
  double flops = 0;
  std::map<std::string, double> ofType; ///< the same by the type of the operands
  /// Seconds for them at the rates of the machine's data sheet; 0 without products.
  double secondsAtPeak(const cost::Machine &machine) const;
};

/// Of a scheduled module, translated with costs.
ModelWork countModelWork(const ScheduleProblem &schedule);

/// Collectives of a step with equal properties.
struct PredictedCollective {
  std::string kind; ///< mnemonic of the op
  std::vector<std::string> axes;
  int64_t bytes = 0; ///< of the whole value, per call
  int64_t count = 0;
  cost::CollectiveTime time; ///< of a call that has the device for itself
};

/// A training step on a machine. Times in seconds, flops of one rank. The times of streams and
/// collectives are those of the role that computes for longest.
struct Prediction {
  std::string machine;
  std::string kernels; ///< the implementation whose rates are used
  std::string role;    ///< that computes for longest; empty where there is one
  double step = 0;
  double items = 0; ///< tokens of a step over all ranks, or samples if those are not rows of tokens
  bool itemsAreTokens = false;
  double modelFlops = 0; ///< ModelWork::flops
  double mfu = 0;        ///< model flops divided by the data sheet's peak for the step's time
  double computing = 0, communicating = 0, exposed = 0; ///< cost::RoleTime
  double efficiency = 0;                 ///< computation over computation and exposed communication
  std::vector<cost::StreamTime> streams; ///< those with launches
  int64_t alive = 0;                     ///< most bytes of the arena that are alive at once
  std::vector<PredictedCollective> collectives;
  /// Of each rank of a pipeline, the share of the time from the first forward to the last backward
  /// of all ranks in which it computes nothing; empty without a pipeline.
  std::vector<double> pipelineIdle;

  double itemsPerSecond() const { return step > 0 ? items / step : 0; }
};

/// A scheduled module on a machine, simulated.
class StepSimulation {
public:
  /// `module` is verified and its memory planned.
  StepSimulation(ModuleOp module, const cost::Machine &machine)
      : StepSimulation(module, machine, ScheduleProblem(module)) {}
  /// `schedule`: the translation of `module`.
  StepSimulation(ModuleOp module, const cost::Machine &machine, ScheduleProblem schedule);

  Prediction predict() const;
  /// The predicted step in the format of `--trace` (docs/trace.md), from 0 on: a process for each
  /// role. The args of a launch have `seconds_alone`, those of a collective also `bus_bytes` and
  /// `link_bytes_per_s`.
  std::string writeTimeline() const;

  /// The role that computes for longest, the first of equal ones.
  int getDearestRole() const;
  const ScheduleProblem &getSchedule() const { return schedule; }
  /// [role][segment][launch], as the launches of the problem.
  const cost::LaunchTimes &getTimes() const { return times; }
  const cost::Simulation &getSimulation() const { return simulation; }

private:
  std::vector<double> findPipelineIdle() const;

  ScheduleProblem schedule;
  cost::Machine machine;
  int64_t ranks;
  std::vector<SmallVector<StringAttr>> axes; ///< of each communicator
  cost::LaunchTimes times;
  std::vector<std::vector<int>> steps; ///< [role]: the segments of a training step
  cost::Simulation simulation;
};

} // namespace mlir::fsdp

#endif // PASSES_PREDICTION_PREDICTION_H
