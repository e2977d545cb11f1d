//===- PlanSearch.cpp -----------------------------------------------------===//

#include "tools/fsdpc/PlanSearch.h"
#include "passes/printing/MemoryReportText.h"
#include "tools/fsdpc/Compile.h"

#include <algorithm>
#include <cmath>
#include <future>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

namespace {
class PlanSearch {
public:
  PlanSearch(PlanModel &model, const PlanRequest &request, const Options &options);
  PlanSearchResult run();

private:
  std::vector<RankedPlan> evaluate(PlanModel &model, PlanSpec spec, llvm::ArrayRef<int64_t> depths,
                                   bool estimates) const;
  std::optional<RankedPlan> evaluateBest(const PlanSpec &spec);
  std::optional<RankedPlan> evaluateWith(PlanSpec spec, const std::string &remat);
  std::optional<RankedPlan> compile(PlanModel &model, const RankedPlan &plan) const;
  void searchAll(PlanSpec spec);
  void searchFitting(std::optional<RankedPlan> plan);
  void searchRanked();
  /// Whether there are more microbatches than samples of a rank.
  bool isTooFine(const PlanSpec &spec) const {
    return totals.samples && spec.batchShards() * spec.accumulate > totals.samples;
  }
  int64_t countPlans() const;
  double boundTime(const PlanSpec &spec) const;
  double threshold() const;
  void confirm();
  void refineDepths();

  PlanModel &model;
  const Options &options;
  ModelTotals totals;
  ir::cost::Machine machine;
  int64_t devices;
  size_t wanted; ///< of the best plans
  std::vector<PlanSpec> layouts;
  std::vector<std::string> remats;
  std::vector<int64_t> accumulations, depths;
  std::vector<int64_t> ranked; ///< the depths with which every plan is tried
  bool choosesTied;
  bool extrapolates = false;
  double modelFlops = 0; ///< of all ranks, once a plan was compiled
  std::vector<RankedPlan> fitting;
  PlanSearchResult result;
};
} // namespace

PlanSearch::PlanSearch(PlanModel &model, const PlanRequest &request, const Options &options)
    : model(model), options(options), totals(measureModel(model.module, options)),
      machine(options.findMachine(request.devices)), devices(request.devices), wanted(request.best),
      layouts(findLayouts(request, options, totals, machine)), remats(findRemats(request, options)),
      accumulations(findAccumulations(request, options)), depths(findDepths(request, options)),
      choosesTied(!request.fixesTied) {
  result.limit = options.getMemoryLimit() ? options.getMemoryLimit() : machine.memory;
  result.machine = machine.name;
  result.contextOption = options.getContextOption();
  if (!result.contextOption.empty() && !totals.hasPositions)
    throw UsageError(result.contextOption +
                     " applies to sequences, got a model without positions; leave it out");
}

static bool isFaster(const RankedPlan &one, const RankedPlan &other) {
  return one.step < other.step;
}

