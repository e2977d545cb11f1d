#include "base/Safetensors.h"
#include "runtime/data/OpenDataset.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

using namespace fsdp::rt;
using base::safetensorsHeader;

namespace {

// Batch of 4 over two ranks of 3 rows, samples of 5 tokens.
constexpr std::int64_t kContext = 5, kBatch = 4, kRows = 3;

template <typename Id = std::int32_t> std::vector<Input> inputsOf(std::int64_t vocabulary) {
  const ArenaSpan<Id> slice{0, kRows * kContext};
  return {{"tokens", {kContext}, 0, slice, kBatch, kRows, {0}, vocabulary, Source::Tokens},
          {"targets", {kContext}, 0, slice, kBatch, kRows, {0}, vocabulary, Source::Targets}};
}

Table<Input> table(const std::vector<Input> &inputs) { return {inputs.data(), inputs.size()}; }

/// A token file as llm.c writes it, with `count` in its header unless the tokens say otherwise.
template <typename Token>
std::string tokenFile(std::uint32_t magic, std::uint32_t version,
                      const std::vector<Token> &tokens) {
  std::vector<std::uint32_t> header(256);
  header[0] = magic, header[1] = version, header[2] = std::uint32_t(tokens.size());
  return std::string(reinterpret_cast<const char *>(header.data()), 1024) +
         std::string(reinterpret_cast<const char *>(tokens.data()), tokens.size() * sizeof(Token));
}

template <typename Token> std::vector<Token> counting(std::size_t count, std::size_t first = 0) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), Token(first));
  return tokens;
}

std::string narrow(std::size_t count) {
  return tokenFile(20240520, 1, counting<std::uint16_t>(count));
}

/// The samples of a file, tokens and targets, one after another.
template <typename Id = std::int32_t>
std::vector<std::vector<Id>> samplesOf(const std::string &bytes, std::int64_t vocabulary) {
  TemporaryFile file;
  file.write(bytes);
  const std::vector<Input> inputs = inputsOf<Id>(vocabulary);
  const auto data = openDataset(file.path, table(inputs));
  std::vector<std::vector<Id>> samples;
  for (std::int64_t i = 0; i < data->samples(); ++i)
    for (std::size_t input : {0, 1})
      data->read(input, i, samples.emplace_back(kContext).data());
  return samples;
}

TEST(TokenDatasetTest, TargetsAreTokensOneFurtherOn) {
  using Samples = std::vector<std::vector<std::int32_t>>;
  const Samples two = {{0, 1, 2, 3, 4}, {1, 2, 3, 4, 5}, {5, 6, 7, 8, 9}, {6, 7, 8, 9, 10}};
  EXPECT_EQ(samplesOf(narrow(11), 5000), two);
  EXPECT_EQ(samplesOf(narrow(15), 5000), two) << "the third sample lacks a target";
  EXPECT_EQ(samplesOf(narrow(16), 5000).size(), 6u);
  EXPECT_EQ(samplesOf(narrow(6), 6), (Samples{two[0], two[1]}));
}

TEST(TokenDatasetTest, ReadsAllForms) {
  const std::vector<std::vector<std::int64_t>> wide = {{100000, 100001, 100002, 100003, 100004},
                                                       {100001, 100002, 100003, 100004, 100005}};
  EXPECT_EQ(
      samplesOf<std::int64_t>(tokenFile(20240801, 7, counting<std::uint32_t>(6, 100000)), 128256),
      wide);
  const std::vector<std::vector<std::int64_t>> text = {{'h', 'e', 'l', 'l', 0xff},
                                                       {'e', 'l', 'l', 0xff, '!'}};
  EXPECT_EQ(samplesOf<std::int64_t>("hell\xff!", 256), text);
  EXPECT_EQ(samplesOf(narrow(11), 256).size(), 4u) << "a token file of 256 symbols is not bytes";
}

TEST(TokenDatasetTest, BatchesAreTheSameOnAnyNumberOfRanks) {
  TemporaryFile file;
  file.write(narrow(5 * 7 + 1));
  const std::vector<Input> inputs = inputsOf(5000);
  const auto data = openDataset(file.path, table(inputs));
  ASSERT_EQ(data->samples(), 7);
  const auto firsts = [&](std::int64_t first, int coordinate) {
    std::int32_t slice[kRows * kContext];
    readBatch(*data, SampleOrder(), inputs[1], 1, first,
              {coordinate * kRows, std::min((coordinate + 1) * kRows, kBatch)}, nullptr, slice);
    return std::vector<std::int32_t>{slice[0], slice[5], slice[10]};
  };
  EXPECT_EQ(firsts(0, 0), (std::vector<std::int32_t>{1, 6, 11}));
  EXPECT_EQ(firsts(0, 1), (std::vector<std::int32_t>{16, 16, 16}));
  EXPECT_EQ(firsts(4, 0), (std::vector<std::int32_t>{21, 26, 31}));
  EXPECT_EQ(firsts(4, 1), (std::vector<std::int32_t>{1, 1, 1}));
}

