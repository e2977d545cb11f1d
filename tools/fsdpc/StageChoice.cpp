//===- StageChoice.cpp ----------------------------------------------------===//

#include "tools/fsdpc/StageChoice.h"

#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Pass/PassManager.h"
#include "passes/prediction/StageCosts.h"
#include "passes/schedule/BalancedCut.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/scheduled/ScheduleFindings.h"
#include "passes/sharding/MeshAxes.h"
#include "tools/fsdpc/Compile.h"
#include "tools/fsdpc/Decisions.h"
#include "tools/fsdpc/PlanCosts.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <iostream>
#include <map>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

/// Of each run, the bytes of the values that it or an earlier one computes from inputs and a later
/// one uses.
static std::vector<double> countPassedOn(ir::StepOp step, llvm::ArrayRef<ir::UnitRun> runs) {
  llvm::DenseMap<Operation *, size_t> runOf;
  for (auto [index, run] : llvm::enumerate(runs))
    for (Operation *op : run.ops)
      runOf[op] = index;
  llvm::DenseMap<Value, Value> sourceOf; // of constraints, which compute nothing
  auto source = [&](Value value) { return sourceOf.lookup_or(value, value); };
  llvm::DenseMap<Value, std::pair<size_t, size_t>> lives; // the runs that compute and last use it
  llvm::DenseSet<Value> fromInputs;
  for (Operation &op : step.getBody().front()) {
    bool usesInput = isa<ir::InputOp>(op);
    auto run = runOf.find(&op);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        usesInput |= fromInputs.contains(source(operand));
        if (auto life = lives.find(source(operand)); life != lives.end() && run != runOf.end())
          life->second.second = std::max(life->second.second, run->second);
      }
    });
    for (Value result : op.getResults()) {
      if (isa<ir::ConstraintOp>(op))
        sourceOf[result] = source(op.getOperand(0));
      else if (usesInput)
        fromInputs.insert(result);
      if (usesInput && run != runOf.end())
        lives[result] = {run->second, run->second};
    }
  }
  std::vector<double> bytes(runs.size());
  for (const auto &[value, life] : lives)
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      for (size_t run = life.first; run < life.second; ++run)
        bytes[run] +=
            static_cast<double>(type.getNumElements() * type.getElementTypeBitWidth()) / 8;
  return bytes;
}

/// The runs of the units of the configured `model`, without their ops. `passedOn` gets the bytes of
/// each, if it is asked for.
static SmallVector<ir::UnitRun> findRuns(ModuleOp model, const Options &options,
                                         std::vector<double> *passedOn = nullptr) {
  OwningOpRef<ModuleOp> forward(model.clone());
  PassManager manager(forward->getContext());
  manager.enableVerifier(false);
  ir::buildForwardPipeline(manager, options.pipeline);
  if (failed(manager.run(*forward)))
    throw Failure("the model was not compiled");
  ir::StepOp step = *forward->getOps<ir::StepOp>().begin();
  SmallVector<ir::UnitRun> runs = ir::collectUnitRuns(step);
  if (passedOn)
    *passedOn = countPassedOn(step, runs);
  for (ir::UnitRun &run : runs)
    run.ops.clear();
  return runs;
}

std::vector<UnitWork> findUnitWork(ModuleOp model, const std::string &name,
                                   const Options &options) {
  if (hasManualRegions(model))
    return {};
  ScopedDiagnosticHandler silence(model.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> configured(model.clone());
  SmallVector<ir::UnitRun> runs;
  std::vector<double> passedOn;
  try {
    configure(*configured, name, {{ir::getStorageAxis().str(), 1}}, options);
    runs = findRuns(*configured, options, &passedOn);
  } catch (const std::runtime_error &) {
    return {}; // the plans of the search are refused for the same reason
  }
  std::map<StringRef, double> flops, elements; // of all runs of a unit
  for (const ir::UnitRun &run : runs)
    flops[run.unit.getValue()] += static_cast<double>(run.flops);
  for (auto param : configured->getOps<ir::ParamOp>())
    elements[param.getUnit()] +=
        static_cast<double>(cast<RankedTensorType>(param.getType()).getNumElements());
  std::vector<UnitWork> units;
  for (auto [run, bytes] : llvm::zip_equal(runs, passedOn)) {
    const StringRef unit = run.unit.getValue();
    const auto own = static_cast<double>(run.flops);
    units.push_back(
        {unit.str(), own, elements[unit] * (flops[unit] > 0 ? own / flops[unit] : 1), bytes});
  }
  return units;
}

std::string listStages(llvm::ArrayRef<int64_t> sizes) {
  return llvm::join(llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }), ",");
}

