#include "base/EnvironmentFlag.h"
#include "base/Error.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace base;

namespace {

const char *variables(const char *name) {
  return !std::strcmp(name, "ON")      ? "1"
         : !std::strcmp(name, "OFF")   ? "0"
         : !std::strcmp(name, "EMPTY") ? ""
         : !std::strcmp(name, "OTHER") ? "on\n"
                                       : nullptr;
}

TEST(EnvironmentFlag, IsZeroOrOne) {
  EXPECT_EQ(environmentFlag("ON", "", variables), true);
  EXPECT_EQ(environmentFlag("OFF", "", variables), false);
  EXPECT_EQ(environmentFlag("EMPTY", "", variables), std::nullopt);
  EXPECT_EQ(environmentFlag("MISSING", "", variables), std::nullopt);
}

TEST(EnvironmentFlag, RefusesOtherValues) {
  for (const bool explains : {false, true})
    try {
      environmentFlag("OTHER", explains ? "draws a picture" : "", variables);
      FAIL() << "no error";
    } catch (const Error &error) {
      EXPECT_STREQ(error.what(),
                   explains
                       ? "environment variable 'OTHER' got 'on\\n', expected 0 or 1: 1 draws a "
                         "picture"
                       : "environment variable 'OTHER' got 'on\\n', expected 0 or 1");
      EXPECT_EQ(error.status(), kExitBadCommandLine);
      EXPECT_TRUE(error.isByAll());
    }
}

} // namespace
