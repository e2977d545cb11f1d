#include "runtime/train/Log.h"
#include "runtime/train/CommandLine.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace fsdp::rt;

namespace {

std::string textOf(JsonLine &line) {
  std::size_t bytes;
  const char *text = line.finish(bytes);
  return {text, bytes};
}

TEST(LogTest, WritesOneObjectALine) {
  JsonLine line;
  line.add("step", std::int64_t(1));
  line.add("loss", 0.5f);
  line.add("val_", "accuracy", 0.25);
  EXPECT_EQ(textOf(line), "{\"step\": 1, \"loss\": 0.5, \"val_accuracy\": 0.25}\n");
  line.add("step", std::int64_t(2));
  EXPECT_EQ(textOf(line), "{\"step\": 2}\n");
}

TEST(LogTest, NonFiniteValuesAreNullAndNamesAreEscaped) {
  JsonLine line;
  line.add("a\"b\\\n", std::nan(""));
  line.add("c", -std::numeric_limits<float>::infinity());
  EXPECT_EQ(textOf(line), "{\"a\\\"b\\\\\\u000a\": null, \"c\": null}\n");
}

TEST(LogTest, NumbersReadBackExactly) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bits = random();
    double wide;
    float narrow;
    std::memcpy(&wide, &bits, 8);
    std::memcpy(&narrow, &bits, 4);
    if (!std::isfinite(wide) || !std::isfinite(narrow))
      continue;
    JsonLine line;
    line.add("d", wide);
    EXPECT_EQ(std::strtod(textOf(line).c_str() + 6, nullptr), wide);
    line.add("f", narrow);
    EXPECT_EQ(std::strtof(textOf(line).c_str() + 6, nullptr), narrow);
  }
}

TEST(LogTest, RefusesALineThatIsTooLong) {
  JsonLine line;
  const std::string name(100000, 'x');
  line.add(name.c_str(), 1.0);
  EXPECT_NE(messageOf([&] { line.add(name.c_str(), 1.0); }).find("a line of the log has more than"),
            std::string::npos);
}

TEST(LogTest, DurationsAndSizesAreReadable) {
  char text[32];
  const auto duration = [&](double seconds) {
    formatDuration(seconds, text);
    return std::string(text);
  };
  EXPECT_EQ(duration(0), "0:00");
  EXPECT_EQ(duration(61.2), "1:02");
  EXPECT_EQ(duration(3723), "1:02:03");
  EXPECT_EQ(formatBytes(617), "617 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(3.0 * 1024 * 1024 * 1024), "3 GiB");
  EXPECT_EQ(formatBytes(1000 * 1024), "1000 KiB");
  EXPECT_EQ(formatCount(617), "617");
  EXPECT_EQ(formatCount(999.4), "999");
  EXPECT_EQ(formatCount(999.6), "1k");
  EXPECT_EQ(formatCount(10240), "10.2k");
  EXPECT_EQ(formatCount(124439808), "124M");
  EXPECT_EQ(formatCount(405e9), "405B");
}

TEST(LogTest, TheProgressLineHasRateAndTimeLeft) {
  testing::internal::CaptureStdout();
  ProgressLine progress(3, "samples");
  progress.step(1, 0.5, 2, 0.1, 60, 123);
  progress.step(2, 0.4, 2, 0.1, 60, 123); // too soon after the first to be shown
  progress.step(3, 0.3, 2, 0.1, 60, 123);
  progress.end();
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "step 1/3  loss 0.5  grad norm 2  lr 0.1  123 samples/s  2:00 left\n"
            "step 3/3  loss 0.3  grad norm 2  lr 0.1  123 samples/s  0:00 left\n");
}

constexpr MeshAxis kAxes[] = {{"fsdp", 2}};
constexpr SegmentRuns kEvaluate[] = {{0, 1}};
constexpr Input kInputs[] = {{"x", {2}, 0, ArenaSpan<float>{0, 4}, 4, 2, {0}, 0}};

/// Parses the words; returns the exit status or -1, the complaint in `said`.
int parse(std::vector<std::string> words, Options &options, std::string &said,
          bool evaluates = true) {
  Program program{};
  program.name = "train";
  program.axes = kAxes;
  program.inputs = kInputs;
  if (evaluates)
    program.evaluate.runs = kEvaluate;
  const Program *const plans[] = {&program};
  std::vector<char *> arguments{const_cast<char *>("train")};
  for (std::string &word : words)
    arguments.push_back(word.data());
  testing::internal::CaptureStderr();
  const auto status =
      parseCommandLine(Plans(plans), int(arguments.size()), arguments.data(), options);
  said = testing::internal::GetCapturedStderr();
  return status.value_or(-1);
}