/// Of the layouts, but for tied gradients.
int64_t PlanSearch::countPlans() const {
  size_t count = 0;
  for (PlanSpec spec : layouts)
    for (int64_t accumulate : accumulations) {
      spec.accumulate = accumulate;
      count += isTooFine(spec) ? 0 : remats.size() * depths.size();
    }
  return static_cast<int64_t>(count);
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

/// The fastest depth that fits, otherwise the one that needs the least memory. Adds it to the plans
/// that fit, or to those that do not.
std::optional<RankedPlan> PlanSearch::evaluateBest(const PlanSpec &spec) {
  std::vector<RankedPlan> plans = evaluate(model, spec, ranked, extrapolates);
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

/// No plan like this is faster: its communication, and the flops of the model at the best rate of a
/// product.
double PlanSearch::boundTime(const PlanSpec &spec) const {
  double rate = machine.loopFlops;
  for (const auto &[kind, curve] : machine.products)
    for (int64_t extent = 1; extent <= 1 << 20; extent *= 2)
      rate = std::max(rate, curve.at(static_cast<double>(extent)));
  return std::max(boundCommunication(spec, options, totals, machine),
                  modelFlops / static_cast<double>(devices) / (1.01 * rate));
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

/// Evaluates `spec` with `remat`, and with reductions of tied gradients that are merged.
std::optional<RankedPlan> PlanSearch::evaluateWith(PlanSpec spec, const std::string &remat) {
  spec.remat = remat;
  std::optional<RankedPlan> plan = evaluateBest(spec);
  if (plan && plan->hasTied && choosesTied) {
    spec.tied = "once";
    evaluateBest(spec);
  }
  return plan;
}

/// Tries all microbatches and rematerializations that the lower bounds do not exclude.
void PlanSearch::searchAll(PlanSpec spec) {
  for (int64_t accumulate : accumulations) {
    spec.accumulate = accumulate;
    if (isTooFine(spec))
      return;
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
  for (int64_t accumulate : accumulations) {
    spec.accumulate = accumulate;
    if (isTooFine(spec) || boundTime(spec) > threshold())
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
    spec.accumulate = accumulations.front();
    if (isTooFine(spec))
      continue;
    std::optional<RankedPlan> plan = evaluateWith(spec, remats.front());
    if (plan && plan->arena > result.limit)
      tooLarge.push_back(*plan);
  }
  llvm::stable_sort(tooLarge, isFaster);
  for (const RankedPlan &plan : tooLarge)
    searchFitting(plan);
}

/// `plan` as it is, not estimated; nothing where the compiler refuses it.
std::optional<RankedPlan> PlanSearch::compile(PlanModel &model, const RankedPlan &plan) const {
  if (plan.exact)
    return plan;
  std::vector<RankedPlan> exact = evaluate(model, plan.spec, {plan.spec.prefetch}, false);
  return exact.empty() ? std::nullopt : std::optional<RankedPlan>(exact.front());
}

/// Replaces the best estimates by exact plans. Two are compiled at once, never more than requested,
/// so that the result is that of sequential compilation.
void PlanSearch::confirm() {
  Context context;
  OwningOpRef<ModuleOp> copy;
  if (extrapolates)
    copy = copyInto(context, model.module);
  PlanModel other(copy.get(), model.name);
  auto take = [&](std::optional<RankedPlan> plan) {
    if (plan)
      (plan->arena <= result.limit ? result.best : result.tooLarge).push_back(*plan);
  };
  llvm::ArrayRef<RankedPlan> rest = fitting;
  while (!rest.empty() && result.best.size() < wanted) {
    std::future<std::optional<RankedPlan>> second;
    if (extrapolates && rest.size() > 1 && result.best.size() + 1 < wanted)
      second = std::async(std::launch::async, [&, plan = rest[1]] { return compile(other, plan); });
    take(compile(model, rest.front()));
    rest = rest.drop_front();
    if (second.valid()) {
      take(second.get());
      rest = rest.drop_front();
    }
  }
  llvm::append_range(result.losing, rest);
}

/// Tries the depths that were not ranked with the fastest plan: all, or of estimated plans those
/// that are faster by their estimates, until one is.
void PlanSearch::refineDepths() {
  if (ranked.size() == depths.size() || result.best.empty())
    return;
  RankedPlan &best = result.best.front();
  std::vector<RankedPlan> plans = evaluate(model, best.spec, depths, extrapolates);
  llvm::stable_sort(plans, isFaster);
  for (RankedPlan &plan : plans) {
    if (extrapolates && plan.spec.prefetch == best.spec.prefetch)
      return;
    if (extrapolates &&
        static_cast<double>(plan.arena) >
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
  result.exhaustive = countPlans() * countOperations(model.module) <= kExhaustiveWork;
  extrapolates = !result.exhaustive && model.isEstimable();
  ranked = result.exhaustive || !llvm::is_contained(depths, 1) ? depths : std::vector<int64_t>{1};
  llvm::stable_sort(layouts, [&](const PlanSpec &one, const PlanSpec &other) {
    return boundTime(one) < boundTime(other);
  });
  for (PlanSpec &spec : layouts)
    spec.tied = options.pipeline.tiedGradients;
  if (result.exhaustive)
    for (const PlanSpec &spec : layouts)
      searchAll(spec);
  else
    searchRanked();
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
  refineDepths();
  llvm::stable_sort(result.tooLarge, [](const RankedPlan &one, const RankedPlan &other) {
    return one.arena < other.arena;
  });
  return std::move(result);
}

std::string PlanSearchResult::explainNone(const PlanRequest &request) const {
  const std::string devices = std::to_string(request.devices) + " devices";
  std::string least;
  if (!tooLarge.empty())
    least = "; the smallest arena has " + ir::formatBytes(tooLarge.front().arena) + ", by " +
            tooLarge.front().spec.describe();
  else if (!bounded.empty())
    least = "; parameters and optimizer state of a rank are at least " +
            ir::formatBytes(llvm::min_element(bounded, [](const auto &one, const auto &other) {
                              return one.memory < other.memory;
                            })->memory);
  else
    return "no mesh of " + devices + (contextOption.empty() ? "" : " with an axis 'context'") +
           " suits the strategy and the batch; give fewer devices, a larger batch, or another "
           "--strategy" +
           (contextOption.empty()
                ? ""
                : ", or leave " + contextOption.substr(0, contextOption.find('=')) + " out");
  return "no plan on " + devices + " fits the limit of " + ir::formatBytes(limit) + least +
         "; give more --devices, or a smaller model, batch or context";
}

PlanSearchResult searchPlans(PlanModel &model, const PlanRequest &request, const Options &options) {
  return PlanSearch(model, request, options).run();
}

} // namespace fsdpc
