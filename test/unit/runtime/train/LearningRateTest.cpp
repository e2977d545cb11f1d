//===- LearningRateTest.cpp - where the settings of a run come from -------===//

#include "runtime/train/LearningRate.h"
#include "base/Error.h"

#include <gtest/gtest.h>

using namespace base;
using namespace fsdp::rt;

namespace {

Program compiledProgram() {
  Program program{};
  program.name = "train";
  program.defaultLearningRate = 0.5f;
  program.schedule = {Schedule::Cosine, /*warmup=*/3, /*minimum=*/0.125f, /*decayShare=*/0.1f};
  return program;
}

TEST(LearningRateTest, TheCommandLineComesBeforeTheCheckpointAndThatBeforeTheProgram) {
  const Program program = compiledProgram();
  Options options;
  LearningRate rate = LearningRate::of(program, options, 20, nullptr);
  EXPECT_EQ(rate.base, 0.5f);
  EXPECT_EQ(rate.schedule.kind, Schedule::Cosine);
  EXPECT_EQ(rate.schedule.warmup, 3);
  EXPECT_EQ(rate.schedule.minimum, 0.125f);
  EXPECT_EQ(rate.end, 20);
  EXPECT_EQ(rate.describeOther(program), "");

  CheckpointManifest from;
  from.baseLearningRate = 0.25f;
  from.totalSteps = 20;
  from.schedule = ScheduleOptions{Schedule::Wsd, 5, 0.0625f, 0.25f};
  from.scheduleSteps = 40;
  options.warmup = 7;
  rate = LearningRate::of(program, options, 30, &from);
  EXPECT_EQ(rate.base, 0.25f);
  EXPECT_EQ(rate.schedule.kind, Schedule::Wsd);
  EXPECT_EQ(rate.schedule.warmup, 7);
  EXPECT_EQ(rate.schedule.minimum, 0.0625f);
  EXPECT_EQ(rate.schedule.decayShare, 0.25f);
  EXPECT_EQ(rate.end, 40);
  EXPECT_EQ(rate.describeChanges(), "--warmup 7 (was 5)");
  EXPECT_EQ(rate.describeOther(program), "--schedule=wsd --warmup=7 --min-lr=0.0625 "
                                         "--decay-share=0.25 --schedule-steps=40");
}

TEST(LearningRateTest, AnOlderCheckpointHasTheScheduleOfTheProgram) {
  CheckpointManifest from;
  from.baseLearningRate = 0.25f;
  from.totalSteps = 20;
  const LearningRate rate = LearningRate::of(compiledProgram(), Options(), 20, &from);
  EXPECT_EQ(rate.base, 0.25f);
  EXPECT_EQ(rate.schedule.kind, Schedule::Cosine);
  EXPECT_EQ(rate.schedule.warmup, 3);
  EXPECT_TRUE(rate.changes.empty());
  EXPECT_EQ(LearningRate::of(compiledProgram(), Options(), 30, &from).describeChanges(),
            "--schedule-steps 30 (was 20)");
}

} // namespace