static void emitAll(std::vector<Diagnostic> &diagnostics) {
  for (Diagnostic &diagnostic : diagnostics)
    diagnostic.getLocation()->getContext()->getDiagEngine().emit(std::move(diagnostic));
}

std::optional<TimedStages> timeStages(ModuleOp model, const std::string &name, const MeshAxes &mesh,
                                      const Options &options) {
  TimedStages timed;
  timed.plan = model.clone();
  OwningOpRef<ModuleOp> &plan = timed.plan;
  std::vector<Diagnostic> &diagnostics = timed.diagnostics;
  SmallVector<ir::UnitRun> runs;
  ir::ScheduleFindings findings;
  try {
    ScopedDiagnosticHandler keep(model.getContext(), [&](Diagnostic &diagnostic) {
      diagnostics.push_back(std::move(diagnostic));
      return success();
    });
    configure(*plan, name, mesh, options);
    runs = findRuns(*plan, options);
    diagnostics.clear(); // they come again
    lower(*plan, options, Emit::Model, Emit::Scheduled, &findings);
  } catch (...) {
    emitAll(diagnostics);
    throw;
  }
  const StringAttr axis = ir::findPipelineAxis(*plan);
  if (!axis) // the model has a pipeline by hand
    return std::nullopt;
  ir::MeshAttr axes = ir::getMeshOp(*plan).getMesh();
  ir::schedule::PipelineSchedule schedule;
  ir::schedule::parsePipelineSchedule(options.pipeline.pipelineSchedule, schedule);
  const int64_t count = axes.getAxisSize(axis) * schedule.chunks;
  std::vector<double> flops;
  for (const ir::UnitRun &run : runs)
    flops.push_back(static_cast<double>(run.flops));
  timed.equal = ir::schedule::cutBalanced(flops, count);
  const std::vector<int64_t> &equal = timed.equal;
  SmallVector<int64_t> stages;
  for (auto [stage, size] : llvm::enumerate(equal))
    stages.append(size, static_cast<int64_t>(stage));
  const ir::cost::Machine machine = options.findMachine(axes.getNumRanks());
  const std::vector<std::vector<double>> costs =
      ir::timeRuns({*plan, machine, translate(*plan, std::move(findings.verified))}, runs, stages);
  timed.sizes = ir::schedule::cutBalanced(costs, count);
  const std::vector<int64_t> &sizes = timed.sizes;
  auto dearest = [&](const std::vector<int64_t> &cut) {
    const std::vector<double> parts = ir::schedule::costsOfParts(costs, cut);
    return milliseconds(*std::max_element(parts.begin(), parts.end()));
  };
  timed.reason = "stages " + listStages(sizes) + ": the dearest takes " + dearest(sizes) +
                 " of a microbatch on " + machine.name +
                 (sizes == equal ? ", and equal flops give the same"
                                 : ", " + dearest(equal) + " with " + listStages(equal) +
                                       ", which equal flops give");
  return timed;
}

std::string cutStages(ModuleOp model, const std::string &name, const MeshAxes &mesh,
                      const std::string &tool, Options &options, OwningOpRef<ModuleOp> &scheduled) {
  if (!options.choosesStages(mesh))
    return "";
  std::optional<TimedStages> timed = timeStages(model, name, mesh, options);
  if (!timed)
    return "";
  options.pipeline.stages = listStages(timed->sizes);
  std::cerr << tool << ": note: chose " << timed->reason << "\n";
  if (timed->sizes == timed->equal && options.needsOneSchedule()) {
    emitAll(timed->diagnostics);
    scheduled = std::move(timed->plan);
  }
  return timed->reason;
}

} // namespace fsdpc
