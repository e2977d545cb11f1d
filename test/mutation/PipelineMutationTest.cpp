//===- PipelineMutationTest.cpp - the checker refuses faulty pipelines ----===//
//
// Schedules of pipelines that the compiler made are changed in one place. The interpreter judges:
// it runs each in many adversarial orders, and what deadlocks, races or computes other bits than
// the local phase in any of them must be refused, with both ends named. Changes that are harmless
// by construction must be accepted, and so must what the compiler made. Others that no order shows
// to be harmful may be refused: the table that the test prints says how many, and as what.
//
//===----------------------------------------------------------------------===//

#include "test/mutation/CompiledPipelines.h"
#include "test/mutation/LaunchMutations.h"
#include "test/mutation/Seeds.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "passes/scheduled/ScheduleProblem.h"

#include <gtest/gtest.h>
#include <memory>

using namespace mlir;
using namespace mlir::fsdp;
using namespace ::fsdp::mutation;

namespace {

constexpr int64_t kAll = 10000, kEachCheck = 200;
/// The mutants of each pipeline.
constexpr int64_t kOfPipeline = 25;

/// The results of the mutants of one kind.
struct Counts {
  int64_t refused = 0, accepted = 0;                 ///< of those that go wrong
  int64_t refusedHarmless = 0, acceptedHarmless = 0; ///< of those that do not
  bool isHarmless = false;                           ///< by construction
  std::map<std::string, int64_t> reasons;            ///< why of those some are refused
};

/// Why a schedule is refused.
struct Refusal {
  std::string reason, message; ///< empty: it is accepted
  std::string unnamed;         ///< an end that the message does not name
};

std::string nameOf(schedule::Fault fault) {
  switch (fault) {
  case schedule::Fault::malformed:
    return "malformed";
  case schedule::Fault::deadlock:
    return "a cycle of waits";
  case schedule::Fault::unissued:
    return "a wait for a later launch";
  case schedule::Fault::race:
    return "a race";
  case schedule::Fault::unwritten:
    return "a read of nothing";
  case schedule::Fault::overlap:
    return "a place in use";
  case schedule::Fault::outside:
    return "outside the arena";
  case schedule::Fault::members:
    return "members";
  case schedule::Fault::advanced:
    return "the number of the step";
  case schedule::Fault::collectives:
    return "messages that differ";
  case schedule::Fault::segments:
    return "segments that differ";
  case schedule::Fault::updated:
    return "two updates";
  }
  llvm_unreachable("all faults are named");
}

/// A role or a launch that is an end of `finding`, and that its message does not name.
std::string findUnnamed(const schedule::Finding &finding, const schedule::Problem &problem) {
  auto isNamed = [&](const std::string &name) {
    return finding.message.find("'" + name + "'") != std::string::npos;
  };
  for (const schedule::End &end : {finding.first, finding.second}) {
    const schedule::Role &role = problem.roles[end.role];
    if (end.launch >= 0)
      if (const std::string &name = role.segments[end.segment].launches[end.launch].name;
          !isNamed(name))
        return name;
    if (finding.first.role != finding.second.role && !isNamed(role.name))
      return role.name;
  }
  // Between two stages both are named, whatever the finding points to.
  if (finding.fault == schedule::Fault::collectives && finding.first.launch >= 0) {
    const schedule::Launch &launch = problem.roles[finding.first.role]
                                         .segments[finding.first.segment]
                                         .launches[finding.first.launch];
    if (launch.collective && launch.collective->transfer)
      for (int role : problem.communicators[launch.collective->communicator].roles)
        if (finding.message.find(problem.roles[role].name) == std::string::npos)
          return problem.roles[role].name;
  }
  return {};
}

/// What `fsdp-verify-schedule` says of `module`, and of what it cannot know the compiler itself.
Refusal check(ModuleOp module, const LaunchMutator &mutator) {
  Refusal refusal;
  const ScheduleProblem schedule = ScheduleProblem::ofPlaces(module);
  for (const schedule::Finding &finding : schedule::checkSchedule(schedule.problem)) {
    if (refusal.reason.empty())
      refusal = {nameOf(finding.fault), finding.message, {}};
    if (std::string unnamed = findUnnamed(finding, schedule.problem); !unnamed.empty())
      return {nameOf(finding.fault), finding.message, unnamed};
  }
  if (!refusal.reason.empty())
    return refusal;
  std::string text;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    text += diagnostic.str() + "\n";
    return success();
  });
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  manager.addPass(createVerifySchedulePass());
  if (failed(manager.run(module)))
    return {"a rule of segments", text, {}};
  if (text = mutator.findReordered(); !text.empty())
    return {"another order than the program's", text, {}};
  return {};
}

