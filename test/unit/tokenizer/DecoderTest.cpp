//===- DecoderTest.cpp - texts of tokens ----------------------------------===//

#include "tokenizer/Decoder.h"

#include <gtest/gtest.h>

using namespace tokenizer;
using Json = nlohmann::json;

namespace {

std::string decoded(const char *json, const std::vector<std::string> &tokens) {
  const Json file = Json::parse(json);
  const std::string name = "file";
  const Decoder decoder = json[0] == '{' ? Decoder(Entry(name, file)) : Decoder();
  Decoder::State state = decoder.begin();
  std::string text;
  for (const std::string &token : tokens)
    text += decoder.next(token, state);
  return text;
}

TEST(DecoderTest, ByteLevelGivesBytes) {
  const char *const json = R"({"type":"ByteLevel"})";
  EXPECT_EQ(decoded(json, {"a",
                           "\xc4\xa0"
                           "b",
                           "\xc3\xa2\xc4\xa4"}),
            "a b\xe2\x82");
  // A blank stands for no byte: the token is added, and is its text.
  EXPECT_EQ(decoded(json, {"a b\xc3\xa9"}), "a b\xc3\xa9");
}

TEST(DecoderTest, PiecesGiveTexts) {
  const char *const llama = R"({"type":"Sequence","decoders":[
      {"type":"Replace","pattern":{"String":"_"},"content":" "},{"type":"ByteFallback"},
      {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";
  EXPECT_EQ(decoded(llama, {"_", "_a", "_b"}), " a b");
  EXPECT_EQ(decoded(llama, {"a", "_b"}), "a b");
  EXPECT_EQ(decoded(llama, {"<0xC3>", "<0xa9>", "<0x4>", "<0xZZ>", "<0xC3"}),
            "\xc3\xa9<0x4><0xZZ><0xC3");
  EXPECT_EQ(decoded(R"({"type":"Strip","content":" ","start":2,"stop":0})", {"   a", " b", "c"}),
            " abc");
}

TEST(DecoderTest, MetaspaceGivesBlanks) {
  EXPECT_EQ(decoded(R"({"type":"Metaspace","replacement":"_"})", {"__a", "_b"}), "a b");
  EXPECT_EQ(
      decoded(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"never"})", {"_a", "_b"}),
      " a b");
  EXPECT_EQ(
      decoded(R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})", {"_a", "_b"}),
      " a b");
}

TEST(DecoderTest, WithoutADecoderBlanksSeparateTokens) {
  EXPECT_EQ(decoded("null", {"a", "b"}), "a b");
}

} // namespace
