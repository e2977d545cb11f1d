#include "runtime/train/BadSteps.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fsdp::rt;

namespace {

TEST(BadStepsTest, AreDescribedForUsersAndPrograms) {
  BadStep bad{7, -NAN, INFINITY, 0.5, "kernel", 60, {60, 61}};
  EXPECT_EQ(
      bad.describe("which are not finite"),
      "got loss nan and gradient norm inf in step 7, which are not finite; the first gradient "
      "that is not finite is that of 'kernel'");
  EXPECT_EQ(
      bad.record({"d.bin"}),
      "{\"step\":7,\"loss\":\"nan\",\"grad_norm\":\"inf\",\"lr\":0.5,\"parameter\":\"kernel\","
      "\"data\":[\"d.bin\"],\"position\":60,\"samples\":[60,61]}\n");
  bad.parameter = "";
  EXPECT_NE(bad.describe("x").find("x; every gradient is finite"), std::string::npos);
  EXPECT_NE(bad.record({"\xff"}).find("\"parameter\":null"), std::string::npos)
      << "paths need not be UTF-8";
  EXPECT_EQ(rollbackLine(2, bad, 5, 50, 70),
            "{\"rollback\":{\"number\":2,\"from_step\":7,\"to_step\":5,\"skipped\":[50,70],"
            "\"cause\":\"got loss nan and gradient norm inf in step 7, which are not finite; every "
            "gradient is finite\"}}\n");
}

TEST(BadStepsTest, AFailedCheckIsNamed) {
  BadStep bad{7, 2, 3, 0.5, "", 60, {60}, FailedCheck{"scores", 3}};
  EXPECT_EQ(bad.describe("whose update was skipped"),
            "got 3 values that are not finite in 'scores', with loss 2 and gradient norm 3 in step "
            "7, whose update was skipped; every gradient is finite");
  EXPECT_EQ(bad.record({"d.bin"}),
            "{\"step\":7,\"loss\":2.0,\"grad_norm\":3.0,\"lr\":0.5,\"parameter\":null,\"check\":"
            "\"scores\",\"values\":3.0,\"data\":[\"d.bin\"],\"position\":60,\"samples\":[60]}\n");
  bad.failed->values = 1;
  EXPECT_EQ(bad.describe("x").rfind("got 1 value that is not finite in 'scores', with ", 0), 0u);
}

TEST(BadStepsTest, ASpikeIsDescribedByItsLimits) {
  BadStep bad{70, 9, 1, 0.5, "", 600, {600}, std::nullopt, Spike{{4.5f, 2, 64}, {6, 128}}};
  EXPECT_EQ(bad.describe(bad.kind()),
            "got loss 9 above 4.5 in step 70, a spike of more than 6 standard deviations over 64 "
            "steps");
  EXPECT_EQ(bad.record({"d.bin"}),
            "{\"step\":70,\"loss\":9.0,\"grad_norm\":1.0,\"lr\":0.5,\"parameter\":null,"
            "\"loss_limit\":4.5,\"grad_norm_limit\":2.0,\"data\":[\"d.bin\"],\"position\":600,"
            "\"samples\":[600]}\n");
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
        "got loss inf and gradient norm 1 in step 7, which are not finite, after 3 rollbacks "
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

} // namespace
