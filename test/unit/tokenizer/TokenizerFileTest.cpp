//===- TokenizerFileTest.cpp - files that are refused ---------------------===//

#include "test/unit/base/TemporaryFile.h"
#include "tokenizer/Tokenizer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace tokenizer;
using fsdp::rt::messageOf;
using fsdp::rt::TemporaryFile;
using Json = nlohmann::json;

namespace {

/// A whole file, small.
Json right() {
  return Json::parse(R"({
    "added_tokens": [{"id": 3, "content": "<e>", "special": true, "normalized": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated"},
    "post_processor": {"type": "TemplateProcessing",
                       "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<e>"}}],
                       "special_tokens": {"<e>": {"ids": [3]}}},
    "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
}

/// The message for `right()` with `value` at `place`, a pointer as "/model/type".
std::string refusal(const std::string &place, const Json &value) {
  Json json = right();
  json[Json::json_pointer(place)] = value;
  return messageOf([&] { Tokenizer::parse(json.dump(), "t.json"); });
}

TEST(TokenizerFileTest, AWholeFileIsTaken) {
  const Tokenizer tokenizer = Tokenizer::parse(right().dump(), "t.json");
  EXPECT_EQ(tokenizer.encode("aba<e>b", true), (std::vector<TokenId>{2, 0, 3, 1, 3}));
  EXPECT_EQ(tokenizer.vocabularySize(), 4u);
  // The oldest files say no type, and end words with nothing.
  Json old = right();
  old["model"].erase("type");
  old["model"]["merges"] = Json::array({"#version: 0.2", "a b"});
  old["model"]["end_of_word_suffix"] = "";
  old["model"]["dropout"] = nullptr;
  EXPECT_EQ(Tokenizer::parse(old.dump(), "t.json").encode("ab", false), std::vector<TokenId>{2});
}

TEST(TokenizerFileTest, TheLongestAddedTokenIsFound) {
  Json json = right();
  for (const auto &[id, content] : {std::pair(4, "<"), std::pair(5, "<e>b<"), std::pair(6, "")})
    json["added_tokens"].push_back({{"id", id}, {"content", content}, {"normalized", false}});
  const Tokenizer tokenizer = Tokenizer::parse(json.dump(), "t.json");
  EXPECT_EQ(tokenizer.encode("<e>b<e>b", false), (std::vector<TokenId>{5, 1}));
  EXPECT_EQ(tokenizer.encode("<<e>bb<e", false), (std::vector<TokenId>{4, 3, 1, 1, 4}));
}

TEST(TokenizerFileTest, UnsupportedEntriesAreNamed) {
  const char *const only =
      "BPE, the only model that is supported (not Unigram, WordPiece or WordLevel)";
  EXPECT_EQ(refusal("/model/type", "Unigram"),
            std::string("'t.json': 'model': got type 'Unigram', expected ") + only);
  EXPECT_EQ(refusal("/model", {{"vocab", Json::array()}}),
            std::string("'t.json': 'model': got type nothing, expected ") + only);
  EXPECT_EQ(
      refusal("/model/continuing_subword_prefix", "##"),
      "'t.json': 'model.continuing_subword_prefix': got \"##\", expected none; marks of parts "
      "of words are not supported");
  EXPECT_EQ(
      refusal("/model/dropout", 0.1),
      "'t.json': 'model.dropout': got 0.1, expected none or 0; tokens that are drawn at random "
      "are not supported");
  EXPECT_EQ(refusal("/normalizer", {{"type", "BertNormalizer"}}),
            "'t.json': 'normalizer': got type \"BertNormalizer\", expected NFC, NFD, NFKC, NFKD, "
            "Prepend, Replace and Sequence, which are supported");
  EXPECT_EQ(refusal("/pre_tokenizer",
                    {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Whitespace"}}}}}),
            "'t.json': 'pre_tokenizer.pretokenizers[0]': got type \"Whitespace\", expected Split, "
            "ByteLevel, Metaspace, Digits, Punctuation and Sequence, which are supported");
  EXPECT_EQ(refusal("/pre_tokenizer",
                    {{"type", "Sequence"},
                     {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "Digits"}}}}}),
            "'t.json': 'pre_tokenizer.pretokenizers[1]': got type 'Digits' behind ByteLevel, "
            "expected ByteLevel as the last step; nothing else is supported yet");
  EXPECT_EQ(refusal("/post_processor", {{"type", "BertProcessing"}}),
            "'t.json': 'post_processor': got type \"BertProcessing\", expected TemplateProcessing, "
            "ByteLevel and Sequence, which are supported");
  EXPECT_EQ(
      refusal("/decoder", {{"type", "WordPiece"}}),
      "'t.json': 'decoder': got type \"WordPiece\", expected ByteLevel, Replace, ByteFallback, "
      "Metaspace, Strip, Fuse and Sequence, which are supported");
  EXPECT_EQ(refusal("/decoder", {{"type", "Sequence"},
                                 {"decoders", {{{"type", "Fuse"}}, {{"type", "ByteLevel"}}}}}),
            "'t.json': 'decoder.decoders[1]': got type 'ByteLevel' behind Fuse, expected Fuse and "
            "Strip alone; nothing else is supported there yet");
  EXPECT_EQ(
      refusal("/decoder", {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}),
      "'t.json': 'decoder.stop': got 1, expected 0; a text is written as its tokens come, and "
      "keeps its end");
}

