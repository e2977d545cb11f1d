// Trains test/e2e/handwritten/bigram.cpp on bytes and on token files, on 1, 2 and 3 ranks, and
// compares with gradient descent written down in double.

#include "base/Safetensors.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <sys/wait.h>
#include <vector>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBatch = 5, kContext = 16, kVocabulary = 256;

class TokenDriverTest : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("fsdp-token-driver-test-" + std::to_string(getpid()));
    fs::create_directories(folder);
    for (int i = 0; text.size() < 16 * 11 + 7; ++i) // 11 samples, and some that fill none
      text += std::to_string(i * i % 97) + (i % 3 ? " " : ", ");
    text.resize(16 * 11 + 7);
    write("text", text);
    std::vector<std::uint32_t> header(256);
    header[0] = 20240520, header[1] = 1, header[2] = std::uint32_t(text.size());
    std::string tokens(reinterpret_cast<const char *>(header.data()), 1024);
    for (char symbol : text)
      tokens += std::string(1, symbol) + '\0';
    write("tokens", tokens);
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string at(const std::string &name) const { return folder / name; }
  void write(const std::string &name, const std::string &bytes) const {
    std::ofstream(at(name), std::ios::binary) << bytes;
  }
  static std::string textOf(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Runs the program of that many ranks; what it prints goes to `said`.
  int train(int ranks, const std::string &arguments) {
    const std::string command = HANDWRITTEN_FOLDER "/bigram-" + std::to_string(ranks) + " " +
                                arguments + " --log " + at("log") + " > " + at("said") + " 2>&1";
    const int status = std::system(command.c_str());
    said = textOf(at("said"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// A number of each step of the latest run.
  std::vector<double> logged(const std::string &key) const {
    std::vector<double> values;
    std::istringstream in(textOf(at("log")));
    for (std::string line; std::getline(in, line);)
      if (const auto json = nlohmann::json::parse(line); json.contains(key))
        values.push_back(json[key]);
    return values;
  }

  fs::path folder;
  std::string text, said;
};

/// Losses of the same training in double, from a table of zeros.
std::vector<double> reference(const std::string &text, std::size_t steps, double lr) {
  const std::size_t samples = (text.size() - 1) / kContext;
  std::vector<double> table(kVocabulary * kVocabulary), losses;
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<double> gradient(table.size());
    double loss = 0;
    for (std::size_t i = 0; i < kBatch * kContext; ++i) {
      const std::size_t sample = (step * kBatch + i / kContext) % samples;
      const std::size_t at = sample * kContext + i % kContext;
      const auto token = std::size_t(text[at]), target = std::size_t(text[at + 1]);
      const double *row = table.data() + token * kVocabulary;
      double sum = 0;
      for (std::size_t j = 0; j < kVocabulary; ++j)
        sum += std::exp(row[j]);
      loss += (std::log(sum) - row[target]) / (kBatch * kContext);
      for (std::size_t j = 0; j < kVocabulary; ++j)
        gradient[token * kVocabulary + j] +=
            (std::exp(row[j]) / sum - (j == target)) / (kBatch * kContext);
    }
    losses.push_back(loss);
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] -= lr * gradient[i];
  }
  return losses;
}

TEST_F(TokenDriverTest, BytesAndTokensTrainAlikeOnAnyNumberOfRanks) {
  SafetensorsWriter zeros(at("zeros"), {{"table", {kVocabulary, kVocabulary}}});
  const std::vector<float> values(kVocabulary * kVocabulary);
  zeros.write(values.data(), values.size());
  zeros.commit();
  const std::vector<double> expected = reference(text, 6, 20);
  EXPECT_NEAR(expected[0], std::log(256.0), 1e-9);
  EXPECT_LT(expected[5], 4.5);
  for (const int ranks : {1, 2, 3}) {
    std::vector<double> ofBytes;
    for (const char *data : {"text", "tokens"}) {
      ASSERT_EQ(train(ranks, "--steps 6 --lr 20 --data " + at(data) + " --init " + at("zeros")), 0)
          << said;
      const std::vector<double> losses = logged("loss");
      ASSERT_EQ(losses.size(), 6u);
      for (std::size_t i = 0; i < 6; ++i)
        EXPECT_NEAR(losses[i], expected[i], 2e-6 * expected[i]) << ranks << ' ' << i;
      if (ofBytes.empty())
        ofBytes = losses;
      EXPECT_EQ(losses, ofBytes) << "bitwise";
    }
  }
}

TEST_F(TokenDriverTest, EpochsShufflingAndValidationWorkOnTokens) {
  // Two passes over 11 samples, five a step.
  write("validation", text.substr(0, 2 * kBatch * kContext + 1));
  ASSERT_EQ(train(2, "--epochs 2 --shuffle --seed 3 --eval-every 2 --data " + at("tokens") +
                         " --val-data " + at("validation")),
            0)
      << said;
  const std::vector<double> shuffled = logged("loss"), validated = logged("val_loss");
  EXPECT_EQ(shuffled.size(), 5u);
  EXPECT_EQ(validated.size(), 3u);
  EXPECT_LT(validated[2], validated[0]);
  ASSERT_EQ(train(2, "--epochs 2 --data " + at("tokens")), 0) << said;
  EXPECT_NE(logged("loss")[0], shuffled[0]);
}

TEST_F(TokenDriverTest, MixturesHaveTheSameSamplesOnAnyNumberOfRanks) {
  write("more", "of text: " + text.substr(40));
  std::vector<double> digests, losses;
  for (int ranks : {1, 2, 3}) {
    ASSERT_EQ(train(ranks, "--steps 12 --shuffle --log-data --data " + at("te*") + ":2 " +
                               at("more") + ":1"),
              0)
        << said;
    EXPECT_NE(said.find("data: 66.7% from '" + at("te*") + "', 1 file, 11 samples, "),
              std::string::npos)
        << said;
    if (digests.empty())
      digests = logged("samples_digest"), losses = logged("loss");
    EXPECT_EQ(digests.size(), 12u);
    EXPECT_EQ(logged("samples_digest"), digests) << ranks;
    for (std::size_t step = 0; step < losses.size(); ++step)
      EXPECT_NEAR(logged("loss")[step], losses[step], 1e-5) << ranks;
  }
  EXPECT_EQ(train(1, "--steps 1 --data " + at("text") + " " + at("tokens")), 1);
  EXPECT_NE(said.find("got 16-bit tokens, expected bytes as '" + at("text") + "' has"),
            std::string::npos)
      << said;
}

TEST_F(TokenDriverTest, RefusesARestWhereOnlyWholeBatchesAreEvaluated) {
  EXPECT_EQ(train(2, "--steps 1 --data " + at("tokens") + " --val-data " + at("text")), 1);
  EXPECT_NE(said.find("got 11 samples to evaluate on, expected a multiple of the batch, 5: the "
                      "model mixes the samples of a batch, so it can only be evaluated on full "
                      "batches; remove the last 1 samples"),
            std::string::npos)
      << said;
}

TEST_F(TokenDriverTest, RefusesBadTokensBeforeItStarts) {
  fs::resize_file(at("tokens"), fs::file_size(at("tokens")) - 1);
  EXPECT_EQ(train(2, "--steps 1 --data " + at("tokens")), 1);
  EXPECT_NE(said.find("tokens that the header counts"), std::string::npos) << said;
  write("short", "sixteen symbols.");
  EXPECT_EQ(train(2, "--steps 1 --data " + at("text") + " --val-data " + at("short")), 1);
  EXPECT_NE(said.find("got 16 tokens, expected at least 17"), std::string::npos) << said;
}

} // namespace
