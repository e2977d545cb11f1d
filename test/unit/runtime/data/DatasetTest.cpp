#include "runtime/data/OpenDataset.h"
#include "runtime/train/InitialWeights.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace fsdp::rt;

namespace {

constexpr std::int64_t kBatch = 4, kRows = 3;
constexpr Input kInputs[] = {
    {"x", {2}, 0, ArenaSpan<float>{0, kRows * 2}, kBatch, kRows, {0}, 0},
    {"label", {}, 0, ArenaSpan<std::int32_t>{64, kRows}, kBatch, kRows, {0}, 3},
};

const std::string kHeader = R"({"x":{"dtype":"F32","shape":[5,2],"data_offsets":[0,40]},)"
                            R"("label":{"dtype":"I64","shape":[5],"data_offsets":[40,80]}})";

std::string data(float second = 1, std::int64_t third = 2) {
  return bytesOf({0.0f, second, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f}) +
         bytesOf<std::int64_t>({0, 1, third, 0, 1});
}

std::string complaint(const std::string &header, const std::string &bytes) {
  TemporaryFile file;
  file.write(safetensors(header, bytes));
  return messageOf([&] { openDataset(file.path, kInputs); });
}

void refused(const std::string &header, const std::string &bytes, const std::string &why) {
  const std::string message = complaint(header, bytes);
  EXPECT_NE(message.find(why), std::string::npos) << message;
  EXPECT_NE(message.find("/file'"), std::string::npos) << message;
}

TEST(DatasetTest, ReadsSamplesInTheTypesOfTheInputs) {
  TemporaryFile file;
  file.write(safetensors(kHeader, data()));
  const auto dataset = openDataset(file.path, kInputs);
  EXPECT_EQ(dataset->samples(), 5);
  float x[2];
  dataset->read(0, 3, x);
  EXPECT_EQ(x[0], 6);
  EXPECT_EQ(x[1], 7);
  std::int32_t label;
  dataset->read(1, 2, &label);
  EXPECT_EQ(label, 2);
}

// Batch of 4 over two ranks of 3 rows: the second rank has sample 3 of the batch and two repeats of
// it.
TEST(DatasetTest, BatchesWrapAndRepeatTheLastSample) {
  TemporaryFile file;
  file.write(safetensors(kHeader, data()));
  const auto dataset = openDataset(file.path, kInputs);
  float row[2], slice[6];
  const auto firsts = [&](std::int64_t first, int coordinate) {
    readBatch(*dataset, SampleOrder(), kInputs[0], 0, first,
              {coordinate * kRows, std::min((coordinate + 1) * kRows, kBatch)}, row, slice);
    return std::vector<float>{slice[0], slice[2], slice[4]};
  };
  EXPECT_EQ(firsts(0, 0), (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(firsts(0, 1), (std::vector<float>{6, 6, 6}));
  EXPECT_EQ(firsts(4, 0), (std::vector<float>{8, 0, 2}));
  EXPECT_EQ(firsts(4, 1), (std::vector<float>{4, 4, 4}));
  EXPECT_EQ(firsts(3, 5), (std::vector<float>{2, 2, 2})) << "a rank that holds repeats only";
}

// A batch of 10 over three ranks of 4 samples, in three parts of 2: the last part has repeats only,
// and the third rank has two samples.
TEST(DatasetTest, PartsTakeARanksSamplesOneAfterAnother) {
  TemporaryFile file;
  file.write(safetensors(kHeader, data()));
  const Input input{"x",        {2}, 0, ArenaSpan<float>{0, 4}, /*batch=*/10,
                    /*rows=*/2, {0}, 0, Source::Tensor,         /*parts=*/3};
  const Input inputs[] = {input};
  const auto dataset = openDataset(file.path, inputs);
  float row[2], slice[4];
  std::vector<std::int64_t> firsts[3];
  for (int coordinate = 0; coordinate < 3; ++coordinate) {
    LoadPosition at;
    for (int load = 0; load < 4; ++load, at.next(input)) {
      EXPECT_EQ(at.first, load / 3 * 10);
      EXPECT_EQ(at.part, load % 3);
      readBatch(*dataset, SampleOrder(), input, 0, at.first,
                rowsOf(input, /*ranks=*/3, coordinate, at.part), row, slice);
      for (float value : {slice[0], slice[2]}) // twice the sample, of which there are five
        firsts[coordinate].push_back(static_cast<std::int64_t>(value) / 2);
    }
  }
  const auto of = [](std::vector<std::int64_t> positions) {
    for (std::int64_t &position : positions)
      position %= 5;
    return positions;
  };
  EXPECT_EQ(firsts[0], of({0, 1, 2, 3, 3, 3, 10, 11}));
  EXPECT_EQ(firsts[1], of({4, 5, 6, 7, 7, 7, 14, 15}));
  EXPECT_EQ(firsts[2], of({8, 9, 9, 9, 9, 9, 18, 19}));
}

TEST(DatasetTest, ShufflingPermutesEachEpoch) {
  for (const std::int64_t samples : {1, 2, 5, 64, 65, 1797}) {
    const SampleOrder order(true, 7), same(true, 7), other(true, 8);
    std::vector<std::int64_t> epochs[2];
    bool seedMatters = false;
    for (std::int64_t position = 0; position < 2 * samples; ++position) {
      const std::int64_t sample = order.sampleAt(position, samples);
      EXPECT_EQ(sample, same.sampleAt(position, samples));
      seedMatters |= sample != other.sampleAt(position, samples);
      epochs[position / samples].push_back(sample);
    }
    if (samples >= 5) {
      EXPECT_TRUE(seedMatters);
      EXPECT_NE(epochs[0], epochs[1]);
      EXPECT_FALSE(std::is_sorted(epochs[0].begin(), epochs[0].end()));
    }
    for (auto &epoch : epochs) {
      std::sort(epoch.begin(), epoch.end());
      for (std::int64_t i = 0; i < samples; ++i)
        ASSERT_EQ(epoch[std::size_t(i)], i) << samples;
    }
  }
}

TEST(DatasetTest, SamplesMayBeInAnyDimension) {
  TemporaryFile file;
  file.write(safetensors(kHeader, data()));
  const Input columns{"x", {2}, 1, ArenaSpan<float>{0, 6}, kBatch, kRows, {0}, 0};
  const Input inputs[] = {columns};
  const auto dataset = openDataset(file.path, inputs);
  float row[2], slice[6];
  readBatch(*dataset, SampleOrder(), columns, 0, 0, {0, kRows}, row, slice);
  EXPECT_EQ((std::vector<float>(slice, slice + 6)), (std::vector<float>{0, 2, 4, 1, 3, 5}));
}

TEST(DatasetTest, RefusesMismatchedTensors) {
  EXPECT_EQ(complaint(kHeader, data()), "no error");
  const auto with = [](std::string from, std::string to) {
    std::string header = kHeader;
    return header.replace(header.find(from), from.size(), to);
  };
  refused(with("\"x\"", "\"y\""), data(),
          "tensor 'x': got only 'y', 'label', expected one tensor for each input");
  refused(with("F32\",\"shape\":[5,2]", "I64\",\"shape\":[5]"), data(),
          "tensor 'x': got dtype I64, expected F32, BF16, F16 or F64");
  refused(with("I64\",\"shape\":[5]", "F64\",\"shape\":[5]"), data(),
          "tensor 'label': got dtype F64, expected I32 or I64");
  refused(with("[5,2]", "[10]"), data(), "tensor 'x': got shape [10], expected [samples, 2]");
  refused(with("[5,2]", "[2,5]"), data(), "tensor 'x': got shape [2, 5], expected [samples, 2]");
  refused(with("\"shape\":[5],", "\"shape\":[5,1],"), data(),
          "tensor 'label': got shape [5, 1], expected [samples]");
  refused(R"({"x":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]},)"
          R"("label":{"dtype":"I64","shape":[5],"data_offsets":[32,72]}})",
          data().substr(0, 72), "tensor 'label': got 5 samples, expected 4 as 'x' has");
  refused(R"({"x":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]},)"
          R"("label":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}})",
          "", "got no samples, expected at least one");
}

TEST(DatasetTest, RefusesATokenFileForTensors) {
  std::string tokens(1024 + 2 * 8, '\0');
  const std::int32_t header[] = {20240520, 1, 8};
  std::memcpy(&tokens[0], header, sizeof(header));
  TemporaryFile file;
  file.write(tokens);
  EXPECT_NE(messageOf([&] {
              openDataset(file.path, kInputs);
            }).find("got a token file, expected a safetensors file with one tensor for each input"),
            std::string::npos);
}

TEST(DatasetTest, RefusesValuesThatAreWrong) {
  refused(kHeader, data(std::nanf("")),
          "tensor 'x': got nan at sample 0, element 1, expected finite numbers; clean the data");
  refused(kHeader, data(INFINITY), "tensor 'x': got inf at sample 0, element 1");
  refused(kHeader, data(1, 3),
          "tensor 'label': got 3 at sample 2, element 0, expected values from 0 to 2");
  refused(kHeader, data(1, -1), "tensor 'label': got -1 at sample 2");
  refused(kHeader, data(1, std::int64_t(1) << 40), "tensor 'label': got 1099511627776 at sample 2");
}

constexpr Parameter kMembers[] = {
    {"kernel", "old.kernel", {2, 3}, {6}, 0, Initializer::zeros(), true},
    {"bias", nullptr, {3}, {3}, 6, Initializer::zeros(), false}};
constexpr MeshAxis kAxes[] = {{"fsdp", 2}};
constexpr Storage kStorages[] = {
    {"unit", Layout::Flat, {0}, 0, 0, 9, 0, ArenaSpan<float>{0, 5}, {}, kMembers}};

Program program() {
  Program program{};
  program.storages = kStorages;
  return program;
}

std::string weightsHeader(const std::string &name, const std::string &shape) {
  return "{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":" + shape +
         R"(,"data_offsets":[0,24]},"bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]}})";
}

