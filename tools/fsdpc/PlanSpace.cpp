//===- PlanSpace.cpp ------------------------------------------------------===//

#include "tools/fsdpc/PlanSpace.h"
#include "base/Options.h"
#include "base/PrintableText.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/UpdateRule.h"
#include "passes/cost/Collectives.h"
#include "passes/global/PositionClass.h"
#include "passes/global/Strategies.h"
#include "passes/schedule/PipelineOrder.h"
#include "tools/fsdpc/Decisions.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

static constexpr const char *kData = "data", *kFsdp = "fsdp", *kContext = "context",
                            *kTensor = "tensor", *kPipeline = "pipeline";

//===----------------------------------------------------------------------===//
// The request
//===----------------------------------------------------------------------===//

static constexpr base::IntegerRange<int64_t> kDevices = {1, 1 << 20}, kBatches = {1, 1 << 30};

/// Parses "8,16,32" to `values`. Returns the fault, or an empty text.
static std::string parseRising(const std::string &text, base::IntegerRange<int64_t> range,
                               std::vector<int64_t> &values) {
  values.clear();
  for (llvm::StringRef word : llvm::split(text, ',')) {
    int64_t value = 0;
    if (!base::parseInteger(word.str(), range, value).empty() ||
        (!values.empty() && value <= values.back()))
      return base::mismatch(text, "rising numbers separated by commas, each " + range.describe());
    values.push_back(value);
  }
  return "";
}

const std::vector<std::string> &PlanRequest::getChosenOptions() {
  static const std::vector<std::string> names = {
      "--mesh",         "--strategy", "--tied-gradients",   "--remat",   "--accumulate",
      "--prefetch",     "--devices",  "--machine",          "--scaling", "--batch-sweep",
      "--memory-limit", "--svg",      "--pipeline-schedule"};
  return names;
}

void PlanRequest::declare(CLI::App &app) {
  CLI::App &group = *app.add_option_group("Plan", "searches for the fastest plans");
  base::addInteger(group, "--devices", "N", devices, "devices to plan for", kDevices);
  base::addOption(group, "--scaling", "N,N,...",
                  "strong and weak scaling: the best plan for each of these numbers of devices; "
                  "--batch is for --devices, by default the fewest",
                  [this](const std::string &text) { return parseRising(text, kDevices, scaling); });
  base::addOption(group, "--batch-sweep", "[=N,N,...]",
                  "the best plan for each of these batches, by default --batch doubled until "
                  "nothing fits",
                  [this](const std::string &text) {
                    sweepsBatch = true;
                    batches.clear();
                    return text == kAutomaticWord ? std::string()
                                                  : parseRising(text, kBatches, batches);
                  });
  base::addText(group, "--svg", "FILE.svg", svg,
                "draw the curves of --scaling or --batch-sweep to this file");
}

