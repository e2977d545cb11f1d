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
constexpr CommunicatorSpec kCommunicators[] = {{"all", {0, 1}}, {"fsdp", {1}}, {"data", {0}}};
constexpr const char *kStreams[] = {"compute"}; // each has the communicators
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

// Split in compute: over rows or columns, evenly or not, in one dimension or in two.
constexpr Split kColumns[] = {{1, {0}, 2}}, kRows[] = {{0, {0}, 2}};
constexpr Split kBoth[] = {{0, {1}, 3}, {1, {0}, 2}}, kDeep[] = {{1, {0, 1}, 6}};
constexpr Parameter kSplitFlat[] = {
    {"f", nullptr, {3, 5}, {15}, 0, Initializer::normal(0, 1), true, 0, kColumns},
    {"g", nullptr, {5}, {5}, 9, Initializer::uniform(-1, 1), false, 3, kRows}};
constexpr Parameter kSplitCut[] = {
    {"h", nullptr, {5, 2, 4}, {10, 4}, 0, Initializer::normal(0, 1), true, 2, kRows}};
constexpr Parameter kSplitWhole[] = {
    {"i", nullptr, {4, 3}, {4, 3}, 0, Initializer::normal(0, 1), true, 1, kBoth},
    {"j", nullptr, {2, 4}, {8}, 4, Initializer::normal(0, 1), true, 4, kDeep}};
constexpr Storage kSplit[] = {
    // Parts of 3 x 3 and 3, in pieces of 5 over 3 ranks; parts of 3 x 2 x 4, four of which are cut in pieces of 2.
    {"flat", Layout::Flat, {1}, 1, 0, 12, 0, ArenaSpan<float>{0, 5}, {}, kSplitFlat, {}, {0}, 2},
    {"cut", Layout::Dimension, {1}, 1, 2, 24, 2, ArenaSpan<float>{64, 3 * 2 * 2}, {}, kSplitCut, {}, {0}, 2},
    {"whole", Layout::Replicated, {}, -1, 0, 6, 3, ArenaSpan<float>{128, 6}, {}, kSplitWhole, {}, {0, 1}, 0},
};

Program program(Table<Storage> storages = kStorages) {
  Program program{};
  program.axes = kAxes;
  program.communicators = kCommunicators;
  program.streams = kStreams;
  program.storages = storages;
  return program;
}

/// Runs `fill(storage, position, shard)` for every storage on six ranks, and exports to `path`.
template <typename Fill>
int exportFrom(const std::string &path, Fill fill, Table<Storage> storages = kStorages) {
  const Program tables = program(storages);
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

TEST(ExportTest, SplitParametersBecomeGlobalTensorsAndComeBack) {
  TemporaryFile first("first"), second("second");
  ASSERT_EQ(exportFrom(
                first.path,
                [](const Storage &storage, const RankPosition &position, float *shard) {
                  initializeShard(storage, position, 3, shard);
                },
                kSplit),
            0);
  const WeightFiles file(first.path);
  EXPECT_EQ(checkWeights(file, program(kSplit)), "");
  EXPECT_EQ(file.find("h")->shape, (std::vector<std::int64_t>{10, 4}));
  std::string order;
  const SafetensorsFile asWritten(first.path);
  for (const FileTensor &tensor : asWritten.tensors())
    order += tensor.name;
  EXPECT_EQ(order, "fihgj");
  // Whole, on one rank, they have the same values.
  for (const Storage &storage : kSplit)
    for (const Parameter &parameter : storage.members) {
      Parameter whole = parameter;
      whole.offset = 0;
      whole.splits = {};
      const auto count = static_cast<std::size_t>(elements(whole.shape));
      std::vector<float> expected(count), got(count);
      initializeShard({"alone", Layout::Replicated, {}, -1, 0, count, 0, ArenaSpan<float>{0, count}, {},
                       Table<Parameter>(&whole, 1)},
                      {kAxes, {0, 0}}, 3, expected.data());
      file.find(parameter.name)->readFloats(0, count, got.data());
      EXPECT_EQ(got, expected) << parameter.name;
    }
  ASSERT_EQ(exportFrom(
                second.path,
                [&](const Storage &storage, const RankPosition &position, float *shard) {
                  loadShard(file, storage, position, shard);
                },
                kSplit),
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
