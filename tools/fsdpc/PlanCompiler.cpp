//===- PlanCompiler.cpp ---------------------------------------------------===//

#include "tools/fsdpc/PlanCompiler.h"
#include "passes/local/partition/StorageLayout.h"
#include "tools/fsdpc/Compile.h"
#include "tools/fsdpc/Decisions.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

/// Models with at most this many blocks are not estimated.
static constexpr int64_t kWholeBlocks = 8;

int64_t countOperations(ModuleOp module) {
  int64_t count = 0;
  module.walk([&](Operation *) { ++count; });
  return count;
}

ModuleOp PlanModel::withBlocks(int64_t blocks) {
  auto [entry, isNew] = smaller.try_emplace(blocks);
  if (isNew)
    entry->second = describe(blocks);
  return entry->second ? *entry->second : ModuleOp();
}

bool PlanModel::isEstimable() {
  return describe && blocks > kWholeBlocks &&
         llvm::all_of(std::array{2, 3, 4, 6},
                      [&](int64_t blocks) { return bool(withBlocks(blocks)); });
}

//===----------------------------------------------------------------------===//
// Exact costs
//===----------------------------------------------------------------------===//

PlanCompiler::PlanCompiler(ModuleOp module, std::string name, MeshAxes mesh, Options options)
    : module(module), name(std::move(name)), mesh(std::move(mesh)), options(std::move(options)) {
  // Of the chosen plan alone.
  this->options.pipeline.printShardings = false;
  this->options.pipeline.drawSharding.clear();
  this->options.pipeline.explainShardings.clear();
}

/// Whether the IR of both is the same at the end of `phase`.
static bool agreeUntil(ir::Phase phase, const ir::PipelineOptions &one,
                       const ir::PipelineOptions &other) {
  return llvm::all_of(getDecisions(), [&](const Decision &decision) {
    return decision.phase > phase || decision.get(one) == decision.get(other);
  });
}

void PlanCompiler::Lowered::emit() {
  for (Diagnostic &diagnostic : std::exchange(diagnostics, {}))
    diagnostic.getLocation()->getContext()->getDiagEngine().emit(std::move(diagnostic));
}

ModuleOp PlanCompiler::lowerTo(ir::Phase phase, const ir::PipelineOptions &pipeline) {
  Lowered &entry = lowered[phase];
  if (entry.module && agreeUntil(phase, entry.pipeline, pipeline))
    return *entry.module;
  Options own = options;
  for (const Decision &decision : getDecisions())
    decision.set(own.pipeline, decision.get(pipeline));
  entry.module = nullptr; // until the phase has succeeded
  entry.diagnostics.clear();
  OwningOpRef<ModuleOp> next;
  if (phase == ir::Phase::global)
    next = module.clone();
  else
    next =
        lowerTo(phase == ir::Phase::local ? ir::Phase::global : ir::Phase::local, pipeline).clone();
  try {
    ScopedDiagnosticHandler keep(module.getContext(), [&](Diagnostic &diagnostic) {
      entry.diagnostics.push_back(std::move(diagnostic));
      return success();
    });
    if (phase == ir::Phase::global) {
      configure(*next, name, mesh, own);
      lower(*next, own, Emit::Model, Emit::Global);
    } else if (phase == ir::Phase::local) {
      lower(*next, own, Emit::Global, Emit::Local);
    } else {
      findings = {};
      costs.reset();
      lower(*next, own, Emit::Local, Emit::Scheduled, &findings);
    }
  } catch (...) {
    entry.emit();
    throw;
  }
  entry.module = std::move(next);
  entry.pipeline = pipeline;
  return *entry.module;
}

PlanFacts PlanFacts::of(ModuleOp scheduled) {
  return of(scheduled, ir::ScheduleProblem(scheduled));
}

PlanFacts PlanFacts::of(ModuleOp scheduled, const ir::ScheduleProblem &schedule) {
  return {ir::computeMemoryReport(scheduled, schedule), ir::countModelWork(schedule)};
}

