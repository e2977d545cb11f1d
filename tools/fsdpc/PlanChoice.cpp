//===- PlanChoice.cpp -----------------------------------------------------===//

#include "tools/fsdpc/PlanChoice.h"
#include "passes/printing/MemoryReportText.h"
#include "tools/fsdpc/Compile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdpc {

/// The maximum numbers of compiled plans: of those with the best estimates, to find one that fits,
/// and of those that nearly fit.
static constexpr int64_t kConfirmed = 10, kNearlyFitting = 3;
/// Times that differ by less are the same; estimates that differ by more than the second are not.
static constexpr double kSame = 1e-3, kSimilar = 1.1;

//===----------------------------------------------------------------------===//
// Open decisions
//===----------------------------------------------------------------------===//

std::vector<OpenDecision> findOpenDecisions(const PlanModel &model, const Options &options) {
  OwningOpRef<ModuleOp> module(ModuleOp(model.module).clone());
  configure(*module, model.name, options.getMeshes().front(), options);
  std::vector<OpenDecision> open;
  for (const Decision &decision : getDecisions()) {
    if (!decision.isOpen(options.pipeline))
      continue;
    open.push_back({&decision, decision.findValues ? decision.findValues(*module, options.pipeline)
                                                   : decision.values});
  }
  return open;
}

static PlanCandidate makeCandidate(const Point &point, llvm::ArrayRef<OpenDecision> open,
                                   const Options &options) {
  PlanCandidate candidate;
  candidate.pipeline = options.pipeline;
  std::vector<std::string> words;
  for (auto [index, choice] : llvm::zip_equal(point, open)) {
    const std::string &value = choice.values[index];
    choice.decision->set(candidate.pipeline, value);
    if (choice.values.size() > 1)
      words.push_back(std::string("--") + choice.decision->option + "=" + value);
  }
  candidate.options = llvm::join(words, " ");
  return candidate;
}

static ChoiceProblem problemOf(llvm::ArrayRef<OpenDecision> open) {
  ChoiceProblem problem;
  for (const OpenDecision &choice : open) {
    if (choice.decision->leads)
      problem.leading = problem.sizes.size();
    problem.sizes.push_back(choice.values.size());
    // The first where the default is not a candidate.
    auto initial = llvm::find(choice.values, choice.decision->get(ir::PipelineOptions()));
    problem.defaults.push_back(initial == choice.values.end() ? 0
                                                              : initial - choice.values.begin());
  }
  return problem;
}

