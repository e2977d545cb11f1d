//===- PlanFit.cpp --------------------------------------------------------===//

#include "tools/fsdpc/PlanFit.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dsl/Model.h"
#include "dsl/ModelConfig.h"
#include "passes/printing/MemoryReportText.h"
#include "tools/fsdpc/PlanChoice.h"
#include "tools/fsdpc/PlanSearch.h"
#include "tools/fsdpc/PlanTable.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace ir = mlir::fsdp;

namespace fsdpc {

/// Values beyond are not tried.
static constexpr int64_t kMaxValue = ::fsdp::dsl::kMaxSize;
/// Of steps that the model accepts, multiples up to this one are tried.
static constexpr int64_t kStepFactors = 64;

int64_t mostTried(llvm::StringRef option, int64_t given) {
  constexpr int64_t kMaxLayers = 1024;
  return option == "layers" ? std::max(kMaxLayers, given) : kMaxValue;
}

namespace {
/// The line through the two known counts whose bytes are nearest to the limit.
class MemoryLine {
public:
  explicit MemoryLine(int64_t limit) : limit(limit) {}

  void add(int64_t count, int64_t bytes) {
    known.push_back({count, bytes});
    llvm::sort(known, [&](const auto &one, const auto &other) {
      return std::pair(std::abs(one.second - limit), one.first) <
             std::pair(std::abs(other.second - limit), other.first);
    });
    known.resize(std::min<size_t>(known.size(), 2));
  }
  /// The largest count, between these, that the line puts within the limit.
  std::optional<int64_t> guess(int64_t least, int64_t most) const {
    if (known.size() < 2)
      return std::nullopt;
    const double slope = static_cast<double>(known[1].second - known[0].second) /
                         static_cast<double>(known[1].first - known[0].first);
    if (!(slope > 0))
      return std::nullopt;
    const double count = static_cast<double>(known[0].first) +
                         std::floor(static_cast<double>(limit - known[0].second) / slope);
    if (count <= static_cast<double>(least))
      return least;
    return count >= static_cast<double>(most) ? most : static_cast<int64_t>(count);
  }

private:
  int64_t limit;
  std::vector<std::pair<int64_t, int64_t>> known; ///< count and bytes
};
} // namespace

int64_t findLargest(int64_t start, int64_t most, int64_t limit,
                    llvm::function_ref<FitAttempt(int64_t)> attempt) {
  int64_t least = 0, above = most + 1; // that fits, and that does not
  int64_t count = std::clamp<int64_t>(start, 1, most);
  int64_t beyond = 1; // the value after the largest that fits, if the line predicts no larger one
  MemoryLine line(limit);
  bool halves = false;
  while (least + 1 < above) {
    const int64_t width = above - least;
    const FitAttempt tried = attempt(count);
    (tried.fits ? least : above) = count;
    if (tried.bytes)
      line.add(count, *tried.bytes);
    if (least + 1 >= above)
      break;
    const bool isOpen = above > most;
    // A line that removes less than half is not used twice.
    halves = !halves && !isOpen && 2 * (above - least) > width;
    const std::optional<int64_t> guess = line.guess(least + 1, above - 1);
    if (!guess || halves) {
      count = isOpen ? std::min(2 * least, most) : least + (above - least) / 2;
    } else if (isOpen && *guess <= least + beyond) {
      count = std::min(least + beyond, most);
      beyond *= 2;
    } else {
      count = *guess;
    }
  }
  return least;
}

namespace {
/// The cost of a value, or why there is no plan with it.
struct Trial {
  std::optional<PlanCosts> costs;
  std::string command, excess;
  std::optional<int64_t> arena; ///< of the plan of the options, whether it fits or not
};

class Fitter {
public:
  Fitter(const SizedModel &model, const PlanRequest *request, const Options &options,
         const std::string &command);
  PlanFit run();

private:
  int64_t countBatchShards() const;
  /// Numbers of positions that it divides need less memory: see --sequence-parallel. The ranks of
  /// the mesh, with or without those of `tensor`, which splits positions that it divides.
  int64_t countPositionShards(bool withTensor) const;
  bool isAccepted(int64_t value) const;
  int64_t findStep(int64_t initial) const;
  Trial search(PlanModel &sized, const std::string &own);
  Trial compile(PlanModel &sized, const std::string &own);
  const Trial &attempt(int64_t value);

