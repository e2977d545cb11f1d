//===- PlanTable.cpp ------------------------------------------------------===//

#include "tools/fsdpc/PlanTable.h"
#include "base/ShellWords.h"
#include "passes/printing/MemoryReportText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

namespace fsdpc {

/// Plans of each reason to lose that are listed.
static constexpr size_t kListed = 5;

std::string commandOf(const PlanSpec &plan, const std::string &command,
                      const std::string &machine) {
  std::string text = command + " " + plan.describe();
  if (!machine.empty())
    base::addShellWord(text, "--machine=" + machine);
  return text + " --report -o train";
}

namespace {
/// A plan that lost, and why.
struct Loser {
  PlanSpec spec;
  const RankedPlan *plan; ///< null for one that was not compiled
  std::string reason;
};
} // namespace

/// "12 % slower: 4.1 ms more exposed, 3 ms more computing"
static std::string explainSlower(const RankedPlan &plan, const RankedPlan &best) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (plan.step < best.step) { // an estimate: the best plan is exact
    os << llvm::format("%.3g %% faster by its estimate", (best.step / plan.step - 1) * 100);
    return text;
  }
  os << llvm::format("%.3g %% slower", (plan.step / best.step - 1) * 100);
  if (const std::string times = explainTimes(plan, best); !times.empty())
    os << ": " << times;
  return text;
}

/// The fastest ones that fit, those that nearly fit, and those that lower bounds exclude.
static std::vector<Loser> findLosers(const PlanSearchResult &result) {
  std::vector<Loser> losers;
  const RankedPlan &best = result.best.front();
  for (const RankedPlan &plan : llvm::ArrayRef(result.losing).take_front(kListed))
    losers.push_back({plan.spec, &plan, explainSlower(plan, best)});
  for (const RankedPlan &plan : llvm::ArrayRef(result.tooLarge).take_front(kListed))
    losers.push_back({plan.spec, &plan,
                      "does not fit by " + mlir::fsdp::formatBytes(plan.arena - result.limit)});
  for (const BoundedPlan &plan : llvm::ArrayRef(result.bounded).take_front(kListed))
    losers.push_back({plan.spec, nullptr,
                      plan.memory
                          ? "does not fit: parameters and optimizer state exceed the limit by " +
                                mlir::fsdp::formatBytes(plan.memory - result.limit)
                          : "a step takes at least " + milliseconds(plan.seconds) + " with " +
                                std::to_string(plan.spec.accumulate) + " or more microbatches"});
  return losers;
}

static const char *kindOf(const RankedPlan *plan) {
  return !plan ? "bound" : plan->exact ? "exact" : "estimate";
}

static std::string summarizeLayout(const PlanSpec &plan) {
  return describe(plan.mesh) + " " + plan.strategy;
}

/// "--remat=none --accumulate=2 --prefetch=1": the options of a plan besides mesh, strategy and
/// stages.
static std::string summarizeChoices(const PlanSpec &plan) {
  return llvm::formatv("--remat={0} --accumulate={1} --prefetch={2}{3}{4}", plan.remat,
                       plan.accumulate, plan.prefetch,
                       plan.tied == "once" ? " --tied-gradients=once" : "",
                       plan.schedule.empty() ? "" : " --pipeline-schedule=" + plan.schedule)
      .str();
}

std::string summarize(const PlanSpec &plan) {
  return summarizeLayout(plan) + " " + summarizeChoices(plan);
}

