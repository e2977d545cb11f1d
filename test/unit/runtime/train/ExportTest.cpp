#include "runtime/job/Bootstrap.h"
#include "runtime/program/Shard.h"
#include "runtime/train/Exports.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

// Two rows of three: stored over both axes, over one of them along a dimension, and everywhere. The
// model declares the parameters in another order: e, c, a, d, b.
constexpr MeshAxis kAxes[] = {{"data", 2}, {"fsdp", 3}};
constexpr CommunicatorSpec kCommunicators[] = {{"all", {0, 1}}, {"fsdp", {1}}, {"data", {0}}};
constexpr const char *kStreams[] = {"compute"}; // each has the communicators
constexpr Parameter kFlat[] = {
    {"a", nullptr, {7, 5}, {5, 7}, 0, Initializer::normal(0, 1), true, 2},
    {"b", nullptr, {3}, {3}, 35, Initializer::uniform(-1, 1), false, 4}};
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

// Split in compute: over rows or columns, evenly or not, in one dimension or in two; or padded,
// split or not.
constexpr Split kColumns[] = {{1, {0}, 3}}, kRows[] = {{0, {0}, 3}};
constexpr Split kBoth[] = {{0, {1}, 2}, {1, {0}, 2}}, kDeep[] = {{1, {0, 1}, 1}};
constexpr Split kMoreRows[] = {{0, {}, 4}}, kWiderParts[] = {{0, {0}, 4}};
constexpr Parameter kSplitFlat[] = {
    {"f", nullptr, {3, 5}, {15}, 0, Initializer::normal(0, 1), true, 0, kColumns},
    {"g", nullptr, {5}, {5}, 9, Initializer::uniform(-1, 1), false, 3, kRows}};
constexpr Parameter kSplitCut[] = {
    {"h", nullptr, {5, 2, 4}, {10, 4}, 0, Initializer::normal(0, 1), true, 2, kRows}};
constexpr Parameter kSplitWhole[] = {
    {"i", nullptr, {4, 3}, {4, 3}, 0, Initializer::normal(0, 1), true, 1, kBoth},
    {"j", nullptr, {2, 4}, {8}, 4, Initializer::normal(0, 1), true, 4, kDeep}};
constexpr Parameter kPaddedFlat[] = {
    {"k", nullptr, {3, 2}, {6}, 0, Initializer::normal(0, 1), true, 5, kMoreRows},
    {"l", nullptr, {2}, {2}, 8, Initializer::uniform(-1, 1), false, 6}};
constexpr Parameter kPaddedWhole[] = {
    {"m", nullptr, {5}, {5}, 0, Initializer::normal(0, 1), true, 7, kWiderParts}};
