//===- BpeTest.cpp - merges, unknown characters, bytes --------------------===//

#include "tokenizer/Bpe.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace tokenizer;
using Json = nlohmann::json;

namespace {

/// A model on characters with the tokens `vocabulary`, by ids from 0, and `merges` as "a b".
Json modelOf(const std::vector<std::string> &vocabulary, const std::vector<std::string> &merges) {
  Json tokens = Json::object();
  for (const std::string &token : vocabulary)
    tokens[token] = tokens.size();
  return {{"type", "BPE"}, {"vocab", tokens}, {"merges", merges}};
}

std::vector<TokenId> ids(const Json &json, const std::string &word) {
  const std::string name = "file";
  const Bpe model(Entry(name, json), /*isByteLevel=*/false);
  Bpe::Workspace workspace;
  std::vector<TokenId> first, again;
  model.encode(word, workspace, first);
  model.encode(word, workspace, again); // from the cache
  EXPECT_EQ(first, again);
  return first;
}

using Ids = std::vector<TokenId>;

TEST(BpeTest, TheLowestRankIsMergedFirstAndThenTheLeftmost) {
  const Json json = modelOf({"a", "b", "c", "bc", "ab", "abc"}, {"b c", "a b", "ab c"});
  EXPECT_EQ(ids(json, "abc"), (Ids{0, 3}));
  EXPECT_EQ(ids(modelOf({"a", "aa"}, {"a a"}), "aaaaa"), (Ids{1, 1, 0}));
  EXPECT_EQ(ids(modelOf({"a", "aa", "aaaa"}, {"a a", "aa aa"}), "aaaaaaa"), (Ids{2, 1, 0}));
}

TEST(BpeTest, APairThatIsGoneGivesNoRankToTheNextOne) {
  // When "y z" is merged, "x y" is gone; "x yz" has a rank of its own, behind "w x".
  const Json json =
      modelOf({"w", "x", "y", "z", "yz", "xy", "wx", "xyz"}, {"y z", "x y", "w x", "x yz"});
  EXPECT_EQ(ids(json, "wxyz"), (Ids{6, 4}));
  EXPECT_EQ(ids(json, "xyz"), (Ids{7}));
}

TEST(BpeTest, AVocabularyMayHoldAWordWithoutMerges) {
  Json json = modelOf({"a", "b", "ab"}, {});
  EXPECT_EQ(ids(json, "ab"), (Ids{0, 1}));
  json["ignore_merges"] = true;
  EXPECT_EQ(ids(json, "ab"), (Ids{2}));
  EXPECT_EQ(ids(json, "abb"), (Ids{0, 1, 1}));
}

TEST(BpeTest, UnknownCharacters) {
  Json json = modelOf({"?", "a", "<0x78>"}, {});
  EXPECT_EQ(ids(json, "axya"), (Ids{1, 1})); // nothing stands for them
  json["unk_token"] = "?";
  EXPECT_EQ(ids(json, "axya"), (Ids{1, 0, 0, 1}));
  json["fuse_unk"] = true;
  EXPECT_EQ(ids(json, "axya"), (Ids{1, 0, 1}));
  json["byte_fallback"] = true;
  EXPECT_EQ(ids(json, "axya"), (Ids{1, 2, 0, 1}));
  EXPECT_EQ(ids(json, "yxa"), (Ids{2, 0, 1})); // as in `tokenizers`, the byte stands first
}

/// What the definition says, in cubic time.
Ids slowly(const std::map<std::pair<std::string, std::string>, int> &ranks, const Json &vocabulary,
           const std::string &word) {
  std::vector<std::string> parts;
  for (const char c : word)
    parts.emplace_back(1, c);
  while (true) {
    int best = INT32_MAX;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
      if (const auto found = ranks.find({parts[i], parts[i + 1]});
          found != ranks.end() && found->second < best) {
        best = found->second;
        at = i;
      }
    if (best == INT32_MAX)
      break;
    parts[at] += parts[at + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  Ids result;
  for (const std::string &part : parts)
    result.push_back(vocabulary[part].get<TokenId>());
  return result;
}

/// Long words are cut where no merge joins two characters; the result is that of the whole word.
TEST(BpeTest, RandomMergesAgreeWithTheDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> tokens{"a", "b", "c", "d", "e"}, lines;
    std::map<std::pair<std::string, std::string>, int> ranks;
    for (int i = 0; i < 12; ++i) {
      const std::string left = tokens[random() % tokens.size()];
      const std::string right = tokens[random() % tokens.size()];
      if (left.size() + right.size() > 8 || !ranks.emplace(std::pair(left, right), i).second)
        continue;
      if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end())
        tokens.push_back(left + right);
      lines.push_back(left + " " + right);
      ranks[{left, right}] = static_cast<int>(lines.size()) - 1;
    }
    const Json json = modelOf(tokens, lines);
    for (int i = 0; i < 10; ++i) {
      std::string word;
      for (std::size_t size = 1 + random() % 40; word.size() < size;)
        word += static_cast<char>('a' + random() % 5);
      EXPECT_EQ(ids(json, word), slowly(ranks, json["vocab"], word)) << json << word;
    }
  }
}

TEST(BpeTest, ALongWordTakesLittleTime) {
  // Quadratic time would take minutes.
  const Json json = modelOf({"a", "b", "aa", "ab", "aaaa"}, {"a a", "a b", "aa aa"});
  EXPECT_EQ(ids(json, std::string(1 << 19, 'a')).size(), 1u << 17);
}

} // namespace
