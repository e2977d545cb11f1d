//===- PlanSearch.cpp -----------------------------------------------------===//

#include "tools/fsdpc/PlanSearch.h"
#include "passes/printing/MemoryReportText.h"
#include "tools/fsdpc/Compile.h"
#include "tools/fsdpc/StageEstimate.h"

#include <algorithm>
#include <cmath>
#include <future>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

/// Of a large search: the plans from which those with stages are estimated, at most, and the work
/// of compiling the best of these: operations of the model in all microbatches, 10'000 of which
/// take about a second.
static constexpr size_t kEstimatedStages = 48;
static constexpr int64_t kStageWork = 240'000;
/// The most estimates that are compiled, whatever the work, to put an exact plan first.
static constexpr int kConfirmedBest = 2;

namespace {
/// A mesh with stages and a number of microbatches, and how long a step takes, about.
struct StagedLayout {
  PlanSpec spec;
  double seconds;
};

class PlanSearch {
public:
  PlanSearch(PlanModel &model, const PlanRequest &request, const Options &options);
  PlanSearchResult run();

private:
  std::vector<RankedPlan> compileAll(PlanModel &model, PlanSpec spec,
                                     llvm::ArrayRef<int64_t> depths) const;
  std::vector<RankedPlan> evaluate(PlanModel &model, PlanSpec spec, llvm::ArrayRef<int64_t> depths,
                                   bool estimates) const;
  std::vector<RankedPlan> rank(PlanSpec spec, llvm::ArrayRef<int64_t> depths);
  std::optional<RankedPlan> evaluateBest(const PlanSpec &spec);
  std::optional<RankedPlan> evaluateSchedules(PlanSpec spec);
  std::optional<RankedPlan> evaluateWith(PlanSpec spec, const std::string &remat);
  std::optional<RankedPlan> compile(PlanModel &model, const RankedPlan &plan) const;
  void searchAll(PlanSpec spec);
  void searchFitting(std::optional<RankedPlan> plan);
  void searchRanked();
  std::vector<StagedLayout> orderStaged();
  void searchStaged();
  std::vector<int64_t> microbatchesOf(const PlanSpec &spec) const {
    return findMicrobatches(spec, request, accumulations, totals);
  }
  int64_t countPlans(bool staged) const;
  bool compilesAll(const PlanSpec &spec) const {
    return spec.hasStages() ? compilesStages : compilesWhole;
  }
  const std::vector<int64_t> &rankedDepths(const PlanSpec &spec) const {
    return compilesAll(spec) ? depths : ranked;
  }
  double boundComputing(double flops) const;
  double boundTime(const PlanSpec &spec) const;
  double threshold() const;
  int64_t workOf(const PlanSpec &spec) const;
  bool canCompile(const RankedPlan &plan) const;
  void keep(const std::optional<RankedPlan> &plan);
  void confirm();
  void confirmFirst();
  void refineDepths();

  PlanModel &model;
  const PlanRequest &request;
  const Options &options;
  ModelTotals totals;
  ir::cost::Machine machine;
  int64_t devices;
  size_t wanted; ///< of the best plans
  std::vector<PlanSpec> layouts;
  std::vector<std::string> remats, schedules;
  std::vector<int64_t> accumulations, depths;
  std::vector<int64_t> ranked; ///< the depths with which plans are tried, unless all are
  /// Whether every plan without stages is compiled, and every plan with stages.
  bool compilesWhole = false, compilesStages = false;
  bool choosesTied;
  bool extrapolates = false;
  int64_t stageWork = 0; ///< of compiling plans with stages, until now
  /// The costs of plans without stages, from which those with stages are estimated, by plan.
  std::map<std::string, std::vector<RankedPlan>> unstaged;
  double modelFlops = 0; ///< of all ranks, once a plan was compiled
  std::vector<RankedPlan> fitting;
  PlanSearchResult result;
};
} // namespace

