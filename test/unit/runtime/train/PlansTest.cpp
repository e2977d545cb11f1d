//===- PlansTest.cpp - which plan a run follows, and how it is restarted --===//

#include "runtime/train/Plans.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/Supervision.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr MeshAxis kFour[] = {{"fsdp", 4}}, kGrid[] = {{"data", 2}, {"fsdp", 2}},
                   kTwo[] = {{"fsdp", 2}}, kWide[] = {{"data", 2}, {"tensor", 1}};

Program withMesh(Table<MeshAxis> axes) {
  Program program{};
  program.name = "train";
  program.axes = axes;
  return program;
}

class PlansTest : public testing::Test {
protected:
  void TearDown() override {
    for (const char *name : {"RANK", "WORLD_SIZE"})
      unsetenv(name);
  }
  /// As torchrun would start it.
  static void launch(const char *rank, const char *ranks) {
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", ranks, 1);
  }
  const Program four = withMesh(kFour), grid = withMesh(kGrid), two = withMesh(kTwo),
                wide = withMesh(kWide);
  const Program *const all[4] = {&four, &grid, &two, &wide};
  const Plans plans{all};
};

TEST_F(PlansTest, AreFoundByMeshAndByRanks) {
  EXPECT_EQ(
      describePlans(plans),
      "fsdp=4 (4 ranks), data=2,fsdp=2 (4 ranks), fsdp=2 (2 ranks) and data=2,tensor=1 (2 ranks)");
  EXPECT_EQ(planNamed(plans, "data=2,fsdp=2"), &grid);
  EXPECT_EQ(planNamed(plans, "fsdp=2,data=2"), nullptr) << "another order of the ranks";
  EXPECT_EQ(planNamed(plans, "data=2"), &wide) << "an axis of size 1 splits nothing";
  EXPECT_EQ(planNamed(plans, "tensor=1,fsdp=2"), &two);
  EXPECT_EQ(planNamed(plans, "fsdp=2,"), nullptr) << "an element is missing";
  for (const char *none : {"fsdp=2|fsdp=1", "fsdp=2,=1", "fsdp=2,a b=1", "fsdp=2,x|y=1",
                           "fsdp=2,data=1,data=1", "fsdp=2,fsdp=1"})
    EXPECT_EQ(planNamed(plans, none), nullptr) << none;
  EXPECT_EQ(planNamed(plans, "fsdp=21"), nullptr);
  EXPECT_EQ(planNamed(plans, ""), nullptr);
  EXPECT_EQ(planFor(plans, 4), &four) << "the first of its size";
  EXPECT_EQ(planFor(plans, 3), nullptr);
  EXPECT_EQ(planBelow(plans, 4), &two);
  EXPECT_EQ(planBelow(plans, 5), &four);
  EXPECT_EQ(planBelow(plans, 2), nullptr);
}

TEST_F(PlansTest, RanksOfALauncherPickOne) {
  EXPECT_EQ(&pickPlan(plans, nullptr), &four) << "started alone";
  launch("1", "2");
  EXPECT_EQ(&pickPlan(plans, nullptr), &two);
  EXPECT_EQ(&pickPlan(plans, &wide), &wide);
  launch("1", "3");
  try {
    pickPlan(plans, nullptr);
    FAIL() << "there is none for 3";
  } catch (const NoPlan &none) {
    EXPECT_EQ(none.rank, 1);
    EXPECT_NE(none.error.describe().find("the launcher started 3 ranks, but this program has plans "
                                         "for fsdp=4 (4 ranks), data=2,fsdp=2 (4 ranks), "),
              std::string::npos)
        << none.error.describe();
  }
  const Program *const one[] = {&four};
  EXPECT_EQ(&pickPlan(Plans(one), nullptr), &four) << "starting the ranks says what is wrong";
}

/// Parses the words behind --steps 1; the complaint in `said`.
int parse(Plans plans, std::vector<std::string> words, Options &options, std::string &said) {
  words.insert(words.begin(), {"train", "--steps=1"});
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  testing::internal::CaptureStderr();
  const auto status = parseCommandLine(plans, int(arguments.size()), arguments.data(), options);
  said = testing::internal::GetCapturedStderr();
  return status.value_or(-1);
}

TEST_F(PlansTest, TheCommandLineNamesOne) {
  Options options, unknown, alone;
  std::string said;
  EXPECT_EQ(parse(plans, {"--plan", "data=2,fsdp=2"}, options, said), -1) << said;
  EXPECT_EQ(options.plan, &grid);
  EXPECT_EQ(parse(plans, {"--plan=fsdp=3"}, unknown, said), 2);
  EXPECT_NE(said.find("--plan: got 'fsdp=3', expected fsdp=4 (4 ranks), data=2,fsdp=2 (4 ranks), "
                      "fsdp=2 (2 ranks) and"),
            said.npos)
      << said;
  EXPECT_EQ(parse(plans, {"--save=d", "--elastic"}, alone, said), 2);
  EXPECT_NE(
      said.find("got --elastic without --max-restarts: say how often the run may be restarted"),
      said.npos)
      << said;
}

TEST_F(PlansTest, ElasticNeedsASmallerOne) {
  Options options;
  options.maxRestarts = 1;
  options.elastic = true;
  requireSupervision(plans, four, options);
  try {
    requireSupervision(plans, two, options);
    FAIL() << "nothing is smaller";
  } catch (const Error &error) {
    EXPECT_EQ(error.status(), kExitBadCommandLine);
    EXPECT_NE(error.describe().find("got --elastic, but no plan of this program has fewer ranks "
                                    "than fsdp=2 (its plans: fsdp=4 (4 ranks), "),
              std::string::npos)
        << error.describe();
  }
}

/// The meshes of the runs of a job that fails `failures` times; what it says in `said`.
std::vector<std::string> runs(Plans plans, Options &options, int failures, int expected,
                              std::string &said) {
  std::vector<std::string> meshes;
  testing::internal::CaptureStderr();
  const int status =
      runSupervised(plans, *plans[0], options, [&](const Program &plan, std::string &cause) {
        meshes.push_back(meshOf(plan));
        if (int(meshes.size()) > failures)
          return int(kExitDone);
        cause = "rank 0: died";
        return int(kExitFailure);
      });
  said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, expected);
  return meshes;
}

TEST_F(PlansTest, ARestartHasFewerRanksOnlyIfElastic) {
  using Meshes = std::vector<std::string>;
  Options same, elastic, given;
  std::string said;
  same.maxRestarts = elastic.maxRestarts = 3;
  elastic.elastic = true;
  given.maxRestarts = 1;
  EXPECT_EQ(runs(plans, same, 2, kExitDone, said), (Meshes{"fsdp=4", "fsdp=4", "fsdp=4"}));
  EXPECT_EQ(same.resume, "") << "what a restart goes on from is RunStart's";
  EXPECT_EQ(same.restarts, 2);
  EXPECT_EQ(runs(plans, elastic, 2, kExitDone, said), (Meshes{"fsdp=4", "fsdp=2", "fsdp=2"}));
  EXPECT_EQ(said, "train: warning: rank 0: died: restart 1 of 3, on the mesh fsdp=2\n"
                  "train: warning: rank 0: died: restart 2 of 3, without a plan for fewer ranks "
                  "again on the mesh fsdp=2\n");
  EXPECT_EQ(elastic.restartCause, "rank 0: died");
  EXPECT_EQ(runs(plans, given, 2, kExitFailure, said), (Meshes{"fsdp=4", "fsdp=4"}));
  EXPECT_NE(said.find("error: rank 0: died; given up after 1 restart\n"), said.npos) << said;
}

} // namespace
