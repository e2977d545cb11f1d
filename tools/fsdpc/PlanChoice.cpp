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

const std::vector<std::string> kTriedRemats = {"none", "selective", "full", "every:2", "every:3"};
const std::vector<int64_t> kTriedAccumulations = {1, 2, 4, 8, 16};
const std::vector<int64_t> kTriedDepths = {0, 1, 2, 3, 4};

/// What is tried of each option: all values, or the one given.
namespace {
struct Choices {
  std::vector<std::string> remat;
  std::vector<int64_t> accumulate, prefetch;
};
} // namespace

void compileDepths(
    ModuleOp model, const std::string &name, const MeshAxes &mesh, const Options &options,
    llvm::ArrayRef<int64_t> depths,
    llvm::function_ref<void(int64_t, const ir::MemoryReport &, const ir::Prediction &)> visit) {
  Options own = options;
  own.pipeline.prefetch = depths.front(); // only the schedule depends on it
  OwningOpRef<ModuleOp> local(model.clone());
  configure(*local, name, mesh, own);
  lower(*local, own, Emit::Model, Emit::Local);
  const ir::cost::Machine machine = own.findMachine(ir::getMeshOp(*local).getMesh().getNumRanks());
  for (int64_t depth : depths) {
    own.pipeline.prefetch = depth;
    OwningOpRef<ModuleOp> scheduled =
        depth == depths.back() ? std::move(local) : OwningOpRef<ModuleOp>(local->clone());
    lower(*scheduled, own, Emit::Local, Emit::Scheduled);
    visit(depth, ir::computeMemoryReport(*scheduled),
          ir::StepSimulation(*scheduled, machine).predict());
  }
}

static std::vector<PlanCandidate> compileAll(ModuleOp model, const std::string &name,
                                             const MeshAxes &mesh, const Options &options,
                                             const Choices &choices) {
  std::vector<PlanCandidate> candidates;
  auto compile = [&](bool silently) {
    std::optional<ScopedDiagnosticHandler> silence;
    if (silently)
      silence.emplace(model.getContext(), [](Diagnostic &) { return success(); });
    for (const std::string &remat : choices.remat)
      for (int64_t accumulate : choices.accumulate) {
        Options own = options;
        own.pipeline.remat = remat;
        own.pipeline.accumulate = accumulate;
        auto add = [&](int64_t prefetch, const ir::MemoryReport &memory,
                       const ir::Prediction &prediction) {
          PlanCandidate &candidate = candidates.emplace_back();
          candidate.pipeline = own.pipeline;
          candidate.pipeline.prefetch = prefetch;
          candidate.arena = memory.arena;
          candidate.prediction = prediction;
          std::vector<std::string> chosen;
          if (choices.remat.size() > 1)
            chosen.push_back("--remat=" + remat);
          if (choices.accumulate.size() > 1)
            chosen.push_back("--accumulate=" + std::to_string(accumulate));
          if (choices.prefetch.size() > 1)
            chosen.push_back("--prefetch=" + std::to_string(prefetch));
          candidate.options = llvm::join(chosen, " ");
        };
        try {
          compileDepths(model, name, mesh, own, choices.prefetch, add);
        } catch (const UsageError &) {
          throw; // of what is given
        } catch (const Failure &) {
          if (!silently)
            throw;
        }
      }
  };
  compile(/*silently=*/true);
  if (candidates.empty())
    compile(/*silently=*/false);
  return candidates;
}

std::vector<PlanCandidate> compileCandidates(ModuleOp model, const std::string &name,
                                             const MeshAxes &mesh, const Options &options) {
  const ir::PipelineOptions &given = options.pipeline;
  Choices choices;
  choices.remat = given.remat == "auto" ? kTriedRemats : std::vector<std::string>{given.remat};
  choices.accumulate = given.accumulate == Options::automatic
                           ? kTriedAccumulations
                           : std::vector<int64_t>{given.accumulate};
  choices.prefetch =
      given.prefetch == Options::automatic ? kTriedDepths : std::vector<int64_t>{given.prefetch};
  return compileAll(model, name, mesh, options, choices);
}

