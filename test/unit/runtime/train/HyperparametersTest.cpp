//===- HyperparametersTest.cpp - where the settings of a run come from -------===//

#include "runtime/train/Hyperparameters.h"
#include "base/Error.h"
#include "runtime/train/ParameterNames.h"
#include "runtime/train/RunContents.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(HyperparametersTest, TheCommandLineComesBeforeTheCheckpointAndThatBeforeTheProgram) {
  const Program program = compiledProgram();
  Options options;
  Hyperparameters hyper = Hyperparameters::of(program, options, 20, nullptr);
  EXPECT_EQ(hyper.rate, 0.5f);
  EXPECT_EQ(hyper.schedule.kind, Schedule::Cosine);
  EXPECT_EQ(hyper.schedule.warmup, 3);
  EXPECT_EQ(hyper.schedule.minimum, 0.125f);
  EXPECT_EQ(hyper.end, 20);
  EXPECT_EQ(hyper.describeOther(program), "");

  CheckpointManifest from;
  from.baseLearningRate = 0.25f;
  from.totalSteps = 20;
  from.schedule = ScheduleOptions{Schedule::Wsd, 5, 0.0625f, 0.25f};
  from.scheduleSteps = 40;
  options.warmup = 7;
  hyper = Hyperparameters::of(program, options, 30, &from);
  EXPECT_EQ(hyper.rate, 0.25f);
  EXPECT_EQ(hyper.schedule.kind, Schedule::Wsd);
  EXPECT_EQ(hyper.schedule.warmup, 7);
  EXPECT_EQ(hyper.schedule.minimum, 0.0625f);
  EXPECT_EQ(hyper.schedule.decayShare, 0.25f);
  EXPECT_EQ(hyper.end, 40);
  EXPECT_EQ(hyper.describeChanges(), "--warmup 7 (was 5)");
  EXPECT_EQ(hyper.describeOther(program), "--schedule=wsd --warmup=7 --min-lr=0.0625 "
                                          "--decay-share=0.25 --schedule-steps=40");
}

TEST(HyperparametersTest, AnOlderCheckpointHasTheScheduleOfTheProgram) {
  CheckpointManifest from;
  from.baseLearningRate = 0.25f;
  from.totalSteps = 20;
  const Hyperparameters hyper = Hyperparameters::of(compiledProgram(), Options(), 20, &from);
  EXPECT_EQ(hyper.rate, 0.25f);
  EXPECT_EQ(hyper.schedule.kind, Schedule::Cosine);
  EXPECT_EQ(hyper.schedule.warmup, 3);
  EXPECT_TRUE(hyper.changes.empty());
  EXPECT_EQ(Hyperparameters::of(compiledProgram(), Options(), 30, &from).describeChanges(),
            "--schedule-steps 30 (was 20)");
}

Program compiledAdam() {
  static const UpdateConstant constants[] = {{"beta1", 0.5f, /*isFraction=*/true},
                                             {"momentum", 0, true, /*isFixed=*/true},
                                             {"weight_decay", 0.25f}};
  Program program{};
  program.name = "train";
  program.updateRule = "adam";
  program.updateConstants = constants;
  program.clip = 2;
  return program;
}

TEST(HyperparametersTest, ConstantsAreOfTheCommandLineTheCheckpointOrTheProgram) {
  const Program program = compiledAdam();
  Options options;
  Hyperparameters hyper = Hyperparameters::of(program, options, 20, nullptr);
  StepState state{};
  hyper.writeTo(state);
  EXPECT_EQ(state.clip, 2);
  EXPECT_EQ(state.constants[0], 0.5f);
  EXPECT_EQ(state.constants[2], 0.25f);
  EXPECT_EQ(hyper.describeOther(program), "");

  CheckpointManifest from;
  from.totalSteps = 20;
  from.updateRule = "adam";
  from.constants = {
      {"clip", 4}, {"beta1", 0.75f}, {"gone", 1}, {"momentum", 0.5f}, {"weight_decay", 0.125f}};
  options.constants = {{"clip", 0}, {"weight_decay", 0.0625}};
  hyper = Hyperparameters::of(program, options, 20, &from);
  hyper.writeTo(state);
  EXPECT_EQ(state.clip, INFINITY) << "0 stands for no clipping";
  EXPECT_EQ(state.constants[0], 0.75f);
  EXPECT_EQ(state.constants[1], 0) << "what the program cannot do";
  EXPECT_EQ(state.constants[2], 0.0625f);
  EXPECT_EQ(hyper.describeChanges(),
            "--clip 0 (was 4), --momentum 0 (was 0.5), --weight-decay 0.0625 (was 0.125)");
  EXPECT_EQ(hyper.describeOther(program), "--clip=0 --beta1=0.75 --weight-decay=0.0625");

  from.updateRule = "lion";
  hyper = Hyperparameters::of(program, Options(), 20, &from);
  EXPECT_EQ(hyper.describeChanges(), "") << "beta1 of lion is another one";
  EXPECT_EQ(hyper.clip, 4);
  from = CheckpointManifest();
  from.totalSteps = 20;
  hyper = Hyperparameters::of(program, Options(), 20, &from);
  EXPECT_EQ(hyper.describeOther(program), "") << "an older checkpoint has none";
}