  const SizedModel &model;
  std::optional<PlanRequest> request;
  const Options &options;
  std::string command;
  int64_t limit = 0;
  std::map<int64_t, Trial> trials;
};
} // namespace

Fitter::Fitter(const SizedModel &model, const PlanRequest *request, const Options &options,
               const std::string &command)
    : model(model), options(options), command(command) {
  if (request) {
    this->request = *request;
    this->request->best = 1;
    this->request->takesEstimates = false;
  }
  limit = options.getMemoryLimit() ? options.getMemoryLimit()
                                   : options.findMachine(request ? request->devices : 1).memory;
}

/// That all plans of the request, or the mesh, have at most.
int64_t Fitter::countBatchShards() const {
  if (request)
    return request->devices;
  int64_t shards = 1;
  const MeshAxes mesh = options.getMeshes().front();
  for (const auto &[name, size] : mesh)
    if (name == "data" || name == "fsdp" || llvm::is_contained(options.pipeline.batchAxes, name))
      shards *= size;
  return shards * std::max<int64_t>(options.pipeline.accumulate, 1);
}

bool Fitter::isAccepted(int64_t value) const {
  try {
    model.with(options.fit, value, [](PlanModel &) {});
    return true;
  } catch (const ::fsdp::dsl::ModelError &) {
    return false;
  }
}

int64_t Fitter::countPositionShards(bool withTensor) const {
  if (request || options.fit != "context")
    return 1;
  int64_t shards = 1;
  const MeshAxes mesh = options.getMeshes().front();
  for (const auto &[axis, size] : mesh)
    if ((ir::getAxisRole(axis).splitsLayers && withTensor) || ir::getAxisRole(axis).splitsSequence)
      shards *= size;
  return shards;
}

/// The smallest step of which the model accepts two multiples, so that a width suits the number of
/// heads.
int64_t Fitter::findStep(int64_t initial) const {
  const int64_t least =
      options.fit == "batch" ? countBatchShards()
      : options.fit == "layers"
          ? 1
          : std::lcm<int64_t>(64, request ? request->devices
                                          : countPositionShards(/*withTensor=*/true));
  for (int64_t factor = 1; factor <= kStepFactors; ++factor) {
    const int64_t step = least * factor, count = std::max<int64_t>(initial / step, 1);
    if (isAccepted(step * count) && isAccepted(step * (count + 1)))
      return step;
  }
  return least;
}

/// The fastest plan that fits.
Trial Fitter::search(PlanModel &sized, const std::string &own) {
  const PlanSearchResult found = searchPlans(sized, *request, options);
  if (found.best.empty())
    return {std::nullopt, "", found.explainNone(*request), std::nullopt};
  const RankedPlan &best = found.best.front();
  return {best, commandOf(best.spec, own, options.machine), "", std::nullopt};
}

/// The plan of the options, or the best one if some are `auto`.
Trial Fitter::compile(PlanModel &sized, const std::string &own) {
  PlanCandidate plan;
  if (options.choosesPlan()) {
    plan = choosePlan(sized, options).plan;
  } else {
    static_cast<PlanCosts &>(plan) =
        PlanEvaluator(sized, options.getMeshes().front(), options, /*estimates=*/false)
            .compileOrThrow(options.pipeline);
  }
  if (plan.arena > limit)
    return {std::nullopt, "",
            "the arena of " + ir::formatBytes(plan.arena) + " does not fit, " +
                ir::formatBytes(plan.arena - limit) + " too much",
            plan.arena};
  return {plan, own + (plan.options.empty() ? "" : " ") + plan.options + " --report -o train", "",
          plan.arena};
}

const Trial &Fitter::attempt(int64_t value) {
  auto [entry, isNew] = trials.try_emplace(value);
  Trial &trial = entry->second;
  if (!isNew)
    return trial;
  const std::string own = command + " --" + options.fit + "=" + std::to_string(value);
  try {
    model.with(options.fit, value, [&](PlanModel &sized) {
      trial = request ? search(sized, own) : compile(sized, own);
    });
  } catch (const ::fsdp::dsl::ModelError &error) {
    trial.excess = error.message;
  }
  return trial;
}

PlanFit Fitter::run() {
  const std::optional<int64_t> initial = model.find(options.fit);
  if (!initial)
    throw UsageError("--fit=" + options.fit + " varies --" + options.fit +
                     ", and the model has no such option; name one that it has, or declare it in "
                     "the model's program");
  if (const int64_t parts = countPositionShards(/*withTensor=*/false);
      options.fitStep && options.fitStep % parts != 0)
    throw UsageError("--fit=context: got steps of " + std::to_string(options.fitStep) +
                     ", expected a multiple of " + std::to_string(parts) +
                     ", over which the mesh splits sequences");
  PlanFit fit{options.fit, 0, options.fitStep ? options.fitStep : findStep(*initial), limit, {},
              "",          ""};
  const int64_t most = mostTried(options.fit, *initial);
  const int64_t count = findLargest(*initial / fit.step, std::max<int64_t>(most / fit.step, 1),
                                    limit, [&](int64_t tried) -> FitAttempt {
                                      const Trial &trial = attempt(tried * fit.step);
                                      return {bool(trial.costs), trial.arena};
                                    });
  fit.value = count * fit.step;
  if (count == 0)
    throw Failure("not even --" + fit.option + "=" + std::to_string(fit.step) +
                  " fits: " + attempt(fit.step).excess);
  const Trial &largest = attempt(fit.value);
  fit.costs = *largest.costs;
  fit.command = largest.command;
  if (auto next = trials.find(fit.value + fit.step); next != trials.end())
    fit.excess = next->second.excess;
  if (fit.excess.empty()) {
    MemoryLine line(limit);
    for (const auto &[value, trial] : trials)
      if (trial.arena)
        line.add(value, *trial.arena);
    const int64_t promised = line.guess(fit.value, kMaxValue).value_or(0);
    fit.promised = promised > fit.value ? promised : 0;
  }
  return fit;
}

PlanFit fitModel(const SizedModel &model, const PlanRequest *request, const Options &options,
                 const std::string &command) {
  return Fitter(model, request, options, command).run();
}

void PlanFit::print(llvm::raw_ostream &os) const {
  os << llvm::formatv("the largest --{0} that fits {1} is {2}, of multiples of {3}: arena {4}, "
                      "predicted step {5}, {6:f0} {7}/s, MFU {8:f1} %\n",
                      option, ir::formatBytes(limit), value, step, ir::formatBytes(costs.arena),
                      milliseconds(costs.step), costs.itemsPerSecond,
                      costs.itemsAreTokens ? "tokens" : "samples", costs.mfu * 100)
     << "  " << command << "\n";
  if (excess.empty())
    os << "larger values were not tried"
       << (promised ? "; as memory grows, " + std::to_string(promised) + " would fit" : "") << "\n";
  else
    os << "with --" << option << "=" << value + step << ": " << excess << "\n";
}

llvm::json::Object PlanFit::toJSON() const {
  return llvm::json::Object{
      {"option", option},
      {"value", value},
      {"step", step},
      {"memory_limit", limit},
      {"arena", costs.arena},
      {"predicted_step_ms", costs.step * 1e3},
      {costs.itemsAreTokens ? "predicted_tokens_per_s" : "predicted_samples_per_s",
       costs.itemsPerSecond},
      {"predicted_mfu", costs.mfu},
      {"command", command},
      {"next", excess},
      {"promised", promised}};
}

} // namespace fsdpc
