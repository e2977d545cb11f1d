// Walks on a device of the CPU: how often segments run, which of them are joined, and the waits of
// the host.
#include "runtime/execution/Device.h"
#include "runtime/execution/Launch.h"
#include "runtime/job/Bootstrap.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr MeshAxis kAxes[] = {{"fsdp", 1}};
constexpr const char *kStreams[] = {"compute", "update"};
constexpr ArenaSpan<StepState> kState{0, 1};
constexpr ArenaSpan<float> kCount{128, 1}, kUpdated{192, 1};
enum : int { kSummed, kDone }; // events

std::atomic<bool> released, timedOut, fails;

/// Waits for the test, which must not wait for it.
void waitForRelease() {
  for (int i = 0; !released; ++i) {
    if (i == 5000) {
      timedOut = true;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void first(Context &c) {
  wait(c, 0, kDone);
  launch(c, 0, "first", reads(kUpdated), writes(kCount),
         [](const float *updated, float *count) { *count = *updated * 100; });
}
void middle(Context &c) {
  launch(c, 0, "middle", reads(kCount), writes(kCount),
         [](const float *, float *count) { *count += 1; });
  record(c, 0, kSummed);
}
void last(Context &c) {
  output(c, 0, "count", 0, kCount);
  wait(c, 1, kSummed);
  launch(c, 1, "update", reads(kUpdated), writes(kUpdated), [](const float *, float *updated) {
    waitForRelease();
    if (fails)
      throw Error("the update failed");
    *updated += 1;
  });
  record(c, 1, kDone);
}
void joined(Context &c) {
  launch(c, 1, "joined", reads(), writes(),
         [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
}
void afterIt(Context &c) {
  EXPECT_EQ(c.stream(1).completed(), c.stream(1).enqueued()) << "a segment that is joined is done";
  output(c, 0, "count", 0, kCount);
}

constexpr Segment kSegments[] = {{"first", first, false},
                                 {"middle", middle, false},
                                 {"last", last, false},
                                 {"joined", joined},
                                 {"after", afterIt, false}};
constexpr SegmentRuns kTrain[] = {{0, 1}, {1, 3}, {2, 1}}, kEvaluate[] = {{3, 1}, {4, 1}};
constexpr const char *kOutputs[] = {"count"};

int run(const std::function<void(Device &, const Program &)> &body) {
  released = timedOut = fails = false;
  Program program{};
  program.name = "walks";
  program.axes = kAxes;
  program.arenaBytes = 256;
  program.streams = kStreams;
  program.events = 2;
  program.segments = kSegments;
  program.train = {"train", kTrain, kOutputs};
  program.evaluate = {"evaluate", kEvaluate, kOutputs};
  program.stepState = kState;
  JobOptions options = target::jobOptions(program, "auto");
  const int status = runRanks(Mesh(Table<MeshAxis>(kAxes)), options, [&](Job &job) {
    body(*target::open(program, job), program);
    return 0;
  });
  EXPECT_FALSE(timedOut) << "the host waited for what leads to no output";
  return status;
}

TEST(Device, WaitsForOutputsAndLeavesTheRestRunning) {
  EXPECT_EQ(run([](Device &device, const Program &program) {
              device.run(program.train, nullptr, true);
              EXPECT_EQ(device.outputs()[0], 3) << "the middle segment runs three times";
              released = true;
              device.run(program.train, nullptr, true);
              EXPECT_EQ(device.outputs()[0], 103) << "the update of the step before is awaited";
              EXPECT_EQ(*device.read(kUpdated), 2) << "reading waits for all that runs";
              device.run(program.evaluate, nullptr, false);
              EXPECT_EQ(device.peakBytes(), kUpdated.end());
            }),
            0);
}

TEST(Device, AFailureAfterTheOutputsEndsTheJob) {
  testing::internal::CaptureStderr();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run([](Device &device, const Program &program) {
              fails = true;
              device.run(program.train, nullptr, false);
              EXPECT_EQ(device.outputs()[0], 3);
              released = true;
              device.finish();
              ADD_FAILURE() << "went on after a failure";
            }),
            1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "error: rank 0, 'update': the update failed\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Device, SettingTheStateWaitsForAllThatRuns) {
  EXPECT_EQ(run([](Device &device, const Program &program) {
              StepState state{};
              state.samples = 4;
              device.setState(state);
              device.run(program.train, nullptr, false);
              device.setSamples(4); // as it is: nothing to wait for
              std::thread later([] {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                released = true;
              });
              device.setSamples(3);
              EXPECT_TRUE(released);
              EXPECT_EQ(device.state().samples, 3);
              later.join();
            }),
            0);
}

TEST(Device, SettingLimitsWaitsForAllThatRuns) {
  EXPECT_EQ(run([](Device &device, const Program &program) {
              StepState state{};
              state.normLimit = 2;
              device.setState(state);
              device.run(program.train, nullptr, false);
              device.setLimits(INFINITY, 2); // as they are: nothing to wait for
              std::thread later([] {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                released = true;
              });
              device.setLimits(3, 2);
              EXPECT_TRUE(released);
              EXPECT_EQ(device.state().lossLimit, 3);
              EXPECT_EQ(device.state().normLimit, 2);
              later.join();
            }),
            0);
}

} // namespace