void PlanRequest::apply(const CLI::App &app, Options &options) {
  auto isGiven = [&](const std::string &name) { return app.get_option(name)->count() > 0; };
  Options::refuseOutputs(app, "plan");
  if (devices == 0 && scaling.empty())
    throw UsageError("--devices is required");
  if (!scaling.empty() + sweepsBatch + !options.fit.empty() > 1)
    throw UsageError("--scaling, --batch-sweep and --fit are three questions; give one of them");
  if (!svg.empty() && !isSeries())
    throw UsageError("--svg draws curves, got neither --scaling nor --batch-sweep; give one, or "
                     "leave it out");
  if (isGiven("--mesh"))
    throw UsageError("plan chooses the mesh, got --mesh=" + base::inQuotes(options.mesh) +
                     "; give --devices alone, or leave 'plan' out");
  if (options.pipeline.stages != ir::PipelineOptions().stages)
    throw UsageError(
        "plan chooses the stages of each mesh, got --stages=" + options.pipeline.stages +
        "; leave it out, or leave 'plan' out and give --mesh with the axis 'pipeline'");
  for (const char *option : {"strategy", "tied-gradients"})
    if (isGiven(std::string("--") + option))
      fixed.insert(option);
  for (const char *option : {"remat", "accumulate", "prefetch", "pipeline-schedule"})
    if (isGiven(std::string("--") + option) && !getDecision(option).isOpen(options.pipeline))
      fixed.insert(option);
  if (fixes("pipeline-schedule") && options.pipeline.generate)
    throw UsageError("--pipeline-schedule applies to meshes with the axis 'pipeline', and programs "
                     "for these have no --generate; leave one of them out");
  for (const Decision &decision : getDecisions())
    if (const std::string name = std::string("--") + decision.option;
        decision.isOpen(options.pipeline) && !llvm::is_contained(getChosenOptions(), name))
      throw UsageError("plan compares plans of one value of " + name + ", got " + name +
                       "=auto; leave it out, and give it with the command of a plan");
  options.strategyGiven = false; // each plan has one that fits its mesh
  options.report = "-";          // so that no path of a program is asked for
  if (!fixes("accumulate"))
    options.pipeline.accumulate = kAutomaticCount;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

int64_t PlanSpec::sizeOf(llvm::StringRef axis) const {
  for (const auto &[name, size] : mesh)
    if (name == axis)
      return size;
  return 1;
}

int64_t PlanSpec::stageRanks() const { return sizeOf(kPipeline); }

int64_t PlanSpec::countStages() const {
  ir::schedule::PipelineSchedule parsed;
  ir::schedule::parsePipelineSchedule(schedule, parsed);
  return stageRanks() * parsed.chunks;
}

PlanSpec PlanSpec::withoutStages() const {
  PlanSpec plan = *this;
  llvm::erase_if(plan.mesh, [](const auto &axis) { return axis.first == kPipeline; });
  if (plan.mesh.empty())
    plan.mesh.emplace_back(kFsdp, 1);
  plan.schedule.clear();
  plan.stages.clear();
  return plan;
}

std::string PlanSpec::describe() const {
  return "--mesh=" + ::fsdpc::describe(mesh) + " --strategy=" + strategy +
         " --tied-gradients=" + tied + " --remat=" + remat +
         " --accumulate=" + std::to_string(accumulate) + " --prefetch=" + std::to_string(prefetch) +
         (schedule.empty() ? "" : " --pipeline-schedule=" + schedule) +
         (stages.empty() ? "" : " --stages=" + listStages(stages));
}

Options PlanSpec::apply(const Options &options) const {
  Options own = options;
  own.mesh = ::fsdpc::describe(mesh);
  own.pipeline.strategy = strategy;
  own.pipeline.tiedGradients = tied;
  own.pipeline.remat = remat;
  own.pipeline.accumulate = accumulate;
  own.pipeline.prefetch = prefetch;
  const ir::PipelineOptions initial;
  own.pipeline.pipelineSchedule = schedule.empty() ? initial.pipelineSchedule : schedule;
  own.pipeline.stages = stages.empty() ? initial.stages : listStages(stages);
  own.strategyGiven = true;
  return own;
}

ModelTotals measureModel(ModuleOp model, const std::string &name, const Options &options) {
  ModelTotals totals;
  auto isTensor = [](ArrayAttr axes) {
    return llvm::any_of(axes.getAsRange<StringAttr>(),
                        [](StringAttr axis) { return ir::axisOf(axis) == kTensor; });
  };
  for (auto param : model.getOps<ir::ParamOp>()) {
    auto type = cast<RankedTensorType>(param.getType());
    (param.getFrozen() ? totals.frozen : totals.trainable) +=
        static_cast<double>(type.getNumElements());
    totals.elementBytes = std::min(totals.elementBytes, type.getElementTypeBitWidth() / 8.0);
    totals.isPlaced |= bool(param.getPlacementAttr());
    if (ArrayAttr split = param.getSplitAttr())
      for (auto axes : split.getAsRange<ArrayAttr>())
        totals.usesTensor |= isTensor(axes);
  }
  for (const std::string &pattern : options.pipeline.shardPatterns) {
    totals.isPlaced = true;
    for (llvm::StringRef rest = pattern; !rest.empty(); rest = rest.drop_front())
      totals.usesTensor |= rest.starts_with(kTensor);
  }
  model.walk([&](Operation *op) {
    if (auto constraint = dyn_cast<ir::ConstraintOp>(op))
      for (ArrayAttr axes : constraint.getSharding().getDimAxes())
        totals.usesTensor |= isTensor(axes);
    if (auto input = dyn_cast<ir::InputOp>(op)) {
      const int64_t batch =
          cast<RankedTensorType>(input.getType()).getDimSize(input.getSampleDim());
      totals.samples = totals.samples ? std::min(totals.samples, batch) : batch;
    }
  });
  for (auto step : model.getOps<ir::StepOp>()) {
    if (step.getKind() != ir::StepKind::train)
      continue;
    totals.hasPositions = !ir::PositionClass(step).isEmpty();
    options.optimizer.checkGroups(step);
    const ir::OptimizerAttr optimizer = options.optimizer.apply(*step.getOptimizer());
    // Options that exist for some constants only may be absent.
    totals.states = llvm::count_if(optimizer.getUpdateRule().states,
                                   [](const auto &state) { return state.with.empty(); });
  }
  PlanSpec replicated;
  replicated.strategy = "ddp";
  if (!options.pipeline.generate)
    totals.units = findUnitWork(model, name, replicated.apply(options));
  return totals;
}

/// The layouts of `devices` without stages.
static std::vector<PlanSpec> findWhole(int64_t devices, const PlanRequest &request,
                                       const Options &options, const ModelTotals &model,
                                       const ir::cost::Machine &machine) {
  std::vector<PlanSpec> layouts;
  const int64_t inner = machine.links.empty() ? 0 : machine.links.front().ranks;
  const int64_t node = inner ? std::min(inner, request.devices) : request.devices;
  auto add = [&](int64_t data, int64_t fsdp, int64_t context, int64_t tensor) {
    PlanSpec plan;
    for (auto [name, size] :
         {std::pair(kData, data), {kFsdp, fsdp}, {kContext, context}, {kTensor, tensor}})
      if (size > 1)
        plan.mesh.emplace_back(name, size);
    if (plan.mesh.empty())
      plan.mesh.emplace_back(kFsdp, 1);
    if (model.samples && plan.batchShards() > model.samples)
      return;
    const std::string given = request.fixes("strategy") ? options.pipeline.strategy : "";
    std::vector<std::string> strategies = {"zero1", "zero2", data > 1 ? "hsdp" : "fsdp"};
    if (devices == 1)
      strategies = {given.empty() ? "fsdp" : given};
    else if (fsdp == 1 && (context == 1 || given == "ddp"))
      strategies = {"ddp"};
    else if (data > 1 && given == "fsdp") // replicates shards too
      strategies = {given};
    else if (context > 1 && given.empty()) // sequences are split where memory is short
      strategies = {data > 1 && fsdp > 1 ? "hsdp" : "fsdp"};
    for (const std::string &strategy : strategies) {
      plan.strategy = strategy;
      if (given.empty() || given == strategy)
        layouts.push_back(plan);
    }
  };
  const bool onlyContext = !options.getContextOption().empty();
  auto addStored = [&](int64_t context, int64_t tensor) {
    if (onlyContext && context == 1)
      return;
    const int64_t rest = devices / context / tensor;
    for (int64_t fsdp = rest; fsdp >= 1; --fsdp)
      if (rest % fsdp == 0)
        add(rest / fsdp, fsdp, context, tensor);
  };
  for (int64_t tensor = 1; tensor <= (model.usesTensor ? node : 1); ++tensor) {
    if (devices % tensor != 0 || node % tensor != 0)
      continue;
    addStored(1, tensor);
    const int64_t rest = devices / tensor;
    // Beyond a node only where there are fewer samples than devices.
    const bool isShort = model.samples && model.samples < rest;
    for (int64_t context = 2; model.hasPositions && context <= rest; ++context)
      if (rest % context == 0 && (isShort || node % (context * tensor) == 0))
        addStored(context, tensor);
  }
  return layouts;
}

std::vector<PlanSpec> findLayouts(const PlanRequest &request, const Options &options,
                                  const ModelTotals &model, const ir::cost::Machine &machine) {
  std::vector<PlanSpec> layouts;
  if (!request.fixes("pipeline-schedule"))
    layouts = findWhole(request.devices, request, options, model, machine);
  const auto units = static_cast<int64_t>(model.units.size());
  for (int64_t ranks = 2; ranks <= std::min(request.devices, units); ++ranks) {
    if (request.devices % ranks != 0)
      continue;
    for (PlanSpec plan : findWhole(request.devices / ranks, request, options, model, machine)) {
      if (ranks == request.devices) { // nothing is left to split
        if (request.fixes("strategy") && options.pipeline.strategy != "ddp")
          continue;
        plan.strategy = "ddp";
        plan.mesh.clear();
      }
      plan.mesh.insert(plan.mesh.begin(), {kPipeline, ranks});
      layouts.push_back(std::move(plan));
    }
  }
  if (options.pipeline.minShardSize > 0) // applies to shards
    llvm::erase_if(layouts,
                   [](const PlanSpec &plan) { return !ir::findStrategy(plan.strategy)->splits(); });
  return layouts;
}

std::vector<std::string> findValues(const PlanRequest &request, const Options &options,
                                    const char *option) {
  const Decision &decision = getDecision(option);
  if (request.fixes(option))
    return {decision.get(options.pipeline)};
  std::vector<std::string> values = decision.values;
  llvm::erase(values, "gpipe"); // the schedule that is as long as 1f1b, and never smaller
  return values;
}

std::vector<int64_t> findCounts(const PlanRequest &request, const Options &options,
                                const char *option) {
  std::vector<int64_t> counts;
  for (const std::string &value : findValues(request, options, option))
    counts.push_back(std::stoll(value));
  if (llvm::StringRef(option) == "accumulate" &&
      options.pipeline.accumulateReduce != kAutomaticWord)
    llvm::erase(counts, 1); // it chooses among microbatches
  return counts;
}

std::vector<int64_t> findMicrobatches(const PlanSpec &plan, const PlanRequest &request,
                                      llvm::ArrayRef<int64_t> accumulations,
                                      const ModelTotals &model) {
  const int64_t ranks = plan.stageRanks();
  std::set<int64_t> counts(accumulations.begin(), accumulations.end());
  if (!request.fixes("accumulate") && ranks > 1)
    counts.insert({ranks, 2 * ranks, 4 * ranks});
  std::vector<int64_t> values(counts.begin(), counts.end());
  llvm::erase_if(values, [&](int64_t count) {
    return count < ranks || (ranks > 1 && count > kMaxPipelineMicrobatches) ||
           (model.samples && plan.batchShards() * count > model.samples);
  });
  return values;
}

//===----------------------------------------------------------------------===//
// Lower bounds
//===----------------------------------------------------------------------===//

int64_t boundMemory(const PlanSpec &plan, const Options &options, const ModelTotals &model) {
  const ir::Strategy &strategy = *ir::findStrategy(plan.strategy);
  // The largest stage has at least the mean of all.
  const auto tensor = static_cast<double>(plan.sizeOf(kTensor) * plan.stageRanks());
  auto shards = [&](bool split) {
    if (model.isPlaced)
      return tensor * static_cast<double>(plan.batchShards() * plan.sizeOf(kContext));
    return split ? tensor * static_cast<double>(plan.storageShards()) : tensor;
  };
  const double parameters = (model.trainable + model.frozen) / shards(strategy.splitsParameter);
  const double states =
      static_cast<double>(model.states) * model.trainable / shards(strategy.splitsState);
  // Of several microbatches gradients are added up.
  const double width =
      std::min(model.elementBytes, options.pipeline.reducePrecision == "bf16" ? 2.0 : 4.0);
  const double sums =
      plan.accumulate > 1 ? width * model.trainable / shards(strategy.splitsGradient) : 0;
  return static_cast<int64_t>((parameters + states) * model.elementBytes + sums);
}

/// The ranks `count` of them, one every `stride`.
static std::vector<int64_t> strided(int64_t count, int64_t stride) {
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < count; ++i)
    ranks.push_back(i * stride);
  return ranks;
}