constexpr Storage kSplit[] = {
    // Parts of 3 x 3 and 3, in pieces of 5 over 3 ranks; parts of 3 x 2 x 4, four of which are cut
    // in pieces of 2.
    {"flat", Layout::Flat, {1}, 1, 0, 12, 0, ArenaSpan<float>{0, 5}, {}, kSplitFlat, {}, {0}},
    {"cut",
     Layout::Dimension,
     {1},
     1,
     2,
     24,
     2,
     ArenaSpan<float>{64, 3 * 2 * 2},
     {},
     kSplitCut,
     {},
     {0}},
    {"whole",
     Layout::Replicated,
     {},
     -1,
     0,
     6,
     3,
     ArenaSpan<float>{128, 6},
     {},
     kSplitWhole,
     {},
     {0, 1}},
    // 4 x 2, of which the last row is padding, and 2, in pieces of 4; two parts of 4 for 5
    // elements.
    {"padded", Layout::Flat, {1}, 1, 0, 10, 5, ArenaSpan<float>{192, 4}, {}, kPaddedFlat},
    {"parts",
     Layout::Replicated,
     {},
     -1,
     0,
     4,
     7,
     ArenaSpan<float>{224, 4},
     {},
     kPaddedWhole,
     {},
     {0}},
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
  for (const Storage &storage : storages)
    options.arenaBytes =
        std::max(options.arenaBytes, storage.shard.offset + storage.shard.count * sizeof(float));
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

void initialize(const Storage &storage, const RankPosition &position, float *shard) {
  initializeShard(storage, position, 3, shard);
}

/// The names of a file's tensors, as they follow in it.
std::string namesIn(const std::string &path) {
  std::string names;
  const SafetensorsFile file(path);
  for (const FileTensor &tensor : file.tensors())
    names += tensor.name;
  return names;
}

/// Every parameter has the values that it has whole, on one rank; loaded and exported again, the
/// file is the same.
void expectGlobal(const TemporaryFile &exported, Table<Storage> storages) {
  InitialWeights file({{"", exported.path}});
  EXPECT_TRUE(file.match(program(storages)).empty());
  for (const Storage &storage : storages)
    for (const Parameter &parameter : storage.members) {
      Parameter whole = parameter;
      whole.offset = 0;
      whole.splits = {};
      const auto count = static_cast<std::size_t>(elements(whole.shape));
      std::vector<float> expected(count), got(count);
      initialize({"alone",
                  Layout::Replicated,
                  {},
                  -1,
                  0,
                  count,
                  0,
                  ArenaSpan<float>{0, count},
                  {},
                  Table<Parameter>(&whole, 1)},
                 {kAxes, {0, 0}}, expected.data());
      file.find(parameter.name)->readFloats(0, count, got.data());
      EXPECT_EQ(got, expected) << parameter.name;
    }
  TemporaryFile again("again");
  const auto load = [&](const Storage &storage, const RankPosition &position, float *shard) {
    loadShard(file, storage, position, 0, shard);
  };
  ASSERT_EQ(exportFrom(again.path, load, storages), 0);
  EXPECT_EQ(exported.read(), again.read());
}

TEST(ExportTest, EveryLayoutBecomesGlobalTensorsAndComesBack) {
  TemporaryFile file("file");
  ASSERT_EQ(exportFrom(file.path, initialize), 0);
  EXPECT_EQ(namesIn(file.path), "ecadb");
  const WeightFiles weights(file.path);
  EXPECT_EQ(weights.find("a")->shape, (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(weights.find("c")->shape, (std::vector<std::int64_t>{8, 3}));
  expectGlobal(file, kStorages);
}

TEST(ExportTest, SplitParametersBecomeGlobalTensorsAndComeBack) {
  TemporaryFile file("file");
  ASSERT_EQ(exportFrom(file.path, initialize, kSplit), 0);
  EXPECT_EQ(namesIn(file.path), "fihgjklm");
  EXPECT_EQ(WeightFiles(file.path).find("h")->shape, (std::vector<std::int64_t>{10, 4}));
  expectGlobal(file, kSplit);
}

TEST(ExportTest, LargePartsAreGatheredInSeveralSteps) {
  // Two parts of 600 rows of 1001 columns; 2^20 elements, of all parts, at once.
  static constexpr Split columns[] = {{1, {0}, 1001}}, rows[] = {{0, {0}, 500}};
  static constexpr Parameter large[] = {
      {"k", nullptr, {600, 2001}, {600, 2001}, 0, Initializer::normal(0, 1), true, 0, columns},
      {"l", nullptr, {1000}, {1000}, 600 * 1001, Initializer::normal(0, 1), true, 1, rows}};
  constexpr std::size_t count = 600 * 1001 + 500;
  static constexpr Storage storages[] = {{"large",
                                          Layout::Flat,
                                          {1},
                                          1,
                                          0,
                                          count,
                                          0,
                                          ArenaSpan<float>{0, (count + 2) / 3},
                                          {},
                                          large,
                                          {},
                                          {0}}};
  TemporaryFile file("file");
  ASSERT_EQ(exportFrom(file.path, initialize, storages), 0);
  expectGlobal(file, storages);
}

TEST(ExportTest, AFailureEndsEveryRank) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(exportFrom("/nowhere/out", [](const Storage &, const RankPosition &, float *) {}), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot create '/nowhere/out'"),
            std::string::npos);
}

} // namespace
