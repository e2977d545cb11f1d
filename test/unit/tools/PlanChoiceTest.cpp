//===- PlanChoiceTest.cpp - what is chosen, against all plans -------------===//
// Random models, meshes, strategies, machines and limits. Every plan of the open decisions is
// compiled and simulated; the chosen one is at most 3 % slower than the fastest that fits.
// FSDP_PLAN_PROBLEMS=200 tries so many, and prints how far from the fastest the choices are.
//
//===----------------------------------------------------------------------===//

#include "tools/fsdpc/PlanChoice.h"
#include "dsl/Model.h"
#include "dsl/ModelIR.h"
#include "dsl/Operations.h"
#include "test/Extent.h"
#include "tools/fsdpc/Compile.h"
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <random>
#include <unistd.h>

using namespace fsdp::dsl;
using namespace fsdpc;

namespace {

/// The plans of a problem, at most.
constexpr size_t kMaxPlans = 64;

class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}
  int64_t below(int64_t count) { return static_cast<int64_t>(engine() % uint64_t(count)); }
  bool oneIn(int64_t count) { return below(count) == 0; }
  template <typename T> T pick(const std::vector<T> &values) {
    return values[below(values.size())];
  }
  /// Between 10^low and 10^high, in the logarithm.
  double power(double low, double high) {
    return std::pow(10, low + (high - low) * static_cast<double>(engine() % 1000) / 999);
  }
  std::mt19937_64 engine;
};

/// Dense layers of random widths or of one, some of which are used again.
mlir::OwningOpRef<mlir::ModuleOp> describe(mlir::MLIRContext &context, Random &random) {
  const std::vector<int64_t> widths = {8, 24, 64, 160, 400};
  Model model(context);
  const int64_t batch = random.pick<int64_t>({16, 64, 256}), first = random.pick(widths);
  Tensor x = model.input("x", {batch, first});
  Tensor label = model.input("label", {batch}, ElementType::i32);
  int64_t width = first;
  const int64_t layers = 2 + random.below(4);
  const bool alike = random.oneIn(3); // layers that may be gathered together
  for (int64_t i = 0; i < layers; ++i) {
    auto unit = model.unit("layer" + std::to_string(i));
    const int64_t next = alike ? first : random.pick(widths);
    Parameter weight = unit.parameter("weight", {width, next}, normal(0.02));
    Parameter bias = unit.parameter("bias", {next}, zeros());
    Tensor y = einsum("bi,io->bo", x, weight) + bias;
    x = random.oneIn(2) ? relu(y) : gelu(y);
    if (random.oneIn(4))
      x = relu(einsum("bo,io->bi", x, weight)), x = relu(einsum("bi,io->bo", x, weight));
    width = next;
  }
  model.loss(mean(crossEntropy(x, label)));
  return take(model);
}

std::string describeMachine(Random &random) {
  const double products = random.power(9, 13), memory = random.power(9, 12);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\"name\": \"random\", \"memory\": 1000000000000, \"peak\": {\"f32\": " << products
     << "}, \"products\": [{\"kind\": \"matrix\", \"type\": \"f32\", \"rates\": [[1, " << products
     << "]]}], \"loop_flops\": " << products / 4 << ", \"memory_rates\": [[1, " << memory
     << "]], \"launch_seconds\": " << random.power(-7, -5)
     << ", \"collective_share\": " << 0.05 + 0.1 * static_cast<double>(random.below(9))
     << ", \"algorithms\": [\"ring\"], \"links\": [";
  const double bandwidth = random.power(8, 11), latency = random.power(-7, -4);
  if (random.oneIn(2)) // nodes of two ranks
    os << "{\"name\": \"inner\", \"ranks\": 2, \"bandwidth\": " << 8 * bandwidth
       << ", \"latency\": " << latency / 4 << "}, ";
  os << "{\"name\": \"outer\", \"ranks\": 64, \"bandwidth\": " << bandwidth
     << ", \"latency\": " << latency << "}]}";
  return text;
}

/// A problem with a number, always the same.
struct Problem {
  Context context;
  Options options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string machine =
      testing::TempDir() + "/plan-choice-machine-" + std::to_string(getpid()) + ".json";
  std::optional<PlanModel> model;
  std::vector<OpenDecision> open;
  std::vector<PlanCandidate> plans; ///< all of them
  int64_t limit = INT64_MAX;

  explicit Problem(uint64_t seed) {
    Random random(seed);
    context.describesProgram("problem", nullptr);
    module = describe(context.get(), random);
    model.emplace(*module, "problem");
    std::ofstream(machine) << describeMachine(random);
    options.machine = machine;
    options.report = "-";
    auto [mesh, strategies] = random.pick<std::pair<std::string, std::vector<std::string>>>(
        {{"data=4", {"ddp"}},
         {"fsdp=2", {"zero1", "zero2", "fsdp"}},
         {"fsdp=4", {"zero1", "fsdp", "fsdp"}},
         {"fsdp=8", {"fsdp"}},
         {"data=2,fsdp=2", {"zero2", "hsdp", "hsdp"}},
         {"data=2,fsdp=4", {"hsdp"}}});
    options.mesh = mesh;
    options.pipeline.strategy = random.pick(strategies);
    options.strategyGiven = true;
    openDecisions(random);
    open = findOpenDecisions(*model, options);
    plans = compilePlans(*model, options, open);
    if (plans.empty())
      return;
    if (!random.oneIn(3)) {
      limit = random.pick(plans).arena;
      options.memoryLimit = std::to_string(limit);
    }
  }