PlanSearch::PlanSearch(PlanModel &model, const PlanRequest &request, const Options &options)
    : model(model), request(request), options(options),
      totals(measureModel(model.module, model.name, options)),
      machine(options.findMachine(request.devices)), devices(request.devices), wanted(request.best),
      layouts(findLayouts(request, options, totals, machine)),
      remats(findValues(request, options, "remat")),
      schedules(findValues(request, options, "pipeline-schedule")),
      accumulations(findCounts(request, options, "accumulate")),
      depths(findCounts(request, options, "prefetch")),
      choosesTied(!request.fixes("tied-gradients")) {
  result.limit = options.getMemoryLimit() ? options.getMemoryLimit() : machine.memory;
  result.machine = machine.name;
  if (const std::string option = options.getContextOption(); !option.empty()) {
    if (!totals.hasPositions)
      throw UsageError(option +
                       " applies to sequences, got a model without positions; leave it out");
    result.axisOptions.emplace_back(option, "context");
  }
  if (request.fixes("pipeline-schedule"))
    result.axisOptions.emplace_back("--pipeline-schedule=" + options.pipeline.pipelineSchedule,
                                    "pipeline");
  llvm::erase_if(layouts, [&](const PlanSpec &spec) {
    return spec.hasStages() && microbatchesOf(spec).empty();
  });
}

/// The work of compiling a plan with stages, whose program has all microbatches of a step.
int64_t PlanSearch::workOf(const PlanSpec &spec) const {
  return spec.hasStages() ? countOperations(model.module) * spec.accumulate : 0;
}

static bool isFaster(const RankedPlan &one, const RankedPlan &other) {
  return one.step < other.step;
}

/// Of the layouts with or without stages, but for tied gradients. Those with stages count for each
/// microbatch, as in the work of compiling them.
int64_t PlanSearch::countPlans(bool staged) const {
  int64_t count = 0;
  for (const PlanSpec &spec : layouts)
    if (spec.hasStages() == staged)
      for (int64_t accumulate : microbatchesOf(spec))
        count += staged ? accumulate * static_cast<int64_t>(schedules.size()) : 1;
  return count * static_cast<int64_t>(remats.size() * depths.size());
}

/// The exact costs of `spec` with each of `depths`, except those that the compiler refuses. Stages
/// that are not known are cut by the times of the units.
std::vector<RankedPlan> PlanSearch::compileAll(PlanModel &model, PlanSpec spec,
                                               llvm::ArrayRef<int64_t> depths) const {
  std::vector<RankedPlan> plans;
  if (spec.hasStages() && spec.stages.empty()) {
    ScopedDiagnosticHandler silence(model.module.getContext(),
                                    [](Diagnostic &) { return success(); });
    try {
      spec.prefetch = depths.front();
      if (std::optional<TimedStages> timed =
              timeStages(model.module, model.name, spec.mesh, spec.apply(options))) {
        spec.stages = timed->sizes;
        if (timed->sizes == timed->equal) { // the plan was compiled for that
          plans.push_back({costsOf(*timed->plan, machine), spec});
          depths = depths.drop_front();
        }
      }
    } catch (const std::runtime_error &) {
      return {};
    }
  }
  llvm::append_range(plans, evaluate(model, spec, depths, /*estimates=*/false));
  return plans;
}

/// The costs of `spec` with each of `depths`, except those that the compiler refuses.
std::vector<RankedPlan> PlanSearch::evaluate(PlanModel &model, PlanSpec spec,
                                             llvm::ArrayRef<int64_t> depths, bool estimates) const {
  PlanEvaluator evaluator(model, spec.mesh, spec.apply(options), estimates);
  std::vector<RankedPlan> plans;
  for (int64_t depth : depths) {
    spec.prefetch = depth;
    if (std::optional<PlanCosts> costs = evaluator.evaluate(spec.apply(options).pipeline))
      plans.push_back({*costs, spec});
  }
  return plans;
}

/// The costs by which plans are compared: exact in a small search, else estimates where the model
/// or a pipeline has them.
std::vector<RankedPlan> PlanSearch::rank(PlanSpec spec, llvm::ArrayRef<int64_t> depths) {
  if (!spec.hasStages())
    return evaluate(model, spec, depths, extrapolates && !compilesWhole);
  if (compilesAll(spec))
    return compileAll(model, spec, depths);
  const PlanSpec base = spec.withoutStages();
  auto [entry, isNew] = unstaged.try_emplace(base.describe() + std::to_string(depths.size()));
  if (isNew)
    entry->second = evaluate(model, base, depths, extrapolates);
  std::vector<RankedPlan> plans;
  for (const RankedPlan &whole : entry->second) {
    spec.prefetch = whole.spec.prefetch;
    if (std::optional<PlanCosts> costs = estimateStages(
            spec, whole, totals.units, model.blocks, timeTransfers(spec, options, totals, machine)))
      plans.push_back({*costs, spec});
  }
  return plans;
}