double boundCommunication(const PlanSpec &plan, const Options &options, const ModelTotals &model,
                          const ir::cost::Machine &machine) {
  if (model.isPlaced || options.pipeline.minShardSize > 0)
    return 0;
  const ir::Strategy &strategy = *ir::findStrategy(plan.strategy);
  const int64_t tensor = plan.sizeOf(kTensor);
  auto bytes = [&](double elements, const std::string &precision) {
    const double width = std::min(model.elementBytes, precision == "bf16" ? 2.0 : 4.0);
    return elements / static_cast<double>(tensor * plan.stageRanks()) * width;
  };
  const double gradients = bytes(model.trainable, options.pipeline.reducePrecision);
  if (!strategy.splits())
    return ir::cost::timeOf(
               "all_reduce", gradients,
               ir::cost::shapeOf(strided(plan.sizeOf(kData) * plan.sizeOf(kContext), tensor),
                                 machine),
               machine)
        .seconds;
  const ir::cost::GroupShape shape =
      ir::cost::shapeOf(strided(plan.storageShards(), tensor), machine);
  // Each microbatch gathers the parameters that the one before has released, and reduces its
  // gradients into shards.
  const auto microbatches =
      static_cast<double>(strategy.splitsParameter ? plan.accumulate : int64_t(1));
  const double gathers = options.pipeline.reshard == "always" ? microbatches : 1;
  const double reductions = options.pipeline.accumulateReduce == "last" ? 1 : microbatches;
  const double parameters =
      bytes(strategy.splitsParameter ? model.trainable + model.frozen : model.trainable,
            options.pipeline.precision);
  return std::max(
      ir::cost::timeOf("all_gather", gathers * parameters, shape, machine).seconds,
      ir::cost::timeOf("reduce_scatter", reductions * gradients, shape, machine).seconds);
}