  /// Opens some decisions, and fixes the others.
  void openDecisions(Random &random) {
    for (const Decision &decision : getDecisions())
      if (decision.option != std::string("pipeline-schedule")) // no mesh has stages
        decision.set(options.pipeline, kAutomaticWord);
    std::vector<OpenDecision> all = findOpenDecisions(*model, options);
    std::shuffle(all.begin(), all.end(), random.engine);
    size_t count = 1;
    for (const OpenDecision &choice : all)
      if (count * choice.values.size() <= kMaxPlans)
        count *= choice.values.size();
      else
        choice.decision->set(options.pipeline, random.oneIn(2) ? random.pick(choice.values)
                                                               : choice.decision->get({}));
  }

  const PlanCandidate &best() const {
    return *llvm::min_element(plans, [&](const PlanCandidate &one, const PlanCandidate &other) {
      return isBetter(one, other, limit);
    });
  }

  /// The plan whose open decisions have their defaults, if it fits.
  const PlanCandidate *defaults() const {
    for (const PlanCandidate &plan : plans)
      if (plan.arena <= limit && llvm::all_of(getDecisions(), [&](const Decision &decision) {
            return !decision.isOpen(options.pipeline) ||
                   decision.get(plan.pipeline) == decision.get({});
          }))
        return &plan;
    return nullptr;
  }
};

/// What a search finds that does not evaluate all plans.
PlanCandidate searchTable(const Problem &problem) {
  ChoiceProblem search;
  for (const OpenDecision &choice : problem.open) {
    if (choice.decision->leads)
      search.leading = search.sizes.size();
    search.sizes.push_back(choice.values.size());
    search.defaults.push_back(llvm::find(choice.values, choice.decision->get({})) -
                              choice.values.begin());
  }
  search.limit = problem.limit;
  auto find = [&](const Point &point) {
    return llvm::find_if(problem.plans, [&](const PlanCandidate &plan) {
      return llvm::all_of(llvm::seq(point.size()), [&](size_t i) {
        return problem.open[i].decision->get(plan.pipeline) == problem.open[i].values[point[i]];
      });
    });
  };
  search.evaluate = [&](const Point &point) -> std::optional<PlanCosts> {
    auto found = find(point);
    return found == problem.plans.end() ? std::nullopt : std::optional<PlanCosts>(*found);
  };
  return *find(ChoiceSearch(search, /*exhaustiveWork=*/0).run());
}

struct Distribution {
  std::string title;
  std::vector<double> ratios = {}; ///< the step of a choice over that of the fastest plan

  void check(const PlanCandidate &plan, const Problem &problem) {
    SCOPED_TRACE(title + ": " + plan.options + ", the best is " + problem.best().options);
    const double ratio = plan.step / problem.best().step;
    ratios.push_back(ratio);
    EXPECT_LE(plan.arena, problem.limit);
    EXPECT_LE(ratio, 1.03);
    EXPECT_GE(ratio, 1 - 1e-9);
    if (const PlanCandidate *defaults = problem.defaults())
      EXPECT_LE(plan.step, defaults->step * (1 + 1e-9));
  }
  void print() {
    std::sort(ratios.begin(), ratios.end());
    auto part = [&](double share) {
      return ratios[static_cast<size_t>(share * static_cast<double>(ratios.size() - 1))];
    };
    std::cout << title << ": of " << ratios.size() << " problems median " << part(0.5) << ", 95 % "
              << part(0.95) << ", worst " << ratios.back() << "\n";
  }
};

TEST(PlanChoiceTest, IsNearTheFastestOfAllPlans) {
  const char *given = std::getenv("FSDP_PLAN_PROBLEMS");
  const int problems = given ? std::atoi(given) : static_cast<int>(::fsdp::test::casesOf(2, 20));
  Distribution chosen{"auto"}, changes{"changes from plan to plan"};
  size_t plans = 0;
  for (int seed = 1; seed <= problems; ++seed) {
    Problem problem(seed);
    SCOPED_TRACE("problem " + std::to_string(seed));
    ASSERT_FALSE(problem.plans.empty());
    plans += problem.plans.size();
    changes.check(searchTable(problem), problem);
    if (seed % 5 == 1) // compiles all plans again
      chosen.check(choosePlan(*problem.model, problem.options).plan, problem);
  }
  if (!given)
    return;
  std::cout << plans << " plans\n";
  for (Distribution *distribution : {&chosen, &changes})
    distribution->print();
}

} // namespace
