#include "runtime/program/Shard.h"
#include "runtime/train/Weights.h"
#include "test/unit/runtime/TemporaryFile.h"

#include <gtest/gtest.h>

#include <vector>

using namespace fsdp::rt;

namespace {

// Two rows of three: stored over both axes, over one of them along a dimension, and everywhere. The
// model declares the parameters in another order: e, c, a, d, b.
constexpr MeshAxis kAxes[] = {{"data", 2}, {"fsdp", 3}};
constexpr CommunicatorSpec kCommunicators[] = {{"all", {0, 1}}, {"fsdp", {1}}};
constexpr Parameter kFlat[] = {{"a", nullptr, {7, 5}, {5, 7}, 0, Initializer::normal(0, 1), true,
                                2},
                               {"b", nullptr, {3}, {3}, 35, Initializer::uniform(-1, 1), false,
                                4}};
constexpr Parameter kCut[] = {
    {"c", nullptr, {2, 4, 3}, {8, 3}, 0, Initializer::normal(0, 1), true, 1}};
constexpr Parameter kWhole[] = {{"d", nullptr, {2}, {2}, 0, Initializer::normal(0, 1), false, 3},
                                {"e", nullptr, {}, {}, 2, Initializer::normal(0, 1), false, 0}};
constexpr Storage kStorages[] = {
    // 38 elements over 6 ranks, in pieces of 16: the last ones hold padding only.
    {"flat", Layout::Flat, {0, 1}, 0, 0, 38, 0, ArenaSpan<float>{0, 16}, {}, kFlat},
    // Four columns over 3 ranks, in pieces of 2.
    {"cut", Layout::Dimension, {1}, 1, 1, 24, 2, ArenaSpan<float>{64, 2 * 2 * 3}, {}, kCut},
    {"whole", Layout::Replicated, {}, -1, 0, 3, 3, ArenaSpan<float>{128, 3}, {}, kWhole},
};

Program program() {
  Program program{};
  program.axes = kAxes;
  program.communicators = kCommunicators;
  program.storages = kStorages;
  return program;
}

/// Runs `fill(storage, position, shard)` for every storage on six ranks, and exports to `path`.
template <typename Fill> int exportFrom(const std::string &path, Fill fill) {
  const Program tables = program();
  JobOptions options;
  options.arenaBytes = 256;
  options.communicators = tables.communicators;
  return runRanks(Mesh(tables.axes), options, [&](Job &job) {
    const std::unique_ptr<Device> device = target::open(tables, job);
    for (const Storage &storage : tables.storages)
      device->write(storage.shard, [&](float *shard) {
        fill(storage, {tables.axes, job.mesh().coordinates(job.rank())}, shard);
      });
    exportWeights(path, tables, *device);
    return 0;
  });
}

TEST(ExportTest, EveryLayoutBecomesGlobalTensorsAndComesBack) {
  TemporaryFile first("first"), second("second");
  ASSERT_EQ(
      exportFrom(first.path, [](const Storage &storage, const RankPosition &position,
                                float *shard) { initializeShard(storage, position, 3, shard); }),
      0);
  const WeightFiles file(first.path);
  EXPECT_EQ(checkWeights(file, program()), "");
  EXPECT_EQ(file.find("a")->shape, (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(file.find("c")->shape, (std::vector<std::int64_t>{8, 3}));
  std::string order;
  const SafetensorsFile asWritten(first.path);
  for (const FileTensor &tensor : asWritten.tensors())
    order += tensor.name;
  EXPECT_EQ(order, "ecadb");

  // One rank that holds everything has the same values.
  for (const Storage &storage : kStorages) {
    Storage alone = storage;
    alone.layout = Layout::Replicated;
    alone.shard = ArenaSpan<float>{0, storage.size};
    std::vector<float> expected(storage.size), got(storage.size);
    initializeShard(alone, {kAxes, {0, 0}}, 3, expected.data());
    for (const Parameter &parameter : storage.members)
      file.find(parameter.name)
          ->readFloats(0, std::size_t(elements(parameter.shape)), got.data() + parameter.offset);
    EXPECT_EQ(got, expected) << storage.name;
  }

  ASSERT_EQ(
      exportFrom(second.path, [&](const Storage &storage, const RankPosition &position,
                                  float *shard) { loadShard(file, storage, position, shard); }),
      0);
  EXPECT_EQ(first.read(), second.read());
}

TEST(ExportTest, AFailureEndsEveryRank) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(exportFrom("/nowhere/out", [](const Storage &, const RankPosition &, float *) {}), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot create '/nowhere/out'"),
            std::string::npos);
}

} // namespace
