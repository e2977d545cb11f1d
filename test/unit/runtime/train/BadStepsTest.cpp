#include "runtime/train/BadSteps.h"
#include "runtime/data/OpenDataset.h"
#include "runtime/numerics/BFloat16.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdp::rt;

namespace {

TEST(BadStepsTest, AreDescribedForUsersAndPrograms) {
  BadStep bad{7, -NAN, INFINITY, 0.5, "kernel", 60, {60, 61}};
  EXPECT_EQ(
      bad.describe(bad.kind()),
      "got loss nan and gradient norm inf in step 7, a step that is not finite; the first gradient "
      "that is not finite is that of 'kernel'");
  EXPECT_EQ(
      bad.record({"d.bin"}, ""),
      "{\"step\":7,\"loss\":\"nan\",\"grad_norm\":\"inf\",\"lr\":0.5,\"parameter\":\"kernel\","
      "\"data\":[\"d.bin\"],\"position\":60,\"samples\":[60,61],\"inputs\":null}\n");
  bad.parameter = "";
  EXPECT_NE(bad.describe("x").find("x; every gradient is finite"), std::string::npos);
  EXPECT_NE(bad.record({"\xff"}, "").find("\"parameter\":null"), std::string::npos)
      << "paths need not be UTF-8";
  EXPECT_EQ(
      rollbackLine(2, bad, 5, 50, 70),
      "{\"rollback\":{\"number\":2,\"from_step\":7,\"to_step\":5,\"skipped\":[50,70],"
      "\"cause\":\"got loss nan and gradient norm inf in step 7, a step that is not finite; every "
      "gradient is finite\"}}\n");
}

TEST(BadStepsTest, AFailedCheckIsNamed) {
  BadStep bad{7, 2, 3, 0.5, "", 60, {60}, FailedCheck{"scores", 3}};
  EXPECT_EQ(bad.describe("whose update was skipped"),
            "got 3 values that are not finite in 'scores', with loss 2 and gradient norm 3 in step "
            "7, whose update was skipped; every gradient is finite");
  EXPECT_EQ(
      bad.record({"d.bin"}, "b.safetensors"),
      "{\"step\":7,\"loss\":2.0,\"grad_norm\":3.0,\"lr\":0.5,\"parameter\":null,\"check\":"
      "\"scores\",\"values\":3.0,\"data\":[\"d.bin\"],\"position\":60,\"samples\":[60],\"inputs\":"
      "\"b.safetensors\"}\n");
  bad.failed->values = 1;
  EXPECT_EQ(bad.describe("x").rfind("got 1 value that is not finite in 'scores', with ", 0), 0u);
}

TEST(BadStepsTest, ASpikeIsDescribedByItsLimits) {
  BadStep bad{70, 9, 1, 0.5, "", 600, {600}, std::nullopt, Spike{{4.5f, 2, 64}, {6, 128}}};
  EXPECT_EQ(bad.describe(bad.kind()),
            "got loss 9 above 4.5 in step 70, a spike of more than 6 standard deviations over 64 "
            "steps");
  EXPECT_EQ(bad.record({"d.bin"}, ""),
            "{\"step\":70,\"loss\":9.0,\"grad_norm\":1.0,\"lr\":0.5,\"parameter\":null,"
            "\"loss_limit\":4.5,\"grad_norm_limit\":2.0,\"data\":[\"d.bin\"],\"position\":600,"
            "\"samples\":[600],\"inputs\":null}\n");
}

TEST(BadStepsTest, RollbacksToOneCheckpointAreBounded) {
  const BadStep bad{7, INFINITY, 1, 0.5, "", 60, {}};
  Rollbacks rollbacks;
  for (std::int64_t number = 1; number <= 3; ++number)
    EXPECT_EQ(rollbacks.add(bad, 4), number);
  for (std::int64_t number = 4; number <= 6; ++number)
    EXPECT_EQ(rollbacks.add(bad, 8), number) << "another checkpoint has a bound of its own";
  try {
    rollbacks.add(bad, 8);
    FAIL();
  } catch (const base::Error &error) {
    EXPECT_EQ(
        std::string(error.what()),
        "got loss inf and gradient norm 1 in step 7, a step that is not finite, after 3 rollbacks "
        "to step 8; every gradient is finite; lower the learning rate, clip the gradients, or "
        "look at the data");
    EXPECT_TRUE(error.isRefusal() && error.isByAll());
  }
}

TEST(BadStepsTest, AFailureIsANote) {
  const TemporaryFile file("bad");
  testing::internal::CaptureStderr();
  writeBadStep(file.path, "{}\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "note: wrote the bad step to '" + file.path + "'\n");
  EXPECT_EQ(file.read(), "{}\n");
  testing::internal::CaptureStderr();
  writeBadStep("/nowhere/bad", "{}\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr().find(
                "note: the bad step was not written: cannot create '/nowhere/bad'"),
            0u);
}

/// Sample i of input 0 is the row (i, 2 i), of input 1 the number 10 i in bf16.
class Counting final : public Dataset {
public:
  std::int64_t samples() const override { return 100; }
  void read(std::size_t input, std::int64_t sample, void *to) const override {
    const auto row = static_cast<std::int32_t>(sample);
    if (input == 0)
      static_cast<std::int32_t *>(to)[0] = row, static_cast<std::int32_t *>(to)[1] = 2 * row;
    else
      *static_cast<bf16 *>(to) = bf16(static_cast<float>(10 * row));
  }
  void readAhead(std::size_t, std::int64_t) const override {}
  void requireWhole() const override {
    if (isCut)
      throw base::Error("'d.bin' was truncated");
  }
  const char *form() const override { return "counting"; }
  bool isCut = false;
};

TEST(BadStepsTest, InputsAreADataSetOfTheBatch) {
  const TemporaryFile file("inputs");
  const std::vector<Input> inputs = {
      {"ids", {2}, 0, ArenaSpan<std::int32_t>{0, 4}, 3, 2, {0}, 50, Source::Tokens},
      {"y", {}, 0, ArenaSpan<bf16>{0, 2}, 3, 2}};
  const Table<Input> table{inputs.data(), inputs.size()};
  Counting data;
  ASSERT_TRUE(writeBadInputs(file.path, table, data, {7, 0, 21}));
  const auto read = openDataset(file.path, table);
  ASSERT_EQ(read->samples(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::int32_t sample = std::vector<std::int32_t>{7, 0, 21}[static_cast<std::size_t>(i)];
    std::int32_t row[2];
    bf16 number;
    read->read(0, i, row);
    read->read(1, i, &number);
    EXPECT_EQ(row[0], sample);
    EXPECT_EQ(row[1], 2 * sample);
    EXPECT_EQ(float(number), static_cast<float>(10 * sample));
  }
  const std::string whole = file.read();
  data.isCut = true;
  testing::internal::CaptureStderr();
  EXPECT_FALSE(writeBadInputs(file.path, table, data, {1}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "note: the inputs of the bad step were not written: 'd.bin' was truncated\n");
  EXPECT_EQ(file.read(), whole);
}

} // namespace