StageTransfers timeTransfers(const PlanSpec &plan, const Options &options, const ModelTotals &model,
                             const ir::cost::Machine &machine) {
  std::vector<double> bytes;
  for (const UnitWork &unit : llvm::ArrayRef(model.units).drop_back())
    bytes.push_back(unit.passedOn);
  if (bytes.empty())
    return {};
  std::nth_element(bytes.begin(), bytes.begin() + bytes.size() / 2, bytes.end());
  const bool splitsSequence = options.pipeline.sequenceParallel != "off";
  const int64_t parts = plan.batchShards() * plan.sizeOf(kContext) * plan.accumulate *
                        (splitsSequence ? plan.sizeOf(kTensor) : 1);
  int64_t stride = 1; // the axis of stages is outermost
  for (const auto &[axis, size] : plan.withoutStages().mesh)
    stride *= size;
  StageTransfers transfers;
  for (int64_t stage = 0; stage + 1 < plan.stageRanks(); ++stage) {
    const double seconds =
        ir::cost::timeOf("send", bytes[bytes.size() / 2] / static_cast<double>(parts),
                         ir::cost::shapeOf({stage * stride, (stage + 1) * stride}, machine),
                         machine)
            .seconds;
    transfers.sum += seconds;
    transfers.slowest = std::max(transfers.slowest, seconds);
  }
  return transfers;
}

} // namespace fsdpc
