//===- GoldenTest.cpp - ids and texts as the library `tokenizers` has them ===//
//
// test/golden/make_tokenizers.py makes the files and the cases.
//
//===----------------------------------------------------------------------===//

#include "base/Utf8.h"
#include "tokenizer/Tokenizer.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace tokenizer;
using Json = nlohmann::json;

namespace {

std::string folder() {
  return std::string(std::getenv("FSDP_SOURCE_DIR")) + "/test/golden/tokenizers/";
}

const Json &cases() {
  static const Json all = Json::parse(std::ifstream(folder() + "cases.json"));
  return all;
}

std::string inputOf(const Json &each) {
  if (each.contains("input"))
    return each["input"].get<std::string>();
  const auto bytes = each["bytes"].get<std::vector<unsigned char>>();
  return {bytes.begin(), bytes.end()};
}

/// A field of the golden; the text itself where it is left out.
std::string textOf(const Json &golden, const char *field, const std::string &input) {
  return golden.contains(field) ? golden[field].get<std::string>() : base::replaceInvalid(input);
}

class GoldenTest : public testing::TestWithParam<const char *> {
protected:
  const Tokenizer tokenizer = Tokenizer::load(folder() + GetParam() + ".json");
};

TEST_P(GoldenTest, IdsAreTheSame) {
  ASSERT_GT(cases().size(), 30u);
  Encoder encoder(tokenizer); // keeps words from case to case
  for (const Json &each : cases()) {
    const std::string input = inputOf(each);
    const Json &golden = each[GetParam()];
    auto expected = golden["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(input, false), expected) << input;
    std::vector<TokenId> ids;
    encoder.encode(input, false, ids);
    EXPECT_EQ(ids, expected) << input;
    if (golden.contains("special")) {
      const auto special = golden["special"].get<std::vector<TokenId>>();
      expected.insert(expected.begin(), special.begin(), special.end());
    }
    EXPECT_EQ(tokenizer.encode(input, true), expected) << input;
  }
}

TEST_P(GoldenTest, TextsAreTheSame) {
  for (const Json &each : cases()) {
    const std::string input = inputOf(each);
    const Json &golden = each[GetParam()];
    const auto ids = golden["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(base::replaceInvalid(tokenizer.decode(ids, false)), textOf(golden, "text", input));
    EXPECT_EQ(base::replaceInvalid(tokenizer.decode(ids, true)), textOf(golden, "plain", input));
  }
}

TEST_P(GoldenTest, TextsAreTheSameTokenByToken) {
  StreamDecoder decoder(tokenizer, /*skipSpecial=*/false);
  for (const Json &each : cases()) {
    const auto ids = each[GetParam()]["ids"].get<std::vector<TokenId>>();
    std::string text;
    for (const TokenId id : ids) {
      const std::string next = decoder.add(id);
      EXPECT_EQ(base::findInvalid(next), next.npos) << "not whole characters";
      text += next;
    }
    text += decoder.finish();
    EXPECT_EQ(text, base::replaceInvalid(tokenizer.decode(ids, false)));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GoldenTest,
                         testing::Values("gpt2", "llama3", "qwen2", "llama2", "mistral"),
                         [](const auto &info) { return std::string(info.param); });

TEST(TokenizerTest, TokensHaveIdsTextsAndKinds) {
  const Tokenizer tokenizer = Tokenizer::load(folder() + "llama2.json");
  EXPECT_EQ(tokenizer.findToken("</s>"), 2u);
  EXPECT_EQ(tokenizer.findToken("<0x00>"), 3u);
  EXPECT_EQ(tokenizer.findToken("<|endoftext|>"), std::nullopt);
  EXPECT_EQ(tokenizer.textOf(1), "<s>");
  EXPECT_TRUE(tokenizer.isSpecial(2));
  EXPECT_FALSE(tokenizer.isSpecial(3));
  const auto size = static_cast<TokenId>(tokenizer.vocabularySize());
  EXPECT_TRUE(tokenizer.textOf(size - 1));
  EXPECT_FALSE(tokenizer.textOf(size));
  EXPECT_FALSE(tokenizer.isSpecial(size));
  // A model may have more ids than tokens.
  EXPECT_EQ(tokenizer.decode({size, size + 1000}, false), "");

  const Tokenizer added = Tokenizer::load(folder() + "gpt2.json");
  EXPECT_EQ(added.findToken("<|endoftext|>"), added.vocabularySize() - 1);
}

TEST(TokenizerTest, ACharacterIsReturnedWhenItsLastByteIsThere) {
  const Tokenizer tokenizer = Tokenizer::load(folder() + "mistral.json");
  StreamDecoder decoder(tokenizer, true);
  const auto byte = [&](const char *name) { return *tokenizer.findToken(name); };
  EXPECT_EQ(decoder.add(byte("<0xF0>")), "");
  EXPECT_EQ(decoder.add(byte("<0x9F>")), "");
  EXPECT_EQ(decoder.add(byte("<s>")), ""); // a special token between them is left out
  EXPECT_EQ(decoder.add(byte("<0x98>")), "");
  EXPECT_EQ(decoder.add(byte("<0x80>")), "\xf0\x9f\x98\x80");
  EXPECT_EQ(decoder.add(byte("<0xE2>")), "");
  EXPECT_EQ(decoder.add(byte("<0x41>")), "\xef\xbf\xbd\x41");
  EXPECT_EQ(decoder.add(byte("<0xC3>")), "");
  EXPECT_EQ(decoder.finish(), "\xef\xbf\xbd");
  // The next text begins anew: without the blank that every text of this file begins with.
  EXPECT_EQ(decoder.add(*tokenizer.findToken("\xe2\x96\x81")), "");
  EXPECT_EQ(decoder.add(*tokenizer.findToken("\xe2\x96\x81")), " ");
}

TEST(TokenizerTest, AContinuationOfAPromptKeepsItsBlank) {
  const Tokenizer tokenizer = Tokenizer::load(folder() + "llama2.json");
  const std::vector<TokenId> prompt = tokenizer.encode("the model", true);
  const std::vector<TokenId> whole = tokenizer.encode("the model of", true);
  ASSERT_GT(whole.size(), prompt.size());
  StreamDecoder decoder(tokenizer, true);
  std::string text;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i == prompt.size())
      text.clear();
    text += decoder.add(whole[i]);
  }
  EXPECT_EQ(text, " of");
}

TEST(TokenizerTest, ManyWordsDoNotChangeIds) {
  // More words than the cache of an encoder has room for.
  const Tokenizer tokenizer = Tokenizer::load(folder() + "gpt2.json");
  Encoder encoder(tokenizer);
  std::vector<TokenId> first, ids;
  encoder.encode("the model of 123456", false, first);
  std::string text;
  for (int i = 0; i < 300000; ++i)
    text += " " + std::to_string(1000000 + i);
  encoder.encode(text, false, ids);
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  ids.clear();
  encoder.encode("the model of 123456", false, ids);
  EXPECT_EQ(ids, first);
}

} // namespace
