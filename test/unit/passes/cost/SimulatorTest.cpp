//===- SimulatorTest.cpp - times computed by hand -------------------------===//

#include "passes/cost/Simulator.h"

#include "gtest/gtest.h"

using namespace mlir::fsdp;
using namespace mlir::fsdp::cost;
using schedule::Launch;

namespace {

constexpr int compute = 0, gather = 1, update = 2;

/// A role of one segment that repeats.
class Step {
public:
  Step() {
    problem.communicators = {{"gather", {0}}};
    role.streams = {"compute", "gather", "update"};
    role.events = {"event"};
    role.segments = {{"train", {}, {0}, /*joined=*/false}};
  }
  /// Returns the number of the launch.
  int add(int stream, double time, std::vector<int> waits = {}, bool output = false) {
    Launch launch{"l" + std::to_string(seconds.size()), stream, std::move(waits), {}, {}, {}, {}};
    if (stream == gather)
      launch.collective = schedule::Collective{0, "all_gather", 1};
    launch.output = output;
    launches().push_back(launch);
    seconds.push_back(time);
    return static_cast<int>(seconds.size()) - 1;
  }
  std::vector<Launch> &launches() { return role.segments[0].launches; }
  Simulation simulate(Sharing sharing = {10, 1, 1}) {
    problem.roles = {role};
    return cost::simulate({problem, {{0}}, {{seconds}}, sharing});
  }