TEST(TokenizerFileTest, WrongVocabulariesAreRefused) {
  EXPECT_EQ(refusal("/model/vocab", Json::array()),
            "'t.json': 'model.vocab': got [], expected an object with the id of each token");
  EXPECT_EQ(refusal("/model/vocab", Json::object()), "'t.json': 'model.vocab': has no tokens");
  EXPECT_EQ(
      refusal("/model/vocab/a", -1),
      "'t.json': 'model.vocab': got id -1 of token 'a', expected an integer from 0 to 4194303");
  EXPECT_EQ(refusal("/model/vocab/a", 4194304),
            "'t.json': 'model.vocab': got id 4194304 of token 'a', expected an integer from 0 to "
            "4194303");
  EXPECT_EQ(
      refusal("/model/vocab/b", 0),
      "'t.json': 'model.vocab': tokens 'a' and 'b' have the same id 0, expected one token for "
      "each id");
  EXPECT_EQ(refusal("/model/unk_token", "?"),
            "'t.json': 'model.unk_token': got \"?\", expected a token of the vocabulary");
}

TEST(TokenizerFileTest, WrongMergesAreRefused) {
  EXPECT_EQ(refusal("/model/merges", "a b"),
            "'t.json': 'model.merges': got \"a b\", expected an array of pairs of tokens");
  EXPECT_EQ(
      refusal("/model/merges/0", "ab"),
      "'t.json': 'model.merges': got the merge 'ab', expected two tokens with a blank between "
      "them");
  EXPECT_EQ(refusal("/model/merges/0", "a b c"),
            "'t.json': 'model.merges': got the merge 'a b c', expected two tokens with a blank "
            "between them");
  EXPECT_EQ(refusal("/model/merges/0", Json::array({"a", 1})),
            "'t.json': 'model.merges': got the merge [\"a\",1], expected two tokens");
  EXPECT_EQ(refusal("/model/merges/0", Json::array({"b", "a"})),
            "'t.json': 'model.merges': got the merge of 'b' and 'a', expected tokens of the "
            "vocabulary, which lacks 'ba'");
  EXPECT_EQ(refusal("/model/merges/0", Json::array({"", "a"})),
            "'t.json': 'model.merges': got the merge of '' and 'a', expected tokens of the "
            "vocabulary, which lacks ''");
}