CompiledPlan PlanCompiler::takeScheduled(const ir::PipelineOptions &pipeline) {
  Lowered &last = lowered[ir::Phase::scheduled];
  if (!last.module || !agreeUntil(ir::Phase::scheduled, last.pipeline, pipeline))
    return {};
  for (auto &[phase, entry] : lowered)
    entry.emit();
  return {std::move(last.module), std::move(facts)};
}

/// Whether the scheduled module in `lowered` is that of `pipeline`: it has the same options, or no
/// unit of it waits for the budget that a larger --prefetch extends.
bool PlanCompiler::hasSchedule(const ir::PipelineOptions &pipeline) const {
  auto last = lowered.find(ir::Phase::scheduled);
  if (last == lowered.end() || !last->second.module ||
      !agreeUntil(ir::Phase::local, last->second.pipeline, pipeline))
    return false;
  const int64_t depth = last->second.pipeline.prefetch;
  return pipeline.prefetch == depth || (pipeline.prefetch > depth && !findings.isLimited);
}

PlanCosts PlanCompiler::compile(const ir::PipelineOptions &pipeline) {
  if (costs && hasSchedule(pipeline)) {
    lowered[ir::Phase::scheduled].pipeline = pipeline;
    return *costs;
  }
  ModuleOp scheduled = lowerTo(ir::Phase::scheduled, pipeline);
  if (!machine)
    machine = options.findMachine(ir::getMeshOp(scheduled).getMesh().getNumRanks());
  const ir::StepSimulation simulation(
      scheduled, *machine, translate(scheduled, std::exchange(findings.verified, std::nullopt)));
  facts = PlanFacts::of(scheduled, simulation.getSchedule());
  costs = costsOf(facts, simulation.predict());
  return *costs;
}

PlanCosts costsOf(const PlanFacts &facts, const ir::Prediction &prediction) {
  PlanCosts costs;
  costs.arena = facts.memory.arena;
  auto ofKind = [&](ir::BufferKind kind) {
    return facts.memory.peak.kinds[static_cast<size_t>(kind)];
  };
  for (ir::BufferKind kind :
       {ir::BufferKind::parameters, ir::BufferKind::optimizer, ir::BufferKind::accumulators,
        ir::BufferKind::gathered, ir::BufferKind::gradients})
    costs.stored += ofKind(kind);
  costs.saved = ofKind(ir::BufferKind::saved);
  costs.working = ofKind(ir::BufferKind::temporaries) + ofKind(ir::BufferKind::recomputed);
  costs.hasTied = !facts.memory.tiedGradients.empty();
  costs.step = prediction.step;
  costs.computing = prediction.computing;
  costs.exposed = prediction.exposed;
  costs.modelFlops = prediction.modelFlops;
  costs.mfu = prediction.mfu;
  costs.itemsPerSecond = prediction.itemsPerSecond();
  costs.itemsAreTokens = prediction.itemsAreTokens;
  for (const ir::PredictedCollective &call : prediction.collectives)
    if (call.kind == "all_gather") {
      costs.longestGather = std::max(costs.longestGather, call.time.seconds);
      costs.gathers += call.count;
    }
  return costs;
}

PlanCosts costsOf(ModuleOp scheduled, const ir::cost::Machine &machine) {
  const ir::StepSimulation simulation(scheduled, machine);
  return costsOf(PlanFacts::of(scheduled, simulation.getSchedule()), simulation.predict());
}

//===----------------------------------------------------------------------===//
// Estimates
//===----------------------------------------------------------------------===//

PlanEvaluator::PlanEvaluator(PlanModel &model, const MeshAxes &mesh, const Options &options,
                             bool estimates)
    : model(model), mesh(mesh), options(options), estimates(estimates) {}

PlanCosts PlanEvaluator::compileOrThrow(const ir::PipelineOptions &pipeline) {
  return compilers.try_emplace(0, model.module, model.name, mesh, options)
      .first->second.compile(pipeline);
}