/// The fastest depth that fits, otherwise the one that needs the least memory. Adds it to the plans
/// that fit, or to those that do not.
std::optional<RankedPlan> PlanSearch::evaluateBest(const PlanSpec &spec) {
  std::vector<RankedPlan> plans = rank(spec, rankedDepths(spec));
  if (plans.empty())
    return std::nullopt;
  RankedPlan best = plans.front();
  for (const RankedPlan &plan : plans)
    if (isBetter(plan, best, result.limit))
      best = plan;
  modelFlops = std::max(modelFlops, best.modelFlops * static_cast<double>(devices));
  (best.arena <= result.limit ? fitting : result.tooLarge).push_back(best);
  return best;
}

/// Seconds for `flops` of all ranks at the best rate of a product, at least.
double PlanSearch::boundComputing(double flops) const {
  double rate = machine.loopFlops;
  for (const auto &[kind, curve] : machine.products)
    for (int64_t extent = 1; extent <= 1 << 20; extent *= 2)
      rate = std::max(rate, curve.at(static_cast<double>(extent)));
  return flops / static_cast<double>(devices) / (1.01 * rate);
}

/// No plan like this is faster: its communication, and the flops of the model.
double PlanSearch::boundTime(const PlanSpec &spec) const {
  return std::max(boundCommunication(spec, options, totals, machine), boundComputing(modelFlops));
}

/// Seconds of the last of the requested fastest plans so far; infinite if there are fewer.
double PlanSearch::threshold() const {
  if (fitting.size() < wanted)
    return HUGE_VAL;
  std::vector<double> steps;
  for (const RankedPlan &plan : fitting)
    steps.push_back(plan.step);
  std::nth_element(steps.begin(), steps.begin() + (wanted - 1), steps.end());
  return steps[wanted - 1];
}

/// The best of evaluateBest with each schedule, if there are stages.
std::optional<RankedPlan> PlanSearch::evaluateSchedules(PlanSpec spec) {
  if (!spec.hasStages())
    return evaluateBest(spec);
  std::optional<RankedPlan> best;
  for (const std::string &schedule : schedules) {
    // Values that backward recomputes are kept for gradients of weights: slower, and no smaller.
    if (!compilesAll(spec) && schedule == "zb" && spec.remat != "none" && schedules.size() > 1)
      continue;
    spec.schedule = schedule;
    if (std::optional<RankedPlan> plan = evaluateBest(spec);
        plan && (!best || isBetter(*plan, *best, result.limit)))
      best = plan;
  }
  return best;
}

/// Evaluates `spec` with `remat`, and with reductions of tied gradients that are merged.
std::optional<RankedPlan> PlanSearch::evaluateWith(PlanSpec spec, const std::string &remat) {
  spec.remat = remat;
  std::optional<RankedPlan> plan = evaluateSchedules(spec);
  if (plan && plan->hasTied && choosesTied) {
    spec.tied = "once";
    evaluateSchedules(spec);
  }
  return plan;
}

/// Tries all microbatches and rematerializations that the lower bounds do not exclude.
void PlanSearch::searchAll(PlanSpec spec) {
  for (int64_t accumulate : microbatchesOf(spec)) {
    spec.accumulate = accumulate;
    if (const double bound = boundTime(spec); bound > threshold()) {
      result.bounded.push_back({spec, 0, bound});
      return;
    }
    for (const std::string &remat : remats)
      evaluateWith(spec, remat);
  }
}