std::string nine(float last = 9) {
  return bytesOf({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, last});
}

TEST(WeightsTest, ShardsAreFilledFromGlobalTensors) {
  for (const char *name : {"kernel", "old.kernel"}) {
    TemporaryFile file;
    file.write(safetensors(weightsHeader(name, "[6]"), nine()));
    InitialWeights weights({{"", file.path}});
    EXPECT_TRUE(weights.match(program()).empty());
    std::vector<float> shard(5, -1);
    loadShard(weights, kStorages[0], {kAxes, {0}}, 0, shard.data());
    EXPECT_EQ(shard, (std::vector<float>{1, 2, 3, 4, 5}));
    loadShard(weights, kStorages[0], {kAxes, {1}}, 0, shard.data());
    EXPECT_EQ(shard, (std::vector<float>{6, 7, 8, 9, 0}));
  }
}

TEST(WeightsTest, RefusesMismatchedTensors) {
  const auto complaint = [](const std::string &header, const std::string &bytes) {
    TemporaryFile file;
    file.write(safetensors(header, bytes));
    InitialWeights weights({{"", file.path}});
    return messageOf([&] { weights.match(program()); });
  };
  const auto refused = [&](const std::string &message, const std::string &why) {
    EXPECT_NE(message.find(why), std::string::npos) << message;
  };
  refused(
      complaint(weightsHeader("kernels", "[6]"), nine()),
      "got no tensor for 1 parameter(s): 'kernel'; expected one for every parameter of the model, "
      "which does not use: 'kernels'");
  refused(complaint(weightsHeader("kernel", "[2,3]"), nine()),
          "parameter 'kernel': got shape [2, 3], expected [6]");
  std::string integers = weightsHeader("kernel", "[6]");
  integers.replace(integers.find("F32"), 3, "I32");
  refused(complaint(integers, nine()), "parameter 'kernel': got dtype I32, expected F32");
  refused(complaint(weightsHeader("kernel", "[6]"), nine(INFINITY)),
          "parameter 'bias': got a value that is not finite at element 2");
}

TEST(WeightsTest, RemarksOnTensorsThatTheModelLacks) {
  TemporaryFile file;
  std::string header = weightsHeader("kernel", "[6]");
  header.insert(1, R"("more":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)");
  file.write(safetensors(header, nine()));
  InitialWeights weights({{"", file.path}});
  const std::vector<std::string> remarks = weights.match(program());
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks.front().find("has 1 tensor(s) that the model does not use: 'more'"),
            std::string::npos);
}

} // namespace
