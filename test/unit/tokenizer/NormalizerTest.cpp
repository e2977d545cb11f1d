//===- NormalizerTest.cpp - texts before they are cut ---------------------===//

#include "tokenizer/Normalizer.h"

#include <gtest/gtest.h>

using namespace tokenizer;
using Json = nlohmann::json;

namespace {

std::string normalized(const char *json, const std::string &text) {
  const Json file = Json::parse(json);
  const std::string name = "file";
  return Normalizer(Entry(name, file)).apply(text);
}

TEST(NormalizerTest, FormsAreUnicodes) {
  const std::string composed = "\xc3\xa9", decomposed = "e\xcc\x81"; // é
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "x" + decomposed + "y"), "x" + composed + "y");
  EXPECT_EQ(normalized(R"({"type":"NFD"})", "x" + composed + "y"), "x" + decomposed + "y");
  const std::string ligature = "\xef\xac\x81"; // ﬁ
  EXPECT_EQ(normalized(R"({"type":"NFC"})", ligature), ligature);
  EXPECT_EQ(normalized(R"({"type":"NFKC"})", ligature + decomposed), "fi" + composed);
  EXPECT_EQ(normalized(R"({"type":"NFKD"})", ligature + composed), "fi" + decomposed);
  // Hangul, an order of marks, a singleton, and a character that is not composed again.
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "\xe1\x84\x80\xe1\x85\xa1"), "\xea\xb0\x80");
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "q\xcc\x87\xcc\xa3"), "q\xcc\xa3\xcc\x87");
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "\xe2\x84\xab"), "\xc3\x85");
  EXPECT_EQ(normalized(R"({"type":"NFC"})", "\xe0\xa5\x98"), "\xe0\xa4\x95\xe0\xa4\xbc");
  const std::string zero("a\0b", 3);
  EXPECT_EQ(normalized(R"({"type":"NFC"})", zero + decomposed), zero + composed);
}

TEST(NormalizerTest, TextIsPrependedAndReplaced) {
  const char *const llama = R"({"type":"Sequence","normalizers":[
      {"type":"Prepend","prepend":"_"},{"type":"Replace","pattern":{"String":" "},"content":"_"}]})";
  EXPECT_EQ(normalized(llama, "a b"), "_a_b");
  EXPECT_EQ(normalized(llama, ""), "");
  EXPECT_EQ(normalized(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":""})", "a   b c"),
            "ab c");
}

} // namespace