std::vector<PlanCandidate> compilePlans(PlanModel &model, const Options &options,
                                        llvm::ArrayRef<OpenDecision> open) {
  PlanEvaluator evaluator(model, options.getMeshes().front(), options, /*estimates=*/false);
  std::vector<PlanCandidate> candidates;
  const auto all = llvm::to_vector(llvm::seq<size_t>(0, open.size()));
  visitPoints(Point(open.size()), all, problemOf(open).sizes, [&](const Point &point) {
    PlanCandidate candidate = makeCandidate(point, open, options);
    if (std::optional<PlanCosts> costs = evaluator.compile(candidate.pipeline)) {
      static_cast<PlanCosts &>(candidate) = *costs;
      candidates.push_back(std::move(candidate));
    }
  });
  return candidates;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// That of the options for their mesh.
static ir::cost::Machine findMachineOf(const Options &options) {
  int64_t ranks = 1;
  const MeshAxes mesh = options.getMeshes().front();
  for (const auto &axis : mesh)
    ranks *= axis.second;
  return options.findMachine(ranks);
}

namespace {
/// Chooses, and describes the reasons.
class PlanChooser {
public:
  PlanChooser(PlanModel &model, const Options &options);
  PlanChoice run();
  /// Of the plan that run() chose.
  CompiledPlan takeScheduled() {
    return evaluator->takeScheduled(makeCandidate(best, open, options).pipeline);
  }

private:
  void consider(const Point &point);
  void confirm();
  bool fits() const { return costs && costs->arena <= problem.limit; }
  std::string explain();
  std::string explainDecision(size_t index);
  std::string listRefused();

  const Options &options;
  ir::cost::Machine machine;
  std::vector<OpenDecision> open;
  ChoiceProblem problem;
  bool estimates = false; ///< the input of the search
  std::optional<PlanEvaluator> evaluator;
  std::optional<ChoiceSearch> search;
  std::map<Point, std::string> refusals; ///< why plans are refused
  Point best;
  std::optional<PlanCosts> costs; ///< of the best plan, exact
  double understated = 1;         ///< arenas by their estimates, at most
};
} // namespace

PlanChooser::PlanChooser(PlanModel &model, const Options &options)
    : options(options), machine(findMachineOf(options)), open(findOpenDecisions(model, options)),
      problem(problemOf(open)) {
  problem.limit = options.memoryLimit.empty() ? machine.memory : options.getMemoryLimit();
  problem.operations = countOperations(model.module);
  // Costs of stages are not linear in the number of blocks.
  if (problem.countPlans() * problem.operations > kExhaustiveWork &&
      !hasStages(options.getMeshes().front()) && model.isEstimable()) {
    estimates = true;
    problem.operations =
        countOperations(model.withBlocks(2)) + countOperations(model.withBlocks(4));
  }
  evaluator.emplace(model, options.getMeshes().front(), options, estimates);
  problem.evaluate = [this](const Point &point) {
    std::optional<PlanCosts> found =
        evaluator->evaluate(makeCandidate(point, open, this->options).pipeline);
    if (!found)
      refusals[point] = evaluator->getRefusal();
    return found;
  };
  search.emplace(problem);
}

/// Compiles a plan, and keeps it if it is better than the previous one.
void PlanChooser::consider(const Point &point) {
  const std::optional<PlanCosts> exact =
      evaluator->compile(makeCandidate(point, open, options).pipeline);
  if (!exact)
    return;
  if (const std::optional<PlanCosts> &estimate = search->evaluate(point))
    understated = std::max(understated, static_cast<double>(exact->arena) /
                                            static_cast<double>(estimate->arena));
  if (!costs || isBetter(*exact, *costs, problem.limit)) {
    costs = exact;
    best = point;
  }
}

/// Compiles plans with the best estimates until one fits, faster ones that nearly fit by their
/// estimates, and the defaults if they may be better.
void PlanChooser::confirm() {
  const auto limit = static_cast<double>(problem.limit);
  int64_t compiled = 0;
  for (const Point &point : search->rank()) {
    if (fits() || compiled == kConfirmed)
      break;
    if (static_cast<double>(search->evaluate(point)->arena) * understated > limit)
      continue;
    consider(point);
    ++compiled;
  }
  std::vector<std::pair<double, Point>> larger; // by time
  for (const Point &point : search->rank())
    if (const PlanCosts &plan = *search->evaluate(point);
        plan.arena > problem.limit && static_cast<double>(plan.arena) < limit * kSimilar)
      larger.emplace_back(plan.step, point);
  llvm::sort(larger);
  for (const auto &[step, point] : llvm::ArrayRef(larger).take_front(kNearlyFitting))
    if ((!fits() || step < costs->step * (1 - kSame)) &&
        !evaluator->hasLinearArena(makeCandidate(point, open, options).pipeline,
                                   *search->evaluate(point)))
      consider(point);
  const std::optional<PlanCosts> &defaults = search->evaluate(problem.defaults);
  if (defaults && (!costs || (static_cast<double>(defaults->arena) < limit * kSimilar &&
                              defaults->step < costs->step * kSimilar)))
    consider(problem.defaults);
}

PlanChoice PlanChooser::run() {
  best = search->run();
  if (estimates) {
    const Point found = best;
    confirm();
    if (!fits())
      consider(found);
  } else {
    costs = search->evaluate(best);
  }
  if (!costs)
    costs = evaluator->compileOrThrow(makeCandidate(best, open, options).pipeline);
  PlanChoice choice{makeCandidate(best, open, options), explain()};
  static_cast<PlanCosts &>(choice.plan) = *costs;
  return choice;
}

PlanChoice choosePlan(PlanModel &model, const Options &options, CompiledPlan *scheduled) {
  PlanChooser chooser(model, options);
  PlanChoice choice = chooser.run();
  if (scheduled)
    *scheduled = chooser.takeScheduled();
  return choice;
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

/// The disadvantages of `other` in comparison with `plan`.
static std::string compare(const PlanCosts &plan, const PlanCosts &other, int64_t limit) {
  if (other.arena > limit)
    return plan.arena > limit ? ir::formatBytes(other.arena - plan.arena) + " larger"
                              : ir::formatBytes(other.arena - limit) + " too much";
  if (other.step < plan.step * (1 + kSame))
    return "as fast";
  const std::string times = explainTimes(other, plan);
  return times.empty() ? milliseconds(other.step - plan.step) + " slower" : times;
}

/// "buckets unit: 1.2 ms more exposed with parameter"
std::string PlanChooser::explainDecision(size_t index) {
  const OpenDecision &choice = open[index];
  const std::string text =
      std::string(choice.decision->option) + " " + choice.values[best[index]] + ": ";
  if (choice.decision->explain)
    if (const std::string words = choice.decision->explain(choice, *costs, options.pipeline);
        !words.empty())
      return text + words;
  // The best of the others.
  std::optional<Point> next;
  visitPoints(best, index, problem.sizes, [&](const Point &point) {
    if (point != best && search->evaluate(point) && (!next || search->precedes(point, *next)))
      next = point;
  });
  if (!next || !search->evaluate(best))
    return text + "all others are refused";
  return text + compare(*search->evaluate(best), *search->evaluate(*next), problem.limit) +
         " with " + choice.values[(*next)[index]];
}

/// "; pipeline-schedule interleaved:2 is left out: ...": the values with which all plans are
/// refused.
std::string PlanChooser::listRefused() {
  std::string text;
  const std::vector<Point> accepted = search->rank();
  for (auto [index, choice] : llvm::enumerate(open))
    for (auto [number, value] : llvm::enumerate(choice.values)) {
      auto has = [&, at = index, number = number](const Point &point) {
        return point[at] == number;
      };
      auto refused = llvm::find_if(refusals, [&](const auto &entry) { return has(entry.first); });
      if (refused != refusals.end() && llvm::none_of(accepted, has))
        text += std::string("; ") + choice.decision->option + " " + value +
                " is left out: " + refused->second;
    }
  return text;
}

/// "prefetch 2: gather 3.1 ms > compute 2.4 ms; ...": the choices, and the cost of the
/// alternatives.
std::string PlanChooser::explain() {
  std::vector<std::string> parts, others;
  for (size_t i = 0; i < open.size(); ++i) {
    parts.push_back(explainDecision(i));
    visitPoints(best, i, problem.sizes, [&](const Point &point) {
      const std::optional<PlanCosts> &other = search->evaluate(point);
      if (point != best && other)
        others.push_back(std::string("--") + open[i].decision->option + "=" +
                         open[i].values[point[i]] + " " + milliseconds(other->step) +
                         (other->arena > problem.limit ? " (does not fit)" : ""));
    });
  }
  // Without those that are known to be refused.
  const auto tried = static_cast<int64_t>(search->rank().size());
  const int64_t refused = static_cast<int64_t>(search->countEvaluated()) - tried,
                possible = problem.countPlans() - refused;
  std::string text = llvm::join(parts, "; ") + "; of " + std::to_string(possible) + " plans ";
  if (estimates || tried < possible)
    text += std::to_string(tried) +
            (estimates ? " were estimated, and of these " : " were compiled, and of these ");
  text += fits() ? "this is the fastest within the limit"
                 : "none fits the limit, and this is the smallest";
  text += " on " + machine.name + ", " + milliseconds(costs->step);
  if (!others.empty())
    text += (estimates ? " (estimates: " : " (") + llvm::join(others, ", ") + ")";
  return estimates ? text : text + listRefused(); // estimates are of other numbers of blocks
}

//===----------------------------------------------------------------------===//
// The limit
//===----------------------------------------------------------------------===//

MemoryVerdict judgeMemory(PlanModel &model, const Options &options, int64_t arena,
                          const std::string &command) {
  MemoryVerdict verdict{options.getMemoryLimit(), arena, {}, command};
  if (verdict.fits())
    return verdict;
  // More microbatches than given, and any rematerialization.
  OpenDecision remat{&getDecision("remat"), getDecision("remat").values},
      accumulate{&getDecision("accumulate"), {}};
  for (int64_t factor : {1, 2, 4, 8})
    accumulate.values.push_back(std::to_string(options.pipeline.accumulate * factor));
  for (PlanCandidate &candidate : compilePlans(model, options, {remat, accumulate}))
    if (candidate.arena <= verdict.limit)
      verdict.fitting.push_back(std::move(candidate));
  llvm::stable_sort(verdict.fitting, [](const PlanCandidate &one, const PlanCandidate &other) {
    return one.step < other.step;
  });
  return verdict;
}

void MemoryVerdict::addTo(llvm::json::Object &report) const {
  llvm::json::Array plans;
  for (const PlanCandidate &plan : fitting)
    plans.push_back(llvm::json::Object{{"command", command + " " + plan.options},
                                       {"arena", plan.arena},
                                       {"predicted_step_ms", plan.step * 1e3}});
  report["memory_limit"] = limit;
  report["fits"] = fits();
  report["fitting_plans"] = std::move(plans);
}

void MemoryVerdict::print(llvm::raw_ostream &os) const {
  os << "memory limit of " << ir::formatBytes(limit) << ": the arena of " << ir::formatBytes(arena)
     << " "
     << (fits() ? "fits, " + ir::formatBytes(limit - arena) + " are left"
                : "does not fit, " + ir::formatBytes(arena - limit) + " too much")
     << "\n";
  if (fits())
    return;
  if (fitting.empty())
    os << "  no --remat with up to 8 times the microbatches fits; use more ranks, or a smaller "
          "model, batch or context\n";
  for (const PlanCandidate &plan : fitting)
    os << llvm::formatv("  {0,10} {1,12}  {2} {3}\n", ir::formatBytes(plan.arena),
                        milliseconds(plan.step), command, plan.options);
}

} // namespace fsdpc
