//===- StageChoice.cpp ----------------------------------------------------===//

#include "tools/fsdpc/StageChoice.h"

#include "dialect/fsdp/AxisRoles.h"
#include "mlir/Pass/PassManager.h"
#include "passes/prediction/StageCosts.h"
#include "passes/schedule/BalancedCut.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/sharding/MeshAxes.h"
#include "tools/fsdpc/Compile.h"
#include "tools/fsdpc/Decisions.h"
#include "tools/fsdpc/PlanCosts.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <iostream>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

/// The runs of the units of the configured `model`.
static SmallVector<ir::UnitRun> findRuns(ModuleOp model, const Options &options) {
  OwningOpRef<ModuleOp> forward(model.clone());
  PassManager manager(forward->getContext());
  manager.enableVerifier(false);
  ir::buildForwardPipeline(manager, options.pipeline);
  if (failed(manager.run(*forward)))
    throw Failure("the model was not compiled");
  return ir::collectUnitRuns(*forward->getOps<ir::StepOp>().begin());
}

static std::string listed(const std::vector<int64_t> &sizes) {
  return llvm::join(llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }), ",");
}

static void emitAll(std::vector<Diagnostic> &diagnostics) {
  for (Diagnostic &diagnostic : diagnostics)
    diagnostic.getLocation()->getContext()->getDiagEngine().emit(std::move(diagnostic));
}

std::string cutStages(ModuleOp model, const std::string &name, const MeshAxes &mesh,
                      const std::string &tool, Options &options, OwningOpRef<ModuleOp> &scheduled) {
  if (!options.choosesStages(mesh))
    return "";
  OwningOpRef<ModuleOp> plan(model.clone());
  std::vector<Diagnostic> diagnostics;
  SmallVector<ir::UnitRun> runs;
  try {
    ScopedDiagnosticHandler keep(model.getContext(), [&](Diagnostic &diagnostic) {
      diagnostics.push_back(std::move(diagnostic));
      return success();
    });
    configure(*plan, name, mesh, options);
    runs = findRuns(*plan, options);
    diagnostics.clear(); // they come again
    lower(*plan, options, Emit::Model, Emit::Scheduled);
  } catch (...) {
    emitAll(diagnostics);
    throw;
  }
  const StringAttr axis = ir::findPipelineAxis(*plan);
  if (!axis) // the model has a pipeline of its own
    return "";
  ir::MeshAttr axes = ir::getMeshOp(*plan).getMesh();
  ir::schedule::PipelineSchedule schedule;
  ir::schedule::parsePipelineSchedule(options.pipeline.pipelineSchedule, schedule);
  const int64_t count = axes.getAxisSize(axis) * schedule.chunks;
  std::vector<double> flops;
  for (const ir::UnitRun &run : runs)
    flops.push_back(static_cast<double>(run.flops));
  const std::vector<int64_t> equal = ir::schedule::cutBalanced(flops, count);
  SmallVector<int64_t> stages;
  for (auto [stage, size] : llvm::enumerate(equal))
    stages.append(size, static_cast<int64_t>(stage));
  const ir::cost::Machine machine = options.findMachine(axes.getNumRanks());
  const std::vector<std::vector<double>> costs =
      ir::timeRuns(ir::StepSimulation(*plan, machine), runs, stages);
  const std::vector<int64_t> sizes = ir::schedule::cutBalanced(costs, count);
  auto dearest = [&](const std::vector<int64_t> &cut) {
    const std::vector<double> parts = ir::schedule::costsOfParts(costs, cut);
    return milliseconds(*std::max_element(parts.begin(), parts.end()));
  };
  options.pipeline.stages = listed(sizes);
  const std::string reason = "stages " + listed(sizes) + ": the dearest takes " + dearest(sizes) +
                             " of a microbatch on " + machine.name +
                             (sizes == equal ? ", and equal flops give the same"
                                             : ", " + dearest(equal) + " with " + listed(equal) +
                                                   ", which equal flops give");
  std::cerr << tool << ": note: chose " << reason << "\n";
  if (sizes == equal && options.needsOneSchedule()) {
    emitAll(diagnostics);
    scheduled = std::move(plan);
  }
  return reason;
}

} // namespace fsdpc