/// The same for a layout whose first plan is `plan`, which does not fit: recomputation and
/// microbatches are assumed to cost time, so plans slower than the best ones end the search.
void PlanSearch::searchFitting(std::optional<RankedPlan> plan) {
  PlanSpec spec = plan->spec;
  const int64_t fewest = accumulations.front(), shards = boundMemory(spec, options, totals);
  // For each rematerialization, the arena with the fewest microbatches. With k times as many, all
  // memory except the shards is assumed to be at least a k-th of it; gaps between buffers can make
  // it less.
  std::map<std::string, int64_t> arenas = {{plan->spec.remat, plan->arena}};
  auto mayFit = [&](const std::string &remat) {
    auto found = arenas.find(remat);
    return found == arenas.end() ||
           shards + (found->second - shards) / (spec.accumulate / fewest) <= result.limit;
  };
  for (int64_t accumulate : microbatchesOf(spec)) {
    spec.accumulate = accumulate;
    if (boundTime(spec) > threshold())
      return;
    if (accumulate != fewest && mayFit(remats.front()))
      plan = evaluateWith(spec, remats.front());
    if (plan && (plan->arena <= result.limit || plan->step > threshold()))
      return;
    // The plan that needs the least memory first: if it does not fit, no plan does.
    const bool hasFull = remats.size() > 1 && llvm::is_contained(remats, "full");
    if (hasFull && !mayFit("full"))
      continue;
    if (hasFull) {
      std::optional<RankedPlan> least = evaluateWith(spec, "full");
      if (least && accumulate == fewest)
        arenas["full"] = least->arena;
      if (!least || least->arena > result.limit)
        continue;
    }
    for (const std::string &remat : llvm::ArrayRef(remats).drop_front())
      if (remat != "full")
        evaluateWith(spec, remat);
  }
}

/// Tries one plan of each layout, then more of those that are fast but do not fit.
void PlanSearch::searchRanked() {
  std::vector<RankedPlan> tooLarge;
  for (PlanSpec spec : layouts) {
    const std::vector<int64_t> microbatches = microbatchesOf(spec);
    if (spec.hasStages() || microbatches.empty())
      continue;
    spec.accumulate = microbatches.front();
    std::optional<RankedPlan> plan = evaluateWith(spec, remats.front());
    if (plan && plan->arena > result.limit)
      tooLarge.push_back(*plan);
  }
  llvm::stable_sort(tooLarge, isFaster);
  for (const RankedPlan &plan : tooLarge)
    searchFitting(plan);
}

/// Meshes with stages and their microbatches, the most promising first: as if computation took as
/// long as in the fastest plan without stages, less the recomputation of that plan, at most a third
/// of forward and backward, transfers between stages their estimated time, and other communication
/// its lower bound. Without the meshes that this excludes.
std::vector<StagedLayout> PlanSearch::orderStaged() {
  double flops = 0; // of forward
  for (const UnitWork &unit : totals.units)
    flops += unit.flops;
  double computing = boundComputing(3 * flops);
  if (auto fastest = llvm::min_element(fitting, isFaster); fastest != fitting.end())
    computing = fastest->computing * (fastest->spec.remat == "none" ? 1 : 0.75);
  std::vector<StagedLayout> staged;
  for (PlanSpec spec : layouts)
    if (spec.hasStages())
      for (int64_t accumulate : microbatchesOf(spec)) {
        spec.accumulate = accumulate;
        const StageTransfers transfers = timeTransfers(spec, options, totals, machine);
        double seconds = HUGE_VAL;
        for (const std::string &schedule : schedules) {
          spec.schedule = schedule;
          seconds = std::min(seconds, timePipeline(spec, computing, transfers));
        }
        spec.schedule.clear();
        seconds = std::max(boundTime(spec), seconds);
        if (const int64_t memory = boundMemory(spec, options, totals); memory > result.limit)
          result.bounded.push_back({spec, memory, 0});
        else if (seconds <= threshold())
          staged.push_back({spec, seconds});
      }
  // As if nothing of the communication were hidden: with more microbatches there is more of it.
  auto sum = [&](const StagedLayout &layout) {
    return layout.seconds + boundCommunication(layout.spec, options, totals, machine);
  };
  llvm::stable_sort(staged, [&](const StagedLayout &one, const StagedLayout &other) {
    return sum(one) < sum(other);
  });
  return staged;
}