  schedule::Problem problem;
  schedule::Role role;
  std::vector<double> seconds;
};

void expectRun(const Simulation &result, size_t launch, double start, double end) {
  EXPECT_NEAR(result.roles[0].runs[launch].start, start, 1e-9) << launch;
  EXPECT_NEAR(result.roles[0].runs[launch].end, end, 1e-9) << launch;
}

TEST(Simulator, GathersBesideComputation) {
  Step step;
  const int g0 = step.add(gather, 4), g1 = step.add(gather, 15);
  const int c0 = step.add(compute, 10, {g0});
  step.add(compute, 10, {g1, c0}, /*output=*/true);
  Simulation result = step.simulate();
  expectRun(result, 0, 0, 4);
  expectRun(result, 1, 4, 19);
  expectRun(result, 2, 4, 14);
  expectRun(result, 3, 19, 29);
  EXPECT_TRUE(result.periodic);
  EXPECT_NEAR(result.step, 29, 1e-9);
  const RoleTime &time = result.roles[0];
  EXPECT_NEAR(time.computing, 20, 1e-9);
  EXPECT_NEAR(time.communicating, 19, 1e-9);
  EXPECT_NEAR(time.exposed, 4 + 5, 1e-9);
  EXPECT_NEAR(time.streams[gather].exposed, 9, 1e-9);
  EXPECT_NEAR(time.streams[compute].exposed, 0, 1e-9);
}

// Together they demand 1.5 of the device: both take half as long again while both run.
TEST(Simulator, LaunchesShareTheDevice) {
  Step step;
  step.add(gather, 10);
  step.add(compute, 20, {}, /*output=*/true);
  Simulation result = step.simulate({1, 1, 0.5});
  expectRun(result, 0, 0, 15);
  expectRun(result, 1, 0, 25);
  // A share of a core makes a launch that runs alone slower, too.
  result = step.simulate({0.5, 1, 0});
  expectRun(result, 0, 0, 20);
  expectRun(result, 1, 0, 40);
}

// For one rank a gather is a copy, which uses the device as computation does and is not
// communication.
TEST(Simulator, CopiesShareTheDeviceAsComputation) {
  Step step;
  step.add(gather, 10);
  step.add(compute, 20, {}, /*output=*/true);
  step.problem.roles = {step.role};
  const SimulationInput input{step.problem, {{0}}, {{step.seconds}}, {1, 1, 0}, {true}};
  Simulation result = cost::simulate(input);
  expectRun(result, 0, 0, 20);
  expectRun(result, 1, 0, 30);
  EXPECT_NEAR(result.roles[0].computing, 30, 1e-9);
  EXPECT_EQ(result.roles[0].communicating, 0);
  const SimulationInput others{step.problem, {{0}}, {{step.seconds}}, {1, 1, 0}, {false}};
  result = cost::simulate(others);
  expectRun(result, 1, 0, 20);
  EXPECT_NEAR(result.roles[0].communicating, 10, 1e-9);
}

// The update behind the output runs beside the next step, whose gather awaits its event.
TEST(Simulator, UpdatesBesideTheNextStep) {
  Step step;
  step.role.segments[0].launches.clear();
  step.add(gather, 2);
  step.add(compute, 10, {0}, /*output=*/true);
  step.add(update, 5, {1});
  step.launches()[2].records = {0};
  Simulation free = step.simulate();
  EXPECT_NEAR(free.step, 12, 1e-9);
  expectRun(free, 2, 12, 17);
  step.launches()[0].awaits = {0};
  Simulation bound = step.simulate();
  EXPECT_NEAR(bound.step, 17, 1e-9);
  expectRun(bound, 0, 5, 7);
  EXPECT_NEAR(bound.roles[0].streams[update].busy, 5, 1e-9); // that of the step before
}

TEST(Simulator, AJoinedSegmentEndsBeforeTheNextOne) {
  Step step;
  step.add(compute, 3);
  step.add(gather, 7);
  step.problem.roles = {step.role};
  step.problem.roles[0].segments[0].joined = true;
  Simulation result = cost::simulate({step.problem, {{0, 0}}, {{step.seconds}}, {10, 1, 1}});
  expectRun(result, 2, 7, 10);
  expectRun(result, 3, 7, 14);
  EXPECT_NEAR(result.step, 14, 1e-9);
  step.problem.roles[0].segments[0].joined = false;
  result = cost::simulate({step.problem, {{0, 0}}, {{step.seconds}}, {10, 1, 1}});
  expectRun(result, 2, 3, 6);
  EXPECT_EQ(result.roles[0].runs[2].run, 1);
}

// Two roles meet in a collective: it starts when both have come.
TEST(Simulator, CollectivesOfRolesMeet) {
  Step step;
  step.add(compute, 3);
  step.add(gather, 2, {0}, /*output=*/true);
  step.problem.communicators = {{"gather", {0, 1}}};
  step.problem.roles = {step.role, step.role};
  std::vector<double> slow = {8, 2};
  Simulation result =
      cost::simulate({step.problem, {{0}, {0}}, {{step.seconds}, {slow}}, {10, 1, 1}});
  expectRun(result, 1, 8, 10);
  EXPECT_NEAR(result.step, 10, 1e-9);
}

// The outputs of a step are there when those of the slowest role are.
TEST(Simulator, AStepTakesAsLongAsItsSlowestRole) {
  Step step;
  step.add(compute, 3, {}, /*output=*/true);
  step.add(gather, 2, {0});
  schedule::Role quick = step.role;
  step.add(compute, 4, {1}, /*output=*/true);
  step.launches()[0].output = false;
  step.problem.communicators = {{"gather", {0, 1}}};
  step.problem.roles = {quick, step.role};
  Simulation result =
      cost::simulate({step.problem, {{0}, {0}}, {{{3, 2}}, {{8, 2, 4}}}, {10, 1, 1}});
  EXPECT_EQ(result.fault, "");
  EXPECT_NEAR(result.step, 14, 1e-9);
  // The times of all roles are from the begin of the first one on.
  const LaunchRun &first = result.roles[0].runs[1], &second = result.roles[1].runs[1];
  EXPECT_NEAR(first.start, second.start, 1e-9);
  EXPECT_NEAR(first.end, second.end, 1e-9);
}

TEST(Simulator, BytesAlive) {
  Step step;
  // A buffer for good; x from the gather to the second kernel; y, in the place of x, to the end.
  step.role.buffers = {{"kept", 100}, {"x", 64, 0, 128}, {"y", 64, 0, 128}, {"z", 10, 0, 192}};
  step.add(gather, 1);
  step.add(compute, 2, {0});
  step.add(compute, 3, {}, /*output=*/true);
  step.launches()[0].writes = {{1, 0, 64}};
  step.launches()[1].reads = {{1, 0, 64}};
  step.launches()[1].writes = {{2, 0, 64}};
  step.launches()[2].reads = {{2, 0, 64}};
  step.launches()[2].writes = {{3, 0, 10}};
  const std::vector<std::pair<double, int64_t>> expected = {
      {0, 128 + 64}, {3, 128 + 64 + 10}, {6, 128}};
  const Simulation result = step.simulate();
  EXPECT_EQ(result.roles[0].alive, expected);
  std::vector<std::tuple<int, double, double>> lives;
  for (const cost::BufferLife &life : result.roles[0].lives)
    lives.push_back({life.buffer, life.from, life.to});
  // x ends where y takes its place, not where its last launch ends.
  EXPECT_EQ(lives, (std::vector<std::tuple<int, double, double>>{{1, 0, 1}, {2, 1, 6}, {3, 3, 6}}));
}

// A launch that is issued first waits for one behind it, on another stream.
TEST(Simulator, ALaunchMayWaitForALaterOne) {
  Step step;
  step.add(gather, 4, {1});
  step.add(compute, 10, {}, /*output=*/true);
  const Simulation result = step.simulate();
  ASSERT_EQ(result.fault, "");
  expectRun(result, 0, 10, 14);
  expectRun(result, 1, 0, 10);
}

TEST(Simulator, ALaunchThatNeverStartsIsAFault) {
  Step step;
  step.add(compute, 1, {1});
  step.add(compute, 1, {}, /*output=*/true);
  EXPECT_EQ(step.simulate().fault, "a launch waits for what never completes");
  Step empty;
  EXPECT_EQ(empty.simulate().fault, "a step has no launches");
}

} // namespace
