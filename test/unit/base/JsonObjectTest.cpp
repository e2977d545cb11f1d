//===- JsonObjectTest.cpp - where a text is no JSON -----------------------===//

#include "base/JsonObject.h"

#include <gtest/gtest.h>

using namespace base;

namespace {

std::string faultOf(const std::string &text) {
  nlohmann::json object;
  return parseJsonObject(text, object);
}

TEST(JsonObjectTest, AFaultHasItsLineAndColumn) {
  EXPECT_EQ(faultOf("{\"a\": 1}"), "");
  EXPECT_EQ(faultOf("[]"), "is not a JSON object");
  EXPECT_EQ(faultOf("{\n \"a\": }").rfind("is not a JSON object (line 2, column 7: ", 0), 0u)
      << faultOf("{\n \"a\": }");
  EXPECT_EQ(faultOf("").rfind("is not a JSON object (line 1, column 1: ", 0), 0u) << faultOf("");
  EXPECT_EQ(faultOf("{\"a\": 1, \"a\": 2}"), "names 'a' twice");
}

/// Of a number that no double has: where it begins, and not the same digits in a text before it.
TEST(JsonObjectTest, ANumberThatIsTooLargeHasItsLineAndColumn) {
  EXPECT_EQ(faultOf("{\"1e999\": \"1e999\",\n  \"b\": [0, 1e999]}"),
            "is not a JSON object (line 2, column 12: number overflow parsing '1e999')");
  EXPECT_EQ(faultOf("{\"a\": -1e999"),
            "is not a JSON object (line 1, column 7: number overflow parsing '-1e999')");
}

} // namespace