/// Estimates the most promising plans with stages; those with recomputation only where others do
/// not fit, the one that needs the least memory first.
void PlanSearch::searchStaged() {
  for (const StagedLayout &layout : orderStaged()) {
    if (unstaged.size() >= kEstimatedStages || layout.seconds > threshold()) {
      ++result.untried;
      continue;
    }
    std::optional<RankedPlan> plan = evaluateWith(layout.spec, remats.front());
    if (!plan || plan->arena <= result.limit || remats.size() == 1)
      continue;
    const bool hasFull = llvm::is_contained(remats, "full");
    if (hasFull)
      if (plan = evaluateWith(layout.spec, "full"); !plan || plan->arena > result.limit)
        continue;
    for (const std::string &remat : llvm::ArrayRef(remats).drop_front())
      if (remat != "full")
        evaluateWith(layout.spec, remat);
  }
}

/// `plan` as it is, not estimated; nothing where the compiler refuses it.
std::optional<RankedPlan> PlanSearch::compile(PlanModel &model, const RankedPlan &plan) const {
  if (plan.exact)
    return plan;
  std::vector<RankedPlan> exact = compileAll(model, plan.spec, {plan.spec.prefetch});
  return exact.empty() ? std::nullopt : std::optional<RankedPlan>(exact.front());
}

/// Whether the work of compiling `plan` is within that of a search.
bool PlanSearch::canCompile(const RankedPlan &plan) const {
  return plan.exact || !plan.spec.hasStages() || stageWork + workOf(plan.spec) <= kStageWork;
}

void PlanSearch::keep(const std::optional<RankedPlan> &plan) {
  if (plan)
    (plan->arena <= result.limit ? result.best : result.tooLarge).push_back(*plan);
}

/// Replaces the best estimates by exact plans. Two are compiled at once, never more than requested,
/// so that the result is that of sequential compilation.
void PlanSearch::confirm() {
  Context context;
  OwningOpRef<ModuleOp> copy;
  if (extrapolates)
    copy = copyInto(context, model.module);
  PlanModel other(copy.get(), model.name);
  llvm::ArrayRef<RankedPlan> rest = fitting;
  // The next plan, unless compiling it is too much work: then its estimate is kept.
  auto next = [&]() -> const RankedPlan * {
    for (; !rest.empty() && result.best.size() < wanted; rest = rest.drop_front()) {
      if (!canCompile(rest.front())) {
        (request.takesEstimates ? result.best : result.losing).push_back(rest.front());
        continue;
      }
      const RankedPlan *plan = &rest.front();
      stageWork += plan->exact ? 0 : workOf(plan->spec);
      rest = rest.drop_front();
      return plan;
    }
    return nullptr;
  };
  while (const RankedPlan *first = next()) {
    std::future<std::optional<RankedPlan>> second;
    if (extrapolates && result.best.size() + 1 < wanted)
      if (const RankedPlan *plan = next())
        second = std::async(std::launch::async, [&, plan] { return compile(other, *plan); });
    keep(compile(model, *first));
    if (second.valid())
      keep(second.get());
  }
  llvm::append_range(result.losing, rest);
}

/// Compiles the first plan if it is an estimate. If others are faster by their estimates then, the
/// first of these too; after that the fastest exact plan is first, and estimates follow it.
void PlanSearch::confirmFirst() {
  std::vector<RankedPlan> &best = result.best;
  auto isExact = [](const RankedPlan &plan) { return plan.exact; };
  for (int compiled = 0; !best.empty() && !best.front().exact; ++compiled) {
    auto exact = llvm::find_if(best, isExact);
    if (compiled >= kConfirmedBest && exact != best.end()) {
      std::rotate(best.begin(), exact, std::next(exact));
      return;
    }
    const RankedPlan first = best.front();
    best.erase(best.begin());
    keep(compile(model, first));
    llvm::stable_sort(best, isFaster);
  }
}

/// Tries the depths that were not ranked with the fastest plan: all, or of estimated plans those
/// that are faster by their estimates, until one is.
void PlanSearch::refineDepths() {
  if (result.best.empty() || rankedDepths(result.best.front().spec).size() == depths.size())
    return;
  RankedPlan &best = result.best.front();
  std::vector<RankedPlan> plans = rank(best.spec, depths);
  llvm::stable_sort(plans, isFaster);
  const bool estimates = extrapolates || best.spec.hasStages();
  for (RankedPlan &plan : plans) {
    if (estimates && (plan.spec.prefetch == best.spec.prefetch || !canCompile(plan)))
      return;
    plan.spec.stages = best.spec.stages;
    if (estimates && static_cast<double>(plan.arena) >
                         1.01 * static_cast<double>(result.limit)) // estimates of arenas are closer
      continue;
    if (!plan.exact)
      if (std::optional<RankedPlan> exact = compile(model, plan))
        plan = *exact;
    if (plan.exact && plan.arena <= result.limit && plan.step < best.step * (1 - 1e-9)) {
      best = plan;
      return;
    }
  }
}