TEST(PipelineMutationTest, TheCheckerRefusesFaultyPipelines) {
  const int64_t mutants = numberFrom("FSDP_MUTANTS", ::fsdp::test::casesOf(kEachCheck, kAll));
  const int64_t first = numberFrom("FSDP_MUTANT", 0);
  const bool isOne = std::getenv("FSDP_MUTANT") != nullptr;
  std::map<std::string, Counts> kinds;
  int64_t harmful = 0, pipelines = 0;
  std::unique_ptr<CompiledPipeline> pipeline;
  for (int64_t number = first; number < (isOne ? first + 1 : mutants); ++number) {
    if (!pipeline || number % kOfPipeline == 0) {
      pipeline.reset();
      pipeline = std::make_unique<CompiledPipeline>(CompiledPipeline::get(number / kOfPipeline));
      ++pipelines;
      ASSERT_EQ(pipeline->getFault(), "")
          << "the pipeline of mutant " << number << ": " << pipeline->describe();
    }
    std::mt19937 random = randomFor(number);
    OwningOpRef<ModuleOp> mutant = pipeline->getModule().clone();
    LaunchMutator mutator(*mutant, random);
    const Mutation mutation = mutator.mutate();
    const std::string where = "mutant " + std::to_string(number) + " (" + mutation.what + " in " +
                              pipeline->describe() + "): ";
    ASSERT_TRUE(succeeded(verify(*mutant))) << where << "invalid IR";
    const Refusal refusal = check(*mutant, mutator);
    EXPECT_EQ(refusal.unnamed, "") << where << "not named in: " << refusal.message;
    if (mutation.isHarmless)
      EXPECT_EQ(refusal.message, "") << where << "refused";
    const std::string harm = pipeline->findHarm(*mutant);
    if (mutation.isHarmless)
      EXPECT_EQ(harm, "") << where << "not harmless";
    if (isOne) {
      mutant->print(llvm::outs());
      llvm::outs() << where << "\n  interpreter: " << harm << "\n  checker: " << refusal.message
                   << "\n";
    }
    Counts &counts = kinds[mutation.what];
    counts.isHarmless = mutation.isHarmless;
    const bool isRefused = !refusal.message.empty();
    if (harm.empty()) {
      ++(isRefused ? counts.refusedHarmless : counts.acceptedHarmless);
      counts.reasons[refusal.reason] += isRefused;
      continue;
    }
    ++harmful;
    ++(isRefused ? counts.refused : counts.accepted);
    EXPECT_TRUE(isRefused) << where << harm << ", but the checker accepts it";
  }
  std::printf("%lld mutants of %lld pipelines, %lld go wrong\n%-40s%10s%10s%10s%10s\n",
              static_cast<long long>(mutants), static_cast<long long>(pipelines),
              static_cast<long long>(harmful), "", "harmful,", "harmful,", "harmless,",
              "harmless,");
  std::printf("%-40s%10s%10s%10s%10s\n", "", "refused", "accepted", "accepted", "refused");
  for (const auto &[what, counts] : kinds) {
    std::printf("%-40s%10lld%10lld%10lld%10lld", what.c_str(),
                static_cast<long long>(counts.refused), static_cast<long long>(counts.accepted),
                static_cast<long long>(counts.acceptedHarmless),
                static_cast<long long>(counts.refusedHarmless));
    for (const auto &[reason, count] : counts.reasons)
      if (count)
        std::printf("  %lld: %s", static_cast<long long>(count), reason.c_str());
    std::printf("\n");
  }
  if (isOne)
    return;
  EXPECT_GT(harmful, mutants / 4);
  // Each of these has caused a fault, so the checker was run on it.
  if (mutants >= 2000)
    for (const auto &[what, counts] : kinds)
      EXPECT_TRUE(counts.isHarmless || counts.refused > 0) << what;
}

} // namespace