TEST(HyperparametersTest, GroupsAreOfTheCommandLineTheCheckpointOrTheProgram) {
  const Parameter members[] = {
      {"a.weight", nullptr, {4, 4}, {4, 4}, 0, Initializer::zeros(), true},
      {"a.bias", nullptr, {4}, {4}, 16, Initializer::zeros(), false},
      {"b.weight", nullptr, {4, 4}, {4, 4}, 20, Initializer::zeros(), true}};
  const Storage unit{"unit", Layout::Flat, {}, -1, 0, 36, 0, ArenaSpan<float>{0, 36}, {}, members};
  const char *scales[] = {"a.*=0.5"}, *exempt[] = {"b.*"};
  Program program = compiledAdam();
  program.storages = {&unit, 1};
  using Settings = std::vector<UpdateSetting>;
  const auto settings = [&](const Hyperparameters &hyper) {
    return updateSettings(program, hyper.groups);
  };
  Hyperparameters hyper = Hyperparameters::of(program, Options(), 20, nullptr);
  EXPECT_TRUE(settings(hyper).empty()) << "all are as the tables say";
  EXPECT_EQ(hyper.describeOther(program), "");

  program.rateScales = scales;
  program.noDecay = exempt;
  hyper = Hyperparameters::of(program, Options(), 20, nullptr);
  EXPECT_EQ(settings(hyper), (Settings{{0.5f, true}, {0.5f, false}, {1, false}}));
  EXPECT_EQ(hyper.describeOther(program), "");

  CheckpointManifest from;
  from.totalSteps = 20;
  hyper = Hyperparameters::of(program, Options(), 20, &from);
  EXPECT_EQ(settings(hyper).front().rateScale, 0.5f) << "an older checkpoint has none";
  from.groups.rateScales = {{"a.*", 2}, {"a.w*", 0}};
  from.groups.noDecay.emplace();
  hyper = Hyperparameters::of(program, Options(), 20, &from);
  EXPECT_EQ(settings(hyper), (Settings{{0, true}, {2, false}, {1, true}}));
  EXPECT_EQ(hyper.describeOther(program), "--lr-scale=a.*=2,a.w*=0 --no-decay=none");
  EXPECT_EQ(hyper.describeChanges(), "");

  Options options;
  options.groups.rateScales = {{"b*", 4}};
  options.groups.noDecay = {"a.*", "*.bias"};
  hyper = Hyperparameters::of(program, options, 20, &from);
  EXPECT_EQ(settings(hyper), (Settings{{1, false}, {1, false}, {4, true}}));
  EXPECT_EQ(hyper.describeChanges(), "--lr-scale b*=4 (was a.*=2,a.w*=0), --no-decay a.*,*.bias "
                                     "(was none)");

  // The same with other words is no change.
  from.groups.noDecay = {"a.*", "b.*"};
  options.groups.rateScales = {{"b.*", 7}, {"a.w*", 0}, {"a.*", 2}, {"a.w*", 0}, {"b.*", 1}};
  options.groups.noDecay = {"b.*", "a.weight", "a.*", "b.*"};
  hyper = Hyperparameters::of(program, options, 20, &from);
  EXPECT_EQ(hyper.describeChanges(), "");
  EXPECT_EQ(hyper.describeOther(program),
            "--lr-scale=a.*=2,a.w*=0,b.*=1 --no-decay=b.*,a.weight,a.*");
  options.groups.rateScales = {{"a.*", 2}, {"a.*", 3}, {"a.w*", 0}};
  options.groups.noDecay = {"a.*", "a.*"};
  hyper = Hyperparameters::of(program, options, 20, &from);
  EXPECT_EQ(hyper.describeChanges(), "--lr-scale a.*=3,a.w*=0 (was a.*=2,a.w*=0), --no-decay a.* "
                                     "(was a.*,b.*)");
}

TEST(HyperparametersTest, RanksMustBeGivenTheSameGroups) {
  const Program program = compiledAdam();
  const auto identity = [&](const GroupOptions &groups) {
    Options options;
    options.groups = groups;
    return identityOfTraining(program, options, 20, RunData(), RunContents(), "");
  };
  const RunIdentity none = identity({}), cleared = identity({std::vector<RateScale>(), {}}),
                    some = identity({std::vector<RateScale>{{"a.*", 2}, {"b", 0}},
                                     std::vector<std::string>{"c.*"}});
  EXPECT_EQ(some.differenceFrom(identity({std::vector<RateScale>{{"a.*", 2}, {"b", 0}},
                                          std::vector<std::string>{"c.*"}}),
                                1),
            "");
  EXPECT_NE(some.differenceFrom(none, 1).find("--lr-scale a.*=2 b=0"), std::string::npos)
      << some.differenceFrom(none, 1);
  EXPECT_NE(some.differenceFrom(none, 1).find("--no-decay c.*"), std::string::npos);
  EXPECT_NE(cleared.differenceFrom(none, 1).find("--lr-scale none"), std::string::npos)
      << "of a checkpoint they would be others";
}

TEST(HyperparametersTest, AProgramThatNeverClipsDoesNotBecauseOfACheckpoint) {
  Program program = compiledAdam();
  program.clip = 0;
  CheckpointManifest from;
  from.totalSteps = 20;
  from.updateRule = "adam";
  from.constants = {{"clip", 4}};
  const Hyperparameters hyper = Hyperparameters::of(program, Options(), 20, &from);
  StepState state{};
  hyper.writeTo(state);
  EXPECT_EQ(state.clip, INFINITY);
  EXPECT_EQ(hyper.describeChanges(), "--clip 0 (was 4)");
}

} // namespace