PlanSearchResult PlanSearch::run() {
  llvm::erase_if(layouts, [&](const PlanSpec &spec) {
    const int64_t memory = boundMemory(spec, options, totals);
    if (memory > result.limit)
      result.bounded.push_back({spec, memory, 0});
    return memory > result.limit;
  });
  const int64_t operations = countOperations(model.module);
  compilesWhole = countPlans(/*staged=*/false) * operations <= kExhaustiveWork;
  compilesStages = countPlans(/*staged=*/true) * operations <= kExhaustiveWork;
  result.exhaustive = compilesWhole && compilesStages;
  extrapolates = !result.exhaustive && model.isEstimable();
  ranked = llvm::is_contained(depths, 1) ? std::vector<int64_t>{1} : depths;
  llvm::stable_sort(layouts, [&](const PlanSpec &one, const PlanSpec &other) {
    return boundTime(one) < boundTime(other);
  });
  for (PlanSpec &spec : layouts)
    spec.tied = options.pipeline.tiedGradients;
  if (!compilesWhole)
    searchRanked();
  for (const PlanSpec &spec : layouts)
    if (compilesAll(spec))
      searchAll(spec);
  if (!compilesStages)
    searchStaged();
  if (fitting.empty() && result.tooLarge.empty() && !layouts.empty()) {
    // All were refused; the first diagnostic explains why.
    PlanSpec first = layouts.front();
    first.remat = remats.front();
    first.accumulate = accumulations.front();
    first.prefetch = depths.front();
    PlanEvaluator(model, first.mesh, first.apply(options), /*estimates=*/false)
        .compileOrThrow(first.apply(options).pipeline);
  }
  llvm::stable_sort(fitting, isFaster);
  confirm();
  llvm::stable_sort(result.best, isFaster);
  confirmFirst();
  refineDepths();
  llvm::stable_sort(result.tooLarge, [](const RankedPlan &one, const RankedPlan &other) {
    return one.arena < other.arena;
  });
  return std::move(result);
}

static std::string explainNoMesh(const std::string &devices,
                                 llvm::ArrayRef<std::pair<std::string, std::string>> axisOptions) {
  std::string text = "no mesh of " + devices, leave;
  for (const auto &[option, axis] : axisOptions) {
    text += (leave.empty() ? " with an axis '" : " and an axis '") + axis + "'";
    leave += (leave.empty() ? ", or leave " : " and ") + option.substr(0, option.find('='));
  }
  return text +
         " suits the strategy and the batch; give fewer devices, a larger batch, or another "
         "--strategy" +
         leave + (leave.empty() ? "" : " out");
}

std::string PlanSearchResult::explainNone(const PlanRequest &request) const {
  const std::string devices =
      std::to_string(request.devices) + (request.devices == 1 ? " device" : " devices");
  std::string least;
  if (!tooLarge.empty())
    least = (tooLarge.front().exact ? "; the smallest arena has "
                                    : "; the smallest arena is estimated at ") +
            ir::formatBytes(tooLarge.front().arena) + ", by " + tooLarge.front().spec.describe();
  else if (!bounded.empty())
    least = "; parameters and optimizer state of a rank are at least " +
            ir::formatBytes(llvm::min_element(bounded, [](const auto &one, const auto &other) {
                              return one.memory < other.memory;
                            })->memory);
  else
    return explainNoMesh(devices, axisOptions);
  return "no plan on " + devices + " fits the limit of " + ir::formatBytes(limit) + least +
         "; give more --devices, or a smaller model, batch or context";
}

PlanSearchResult searchPlans(PlanModel &model, const PlanRequest &request, const Options &options) {
  return PlanSearch(model, request, options).run();
}

} // namespace fsdpc