std::optional<PlanCosts> PlanEvaluator::compile(const ir::PipelineOptions &pipeline) {
  return compileBlocks(0, pipeline);
}

std::optional<PlanCosts> PlanEvaluator::compileBlocks(int64_t blocks,
                                                      const ir::PipelineOptions &pipeline) {
  ModuleOp module = blocks ? model.withBlocks(blocks) : model.module;
  std::string reason; // the first error
  ScopedDiagnosticHandler silence(module.getContext(), [&](Diagnostic &diagnostic) {
    if (reason.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      reason = diagnostic.str();
    return success();
  });
  try {
    return compilers.try_emplace(blocks, module, model.name, mesh, options)
        .first->second.compile(pipeline);
  } catch (const UsageError &error) {
    reason = error.what();
  } catch (const Failure &error) {
    if (reason.empty())
      reason = error.what();
  }
  refusal = llvm::StringRef(reason).split("; ").first.str();
  return std::nullopt;
}

CompiledPlan PlanEvaluator::takeScheduled(const ir::PipelineOptions &pipeline) {
  auto whole = compilers.find(0);
  return whole == compilers.end() ? CompiledPlan() : whole->second.takeScheduled(pipeline);
}

/// The fewest blocks of which a model has the same parts as one of many blocks: whole groups of
/// every:2 or every:3, and of units that are gathered together.
static int64_t fewestBlocks(const ir::PipelineOptions &pipeline) {
  const std::optional<ir::Buckets> buckets = ir::Buckets::parse(pipeline.buckets);
  return std::lcm<int64_t>(pipeline.remat == "every:3" ? 3 : 2,
                           buckets ? std::max<int64_t>(buckets->units, 1) : 1);
}

bool PlanEvaluator::hasLinearArena(const ir::PipelineOptions &pipeline, const PlanCosts &estimate) {
  const int64_t blocks = 3 * fewestBlocks(pipeline);
  if (!model.withBlocks(blocks))
    return false;
  const std::optional<PlanCosts> costs = compileBlocks(blocks, pipeline);
  return costs && costs->arena == estimate.arenaOfThree;
}

std::optional<PlanCosts> PlanEvaluator::evaluate(const ir::PipelineOptions &pipeline) {
  if (!estimates)
    return compile(pipeline);
  const int64_t few = fewestBlocks(pipeline), more = 2 * few;
  if (more > model.blocks || !model.withBlocks(few) || !model.withBlocks(more))
    return compile(pipeline);
  std::optional<PlanCosts> costs = compileBlocks(few, pipeline),
                           larger = compileBlocks(more, pipeline);
  if (!costs || !larger)
    return std::nullopt;
  const double factor = static_cast<double>(model.blocks - few) / static_cast<double>(more - few);
  auto extend = [&](double from, double to) { return from + (to - from) * factor; };
  const double items = costs->itemsPerSecond * costs->step,
               flops = std::max(costs->modelFlops, 1.0),
               peak = costs->mfu * costs->step / flops; // seconds of a flop at it
  costs->exact = false;
  costs->arenaOfThree = 2 * larger->arena - costs->arena;
  auto growth = [&](int64_t from, int64_t to) {
    return std::max<int64_t>(0, to - from) * model.blocks / (more - few);
  };
  costs->stored = growth(costs->stored, larger->stored);
  costs->saved = growth(costs->saved, larger->saved);
  costs->arena = static_cast<int64_t>(
      extend(static_cast<double>(costs->arena), static_cast<double>(larger->arena)));
  costs->secondsOfBlock = (larger->step - costs->step) / static_cast<double>(more - few);
  costs->step = extend(costs->step, larger->step);
  costs->computing = extend(costs->computing, larger->computing);
  costs->exposed = std::max(0.0, extend(costs->exposed, larger->exposed));
  costs->modelFlops = extend(costs->modelFlops, larger->modelFlops);
  costs->itemsPerSecond = items / costs->step;
  costs->mfu = peak * costs->modelFlops / costs->step;
  return costs;
}

} // namespace fsdpc
