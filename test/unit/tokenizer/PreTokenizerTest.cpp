//===- PreTokenizerTest.cpp - how texts are cut into words ----------------===//

#include "tokenizer/PreTokenizer.h"

#include <gtest/gtest.h>

using namespace tokenizer;
using Json = nlohmann::json;

namespace {

/// The words of `text`, with a line between two.
std::string words(const char *json, const std::string &text, bool isFirst = true) {
  const Json file = Json::parse(json);
  const std::string name = "file";
  std::string result;
  PreTokenizer(Entry(name, file)).split(text, isFirst, [&](std::string_view word) {
    result += (result.empty() ? "" : "|") + std::string(word);
  });
  return result;
}

std::string splitBy(const std::string &pattern, const std::string &behavior,
                    const std::string &text, bool invert = false) {
  const Json json = {{"type", "Split"},
                     {"pattern", {{"String", pattern}}},
                     {"behavior", behavior},
                     {"invert", invert}};
  return words(json.dump().c_str(), text);
}

/// The examples of the library's documentation, and what its functions give for the others.
TEST(PreTokenizerTest, SplitHasFiveBehaviors) {
  const std::string text = "the-final--countdown-";
  EXPECT_EQ(splitBy("-", "Removed", text), "the|final|countdown");
  EXPECT_EQ(splitBy("-", "Isolated", text), "the|-|final|-|-|countdown|-");
  EXPECT_EQ(splitBy("-", "MergedWithPrevious", text), "the-|final-|-|countdown-");
  EXPECT_EQ(splitBy("-", "MergedWithNext", text), "the|-final|-|-countdown|-");
  EXPECT_EQ(splitBy("-", "Contiguous", text), "the|-|final|--|countdown|-");
  EXPECT_EQ(splitBy("-", "Removed", text, /*invert=*/true), "-|-|-|-");
  EXPECT_EQ(splitBy("-", "MergedWithPrevious", "--a", /*invert=*/false), "-|-|a");
}

TEST(PreTokenizerTest, MetaspaceMarksBlanks) {
  const std::string mark = "\xe2\x96\x81";
  const auto meta = [&](const std::string &options, const std::string &text, bool isFirst = true) {
    return words((R"({"type":"Metaspace","replacement":")" + mark + "\"" + options + "}").c_str(),
                 text, isFirst);
  };
  EXPECT_EQ(meta("", "a  b"), mark + "a|" + mark + "|" + mark + "b");
  EXPECT_EQ(meta("", " a"), mark + "a");
  EXPECT_EQ(meta(R"(,"prepend_scheme":"never")", "a b"), "a|" + mark + "b");
  EXPECT_EQ(meta(R"(,"add_prefix_space":false)", "a b"), "a|" + mark + "b");
  EXPECT_EQ(meta(R"(,"prepend_scheme":"first","split":false)", "a b"), mark + "a" + mark + "b");
  EXPECT_EQ(meta(R"(,"prepend_scheme":"first","split":false)", "a b", false), "a" + mark + "b");
  EXPECT_EQ(meta(R"(,"prepend_scheme":"always","split":false)", "a b", false),
            mark + "a" + mark + "b");
}

TEST(PreTokenizerTest, ByteLevelCutsWords) {
  EXPECT_EQ(words(R"({"type":"ByteLevel","add_prefix_space":false})", "I'm  12 it's"),
            "I|'m| | 12| it|'s");
  EXPECT_EQ(words(R"({"type":"ByteLevel"})", "a"), " a");
  EXPECT_EQ(words(R"({"type":"ByteLevel","use_regex":false})", "a b"), " a b");
}

TEST(PreTokenizerTest, DigitsAndPunctuationAreSeparateWords) {
  EXPECT_EQ(words(R"({"type":"Digits","individual_digits":true})", "a12\xc2\xbd"),
            "a|1|2|\xc2\xbd");
  EXPECT_EQ(words(R"({"type":"Digits"})", "12ab34"), "12|ab|34");
  EXPECT_EQ(words(R"({"type":"Punctuation"})", "a,$b\xe3\x80\x82"), "a|,|$|b|\xe3\x80\x82");
  EXPECT_EQ(words(R"({"type":"Punctuation","behavior":"Removed"})", "a,b"), "a|b");
}

TEST(PreTokenizerTest, StepsFollowOneAnother) {
  EXPECT_EQ(words(R"({"type":"Sequence","pretokenizers":[
                      {"type":"Digits","individual_digits":true},
                      {"type":"Metaspace","replacement":"_","prepend_scheme":"first"},
                      {"type":"Split","pattern":{"Regex":"x+"},"behavior":"Isolated"}]})",
                  "a 1xx"),
            "_a|_|1|xx");
}

} // namespace