void refused(const std::string &bytes, std::int64_t vocabulary, const std::string &why) {
  TemporaryFile file;
  file.write(bytes);
  const std::vector<Input> inputs = inputsOf(vocabulary);
  const std::string message = messageOf([&] { openDataset(file.path, table(inputs)); });
  EXPECT_NE(message.find(why), std::string::npos) << message;
  EXPECT_NE(message.find("/file': "), std::string::npos) << message;
}

TEST(TokenDatasetTest, RefusesFilesThatAreNotWhole) {
  refused(narrow(20).substr(0, 1024 + 39), 5000,
          "got 1063 bytes, expected 1064 for the 20 tokens that the header counts");
  refused(narrow(20) + "x", 5000, "got 1065 bytes, expected 1064");
  refused(tokenFile(20240801, 7, counting<std::uint32_t>(20)).substr(0, 1064), 5000,
          "got 1064 bytes, expected 1104 for the 20 tokens");
  refused(narrow(20).substr(0, 100), 5000, "got 100 bytes, expected a header of 1024");
  refused(narrow(5), 5000, "got 5 tokens, expected at least 6 for one sample of 5");
  refused("short", 256, "got 5 tokens, expected at least 6 for one sample of 5");
  refused("", 256, "got 0 tokens, expected at least 6");
}

TEST(TokenDatasetTest, RefusesFilesOfAnotherKind) {
  refused(tokenFile(20240521, 1, counting<std::uint16_t>(20)), 5000,
          "not a token file: got magic number 20240521, expected 20240520 (16-bit tokens) or "
          "20240801 (32-bit tokens); plain bytes need a vocabulary of 256, this model has "
          "5000");
  for (const char *few : {"", "abc"})
    refused(few, 5000,
            "not a token file: got " + std::to_string(std::strlen(few)) +
                " bytes, expected a header of 1024; write or download the file again");
  // Tensors would be read as text where every byte is a token.
  const std::string tensors = std::string("\x10\0\0\0\0\0\0\0", 8) + R"({"__metadata__":0})";
  refused(tensors, 256,
          "got a safetensors file, expected tokens, which input 'tokens' takes; give "
          "a token file or a text");
  refused(tensors, 5000, "got a safetensors file, expected tokens, which input 'tokens' takes");
  refused(tokenFile(20240520, 2, counting<std::uint16_t>(20)), 5000,
          "got version 2 of magic number 20240520, expected 1");
  refused(tokenFile(20240801, 1, counting<std::uint32_t>(20)), 5000,
          "got version 1 of magic number 20240801, expected 7");
}

// The file of a bad step: each tensor of a sample, in a form that no token file has.
TEST(TokenDatasetTest, TakesTensorsOfItsInputs) {
  const auto bytes = [](const std::string &second) {
    std::string text = safetensorsHeader({{"tokens", {2, 5}, "I32"}, {second, {2, 5}, "I32"}});
    for (std::int32_t i = 0; i < 20; ++i)
      text.append(reinterpret_cast<const char *>(&i), sizeof i);
    return text;
  };
  using Samples = std::vector<std::vector<std::int32_t>>;
  for (std::int64_t vocabulary : {256, 5000})
    EXPECT_EQ(
        samplesOf(bytes("targets"), vocabulary),
        (Samples{{0, 1, 2, 3, 4}, {10, 11, 12, 13, 14}, {5, 6, 7, 8, 9}, {15, 16, 17, 18, 19}}));
  refused(bytes("targets"), 19,
          "tensor 'targets': got 19 at sample 1, element 4, expected values from 0 to 18");
  refused(bytes("labels"), 256, "got a safetensors file, expected tokens");
}

TEST(TokenDatasetTest, NamesATokenOutsideOfTheVocabulary) {
  refused(narrow(5000), 4999,
          "got token 4999 at position 4999, expected 0 to 4998; use the model's own vocabulary");
  refused(narrow(300), 256, "got token 256 at position 256, expected 0 to 255");
  refused(tokenFile(20240801, 7, std::vector<std::uint32_t>{1, 2, 3, 0xffffffff, 4, 5, 6}), 0,
          "got token 4294967295 at position 3, expected 0 to 2147483647");
}

TEST(TokenDatasetTest, RefusesInputsThatDisagree) {
  TemporaryFile file;
  file.write(narrow(20));
  const auto complaint = [&](auto change) {
    std::vector<Input> inputs = inputsOf(5000);
    change(inputs[1]);
    return messageOf([&] { openDataset(file.path, table(inputs)); });
  };
  EXPECT_EQ(complaint([](Input &) {}), "no error");
  EXPECT_EQ(complaint([](Input &input) { input.source = Source::Tensor; }),
            "input 'targets' is a tensor, expected tokens or targets as 'tokens' is");
  EXPECT_EQ(complaint([](Input &input) { input.sample = {4}; }),
            "input 'targets': got samples of 4 tokens, expected 5 as 'tokens' has");
  EXPECT_EQ(complaint([](Input &input) { input.slice = ArenaSpan<float>{0, 15}; }),
            "input 'targets': got element type f32, expected i32 or i64 for tokens");
}

} // namespace