TEST(CommandLineTest, ReadsItsOptions) {
  Options o;
  std::string said;
  EXPECT_EQ(parse({"--data", "d", "--steps=7", "--lr", "1e-3", "--seed", "5", "--val-data", "v",
                   "--eval-every", "2", "--log", "l", "--init", "i", "--export", "e", "--report",
                   "--communicator=shm"},
                  o, said),
            -1);
  EXPECT_EQ(o.data, std::vector<std::string>{"d"});
  EXPECT_EQ(*o.steps, 7);
  EXPECT_EQ(*o.learningRate, 1e-3);
  EXPECT_EQ(o.seed, 5u);
  EXPECT_EQ(o.evalEvery, 2);
  EXPECT_EQ(o.communicator, "shm");
  EXPECT_TRUE(o.report);
  Options report;
  EXPECT_EQ(parse({"--report"}, report, said), -1);
}

TEST(CommandLineTest, EvalReadsItsOptions) {
  Options o;
  std::string said;
  EXPECT_EQ(parse({"eval", "--val-data", "v", "--init=i", "--log", "l", "--log-header",
                   "--allow-model-change", "--communicator=shm", "--timeout=5"},
                  o, said),
            -1);
  EXPECT_TRUE(o.onlyEvaluates());
  EXPECT_EQ(o.valData, std::vector<std::string>{"v"});
  ASSERT_EQ(o.init.size(), 1u);
  EXPECT_EQ(o.init[0].path, "i");
  EXPECT_EQ(o.log, "l");
  EXPECT_TRUE(o.logHeader);
  EXPECT_TRUE(o.allowModelChange);
  EXPECT_EQ(o.communicator, "shm");
  EXPECT_EQ(*o.timeout, 5);
  EXPECT_EQ(o.flightRecord, "l.flight-record.txt");
  EXPECT_EQ(o.arguments, "eval --val-data v --init=i --log l --log-header --allow-model-change "
                         "--communicator=shm --timeout=5");
  EXPECT_EQ(parse({"eval", "--val-data", "v", "--init=i"}, o, said, /*evaluates=*/false), 2);
  EXPECT_NE(said.find("got eval, but this program was compiled without an evaluation"),
            std::string::npos);
  EXPECT_EQ(parse({"--log", "l", "eval"}, o, said), 2) << "eval comes first";
}

TEST(CommandLineTest, IllFormedOptionsAreStatusTwo) {
  const auto refused = [](std::vector<std::string> words, const std::string &why) {
    Options o;
    std::string said;
    EXPECT_EQ(parse(words, o, said), 2);
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  refused({"--data", "d", "--steps", "1", "--frobnicate"}, "--frobnicate");
  refused({"--data", "d", "--steps", "many"}, "--steps");
  refused({"--data", "d", "--steps", "0"}, "--steps");
  refused({"--data", "d", "--steps", "1", "--communicator=pigeon"}, "--communicator");
  refused({"--steps", "1"}, "--data is missing: name the file to train on");
  refused({"--data", "d"}, "--steps is missing: give the number of steps to train");
  refused({"--data", "d", "--steps", "1", "--epochs", "1"}, "got both --steps and --epochs");
  refused({"--data", "d", "--steps", "1", "--eval-every", "1"},
          "got --eval-every without --val-data");
  Options o;
  std::string said;
  EXPECT_EQ(parse({"--data", "d", "--steps", "1", "--val-data", "v"}, o, said, false), 2);
  EXPECT_NE(said.find("got --val-data, but this program was compiled without an evaluation"),
            std::string::npos);
  refused({"--data", "d", "--steps", "1", "stray"}, "stray");
  refused({"--data", "d", "--steps", "1", "--log-data"}, "got --log-data without --log");
}

/// The help of a program with plans of these numbers of ranks.
std::string helpOf(const std::vector<int> &ranks, bool evaluates) {
  std::vector<MeshAxis> axes(ranks.size(), MeshAxis{"fsdp", 1});
  std::vector<Program> programs(ranks.size());
  std::vector<const Program *> plans;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    axes[i].size = ranks[i];
    programs[i].name = "train";
    programs[i].axes = Table<MeshAxis>(&axes[i], 1);
    programs[i].inputs = kInputs;
    if (evaluates)
      programs[i].evaluate.runs = kEvaluate;
    plans.push_back(&programs[i]);
  }
  char name[] = "train", help[] = "--help";
  char *arguments[] = {name, help};
  Options options;
  testing::internal::CaptureStdout();
  EXPECT_EQ(parseCommandLine(Plans(plans.data(), plans.size()), 2, arguments, options), 0);
  return testing::internal::GetCapturedStdout();
}

// An option that this program always refuses is not offered.
TEST(CommandLineTest, HelpListsTheOptionsOfTheProgram) {
  const auto has = [](const std::string &help, const char *option) {
    return help.find(std::string("\n  ") + option) != help.npos;
  };
  for (bool evaluates : {false, true})
    for (const std::vector<int> &ranks : {std::vector<int>{2}, {2, 2}, {4, 2}}) {
      const std::string help = helpOf(ranks, evaluates);
      EXPECT_EQ(has(help, "--val-data FILE"), evaluates) << help;
      EXPECT_EQ(has(help, "--eval-every K"), evaluates) << help;
      EXPECT_EQ(has(help, "--elastic"), ranks.front() != ranks.back()) << help;
      EXPECT_TRUE(has(help, "--max-restarts R") && has(help, "--data FILE")) << help;
    }
}

} // namespace