size_t choosePlan(llvm::ArrayRef<PlanCandidate> candidates, int64_t limit) {
  size_t best = 0;
  auto isBetter = [&](const PlanCandidate &one, const PlanCandidate &other) {
    const bool fits = one.arena <= limit, otherFits = other.arena <= limit;
    if (fits != otherFits)
      return fits;
    if (!fits)
      return one.arena < other.arena;
    return one.prediction.step < other.prediction.step * (1 - 1e-9);
  };
  for (size_t i = 1; i < candidates.size(); ++i)
    if (isBetter(candidates[i], candidates[best]))
      best = i;
  return best;
}

std::string milliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ms", seconds * 1e3);
  return text;
}

/// "gather 3.1 ms > compute 2.4 ms": the longest gather, and the computation of a step for each.
static std::string compareGathers(const ir::Prediction &prediction) {
  double longest = 0, gathers = 0;
  for (const ir::PredictedCollective &call : prediction.collectives)
    if (call.kind == "all_gather") {
      longest = std::max(longest, call.time.seconds);
      gathers += static_cast<double>(call.count);
    }
  if (gathers == 0)
    return "nothing is gathered";
  const double compute = prediction.computing / gathers;
  return "gather " + milliseconds(longest) + (longest > compute ? " > " : " <= ") + "compute " +
         milliseconds(compute);
}

std::string explainChoice(llvm::ArrayRef<PlanCandidate> candidates, size_t chosen, int64_t limit,
                          const Options &options) {
  const PlanCandidate &plan = candidates[chosen];
  std::vector<std::string> parts;
  if (options.pipeline.remat == "auto")
    parts.push_back("remat " + plan.pipeline.remat);
  if (options.pipeline.accumulate == Options::automatic)
    parts.push_back("accumulate " + std::to_string(plan.pipeline.accumulate));
  if (options.pipeline.prefetch == Options::automatic)
    parts.push_back("prefetch " + std::to_string(plan.pipeline.prefetch) + ": " +
                    compareGathers(plan.prediction));
  std::string text = llvm::join(parts, ", ");
  text += "; of " + std::to_string(candidates.size()) + " plans ";
  text += plan.arena > limit ? "none fits the limit, and this is the smallest"
                             : "within the limit this is the fastest";
  text += " on " + plan.prediction.machine;
  // What the neighbours take, those that differ in one option.
  std::vector<std::string> others;
  for (const PlanCandidate &other : candidates) {
    const int differs = (other.pipeline.remat != plan.pipeline.remat) +
                        (other.pipeline.accumulate != plan.pipeline.accumulate) +
                        (other.pipeline.prefetch != plan.pipeline.prefetch);
    if (differs <= 1)
      others.push_back(other.options + " " + milliseconds(other.prediction.step) +
                       (other.arena > limit ? " (does not fit)" : ""));
  }
  return text + " (" + llvm::join(others, ", ") + ")";
}

//===----------------------------------------------------------------------===//
// The limit
//===----------------------------------------------------------------------===//

MemoryVerdict judgeMemory(ModuleOp model, const std::string &name, const MeshAxes &mesh,
                          const Options &options, int64_t arena, const std::string &command) {
  MemoryVerdict verdict{options.getMemoryLimit(), arena, {}, command};
  if (verdict.fits())
    return verdict;
  // More microbatches than given, and any rematerialization.
  Choices choices{kTriedRemats, {}, {options.pipeline.prefetch}};
  for (int64_t factor : {1, 2, 4, 8})
    choices.accumulate.push_back(options.pipeline.accumulate * factor);
  for (PlanCandidate &candidate : compileAll(model, name, mesh, options, choices))
    if (candidate.arena <= verdict.limit)
      verdict.fitting.push_back(std::move(candidate));
  llvm::stable_sort(verdict.fitting, [](const PlanCandidate &one, const PlanCandidate &other) {
    return one.prediction.step < other.prediction.step;
  });
  return verdict;
}

void MemoryVerdict::addTo(llvm::json::Object &report) const {
  llvm::json::Array plans;
  for (const PlanCandidate &plan : fitting)
    plans.push_back(llvm::json::Object{{"command", command + " " + plan.options},
                                       {"arena", plan.arena},
                                       {"predicted_step_ms", plan.prediction.step * 1e3}});
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
                        milliseconds(plan.prediction.step), command, plan.options);
}

} // namespace fsdpc