TEST(TokenizerFileTest, WrongEntriesAreNamedWithTheirPlace) {
  EXPECT_EQ(refusal("/added_tokens/0/id", 2),
            "'t.json': 'added_tokens[0].id': got 2, the id of 'ab', expected a free id for '<e>'");
  EXPECT_EQ(refusal("/added_tokens/0/content", "a"),
            "'t.json': 'added_tokens[0].id': got 3, expected 0, the id of 'a' in the vocabulary");
  EXPECT_EQ(refusal("/added_tokens/0/id", "x"),
            "'t.json': 'added_tokens[0].id': got \"x\", expected an integer from 0 to 4194303");
  EXPECT_EQ(refusal("/added_tokens", 1), "'t.json': 'added_tokens': got 1, expected an array");
  EXPECT_EQ(refusal("/added_tokens/0", Json::object()),
            "'t.json': 'added_tokens[0]': has no 'content'; the file is not one of the library "
            "`tokenizers`, or incomplete");
  EXPECT_EQ(refusal("/added_tokens/0/special", "yes"),
            "'t.json': 'added_tokens[0].special': got \"yes\", expected true or false");
  EXPECT_EQ(refusal("/added_tokens/0/content", 1),
            "'t.json': 'added_tokens[0].content': got 1, expected a text");
  EXPECT_EQ(refusal("/decoder", 1), "'t.json': 'decoder': got 1, expected an object");
  EXPECT_EQ(
      refusal("/pre_tokenizer/pattern", Json::object()),
      "'t.json': 'pre_tokenizer.pattern': got {}, expected {\"Regex\": …} or {\"String\": …}");
  EXPECT_EQ(
      refusal("/pre_tokenizer/pattern", {{"Regex", "a$"}}),
      "'t.json': 'pre_tokenizer.pattern.Regex': the regular expression 'a$' has '$', which is "
      "not supported; expected groups, sets, repetitions, look-around, `\\p{…}`, `\\s`, `\\d`, "
      "`\\w` and characters");
  EXPECT_EQ(refusal("/pre_tokenizer/behavior", "Merged"),
            "'t.json': 'pre_tokenizer.behavior': got \"Merged\", expected Removed, Isolated, "
            "MergedWithPrevious, MergedWithNext or Contiguous");
  EXPECT_EQ(refusal("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "__"}}),
            "'t.json': 'pre_tokenizer.replacement': got \"__\", expected one character");
  EXPECT_EQ(
      refusal("/pre_tokenizer",
              {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}}),
      "'t.json': 'pre_tokenizer.prepend_scheme': got \"last\", expected always, first or never");
  EXPECT_EQ(refusal("/decoder", {{"type", "Metaspace"}, {"replacement", ""}}),
            "'t.json': 'decoder.replacement': got \"\", expected one character");
  EXPECT_EQ(refusal("/post_processor/special_tokens/<e>/ids", {7}),
            "'t.json': 'post_processor': got id 7, expected ids of tokens of the file");
  EXPECT_EQ(refusal("/post_processor/single", Json::array()),
            "'t.json': 'post_processor.single': got a template with the text 0 times, expected the "
            "text once");
}

TEST(TokenizerFileTest, InvalidFilesAreRefused) {
  EXPECT_EQ(
      messageOf([] { Tokenizer::parse("{", "t.json"); }),
      "'t.json' is not a JSON object (line 1, column 2: unexpected end of input; expected string "
      "literal), expected a tokenizer.json of the library `tokenizers`");
  EXPECT_EQ(messageOf([] { Tokenizer::parse("{}", "t.json"); }),
            "'t.json': has no 'model'; the file is not one of the library `tokenizers`, or "
            "incomplete");
  const TemporaryFile file("tokenizer.json");
  EXPECT_EQ(
      messageOf([&] { Tokenizer::load(file.folder); }),
      "'" + file.folder +
          "' has no file 'tokenizer.json'; download it with the weights, or save the tokenizer "
          "by transformers' save_pretrained");
  file.write(right().dump());
  EXPECT_EQ(Tokenizer::load(file.folder).vocabularySize(), 4u);
  EXPECT_EQ(Tokenizer::load(file.path).vocabularySize(), 4u);
}

} // namespace