void print(const PlanSearchResult &result, const PlanRequest &request, const std::string &command,
           const std::string &machine, llvm::raw_ostream &os) {
  const RankedPlan &first = result.best.front();
  os << "plans for " << request.devices << " devices of machine " << result.machine
     << ", each with at most " << mlir::fsdp::formatBytes(result.limit)
     << "; times are a model, not a measurement\n";
  os << llvm::formatv("{0,3} {1,10} {2,14} {3,7} {4,10} {5,11} {6,-9} {7}\n", "", "step",
                      first.itemsAreTokens ? "tokens/s" : "samples/s", "MFU", "exposed", "arena",
                      "", "plan");
  for (auto [index, plan] : llvm::enumerate(result.best))
    os << llvm::formatv("{0,3} {1,10} {2,14} {3,7} {4,10} {5,11} {6,-9} {7}\n", index + 1,
                        milliseconds(plan.step), llvm::formatv("{0:f0}", plan.itemsPerSecond).str(),
                        llvm::formatv("{0:f1} %", plan.mfu * 100).str(), milliseconds(plan.exposed),
                        mlir::fsdp::formatBytes(plan.arena), kindOf(&plan), summarize(plan.spec));
  os << "commands\n";
  for (auto [index, plan] : llvm::enumerate(result.best))
    os << llvm::formatv("{0,3} {1}\n", index + 1, commandOf(plan.spec, command, machine));
  const std::vector<Loser> losers = findLosers(result);
  if (!losers.empty())
    os << "why others lose\n";
  for (const Loser &loser : losers)
    os << llvm::formatv("    {0,-9} {1}: {2}\n", kindOf(loser.plan),
                        loser.plan ? summarize(loser.spec) : summarizeLayout(loser.spec),
                        loser.reason);
  auto isEstimate = [](const RankedPlan &plan) { return !plan.exact; };
  os << llvm::formatv(
      "{0} plans fit, {1} do not{2}, {3} are excluded by lower bounds; {4}{5}\n",
      result.best.size() + result.losing.size(), result.tooLarge.size(),
      llvm::any_of(result.losing, isEstimate) || llvm::any_of(result.tooLarge, isEstimate)
          ? " (by estimates)"
          : "",
      result.bounded.size(),
      result.exhaustive
          ? "every other plan was compiled"
          : "more recomputation and microbatches were tried only where fewer do not fit",
      result.untried
          ? llvm::formatv("; {0} less promising plans with the axis 'pipeline' were left out",
                          result.untried)
                .str()
          : "");
}

static llvm::json::Object toJSON(const PlanSpec &plan) {
  llvm::json::Object fields{{"mesh", describe(plan.mesh)},   {"strategy", plan.strategy},
                            {"tied_gradients", plan.tied},   {"remat", plan.remat},
                            {"accumulate", plan.accumulate}, {"prefetch", plan.prefetch}};
  if (!plan.schedule.empty())
    fields["pipeline_schedule"] = plan.schedule;
  if (!plan.stages.empty())
    fields["stages"] = llvm::json::Array(plan.stages);
  return fields;
}

llvm::json::Object toJSON(const RankedPlan &plan) {
  llvm::json::Object fields = toJSON(plan.spec);
  fields["kind"] = kindOf(&plan);
  fields["predicted_step_ms"] = plan.step * 1e3;
  fields[plan.itemsAreTokens ? "predicted_tokens_per_s" : "predicted_samples_per_s"] =
      plan.itemsPerSecond;
  if (plan.exact)
    fields["predicted_mfu"] = plan.mfu;
  fields["predicted_exposed_ms"] = plan.exposed * 1e3;
  fields["arena"] = plan.arena;
  return fields;
}

llvm::json::Value toJSON(const PlanSearchResult &result, const PlanRequest &request,
                         const std::string &command, const std::string &machine) {
  llvm::json::Array plans, others;
  for (const RankedPlan &plan : result.best) {
    plans.push_back(toJSON(plan));
    (*plans.back().getAsObject())["command"] = commandOf(plan.spec, command, machine);
  }
  for (const Loser &loser : findLosers(result)) {
    llvm::json::Object fields = loser.plan ? toJSON(*loser.plan) : toJSON(loser.spec);
    if (!loser.plan) // the bound holds for all of their values
      for (const char *name : {"tied_gradients", "remat", "prefetch", "pipeline_schedule"})
        fields.erase(name);
    fields["kind"] = kindOf(loser.plan);
    fields["reason"] = loser.reason;
    others.push_back(std::move(fields));
  }
  return llvm::json::Object{{"devices", request.devices},   {"machine", result.machine},
                            {"memory_limit", result.limit}, {"exhaustive", result.exhaustive},
                            {"plans", std::move(plans)},    {"others", std::move(others)}};
}

} // namespace fsdpc
