//===- ShardTest.cpp - which elements a rank holds of split parameters ----===//

#include "runtime/program/Shard.h"
#include "runtime/train/CheckpointLayout.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace fsdp::rt;

namespace {

constexpr MeshAxis kAxes[] = {{"data", 2}, {"fsdp", 3}, {"tensor", 2}, {"node", 3}};
constexpr int kData = 0, kFsdp = 1, kTensor = 2, kNode = 3;

std::vector<RankPosition> allPositions() {
  std::vector<RankPosition> positions;
  for (int data = 0; data < 2; ++data)
    for (int fsdp = 0; fsdp < 3; ++fsdp)
      for (int tensor = 0; tensor < 2; ++tensor)
        for (int node = 0; node < 3; ++node)
          positions.push_back({kAxes, {data, fsdp, tensor, node}});
  return positions;
}

/// The element of the whole parameter that stands at `index` of the part of the rank there, or
/// nothing for padding.
std::optional<std::size_t> wholeIndex(const Parameter &parameter, const RankPosition &position,
                                      std::size_t index) {
  std::size_t whole = 0, stride = 1;
  for (std::size_t d = parameter.shape.size(); d-- > 0;) {
    const auto extent = static_cast<std::size_t>(parameter.shape[d]);
    const auto part = static_cast<std::size_t>(partExtent(parameter, d));
    std::size_t at = index % part;
    index /= part;
    for (const Split &split : parameter.splits)
      if (static_cast<std::size_t>(split.dim) == d)
        at += static_cast<std::size_t>(position.along(split.axes)) * part;
    if (at >= extent)
      return std::nullopt;
    whole += at * stride;
    stride *= extent;
  }
  return whole;
}

/// What each element of the shard is, one by one: (member, element of the whole), or nothing for
/// padding.
using Place = std::optional<std::pair<std::size_t, std::size_t>>;
std::vector<Place> placesOf(const Storage &storage, const RankPosition &position) {
  std::vector<Place> places(storage.shard.count);
  const auto piece = static_cast<std::size_t>(position.along(storage.axes));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (storage.layout == Layout::Dimension) {
      const Parameter &parameter = storage.members[0];
      std::size_t inner = 1;
      const auto dim = static_cast<std::size_t>(storage.dim);
      for (std::size_t d = dim + 1; d < parameter.shape.size(); ++d)
        inner *= static_cast<std::size_t>(partExtent(parameter, d));
      std::size_t outer = 1;
      for (std::size_t d = 0; d < dim; ++d)
        outer *= static_cast<std::size_t>(partExtent(parameter, d));
      const auto extent = static_cast<std::size_t>(partExtent(parameter, dim));
      const std::size_t local = storage.shard.count / (outer * inner);
      const std::size_t at = i / inner % local + piece * local;
      if (at < extent)
        if (auto whole = wholeIndex(parameter, position,
                                    (i / inner / local * extent + at) * inner + i % inner))
          places[i] = {0, *whole};
      continue;
    }
    const std::size_t at = piece * storage.shard.count + i;
    for (std::size_t m = 0; m < storage.members.size(); ++m) {
      const Parameter &parameter = storage.members[m];
      if (at >= parameter.offset &&
          at < parameter.offset + static_cast<std::size_t>(partElements(parameter)))
        if (auto whole = wholeIndex(parameter, position, at - parameter.offset))
          places[i] = {m, *whole};
    }
  }
  return places;
}

/// The runs are these places, in the order of the shard, and each as long as can be.
void expectRuns(const Storage &storage, const RankPosition &position) {
  const std::vector<Place> places = placesOf(storage, position);
  std::vector<Place> got(places.size());
  std::size_t end = 0;
  for (const Run &run : shardRuns(storage, position)) {
    ASSERT_GT(run.count, 0u);
    ASSERT_GE(run.inShard, end);
    end = run.inShard + run.count;
    ASSERT_LE(end, places.size());
    for (std::size_t i = 0; i < run.count; ++i)
      got[run.inShard + i] = {run.member, run.inParameter + i};
  }
  ASSERT_EQ(got, places);
}

/// Storages of random parameters, with the tables that they point to.
class RandomStorages {
public:
  explicit RandomStorages(unsigned seed) : random(seed) {}

  const Storage &make(Layout layout) {
    // Over the axes that are left split the members in compute; each storage has members of one
    // kind.
    const AxisList storedOver = chance(2) ? AxisList{kFsdp} : AxisList{kData, kFsdp};
    const AxisList split = chance(3)   ? AxisList{kTensor}
                           : chance(2) ? AxisList{kTensor, kNode}
                                       : AxisList{kNode};
    std::deque<Parameter> members;
    const int count = layout == Layout::Dimension ? 1 : 1 + pick(3);
    std::size_t size = 0;
    for (int m = 0; m < count; ++m) {
      members.push_back(parameter(split));
      members.back().offset = size;
      size += static_cast<std::size_t>(partElements(members.back())) +
              static_cast<std::size_t>(pick(2) * 5);
    }
    const Parameter &last = members.back();
    size = last.offset + static_cast<std::size_t>(partElements(last));
    parameters.emplace_back(members.begin(), members.end());
    const Table<Parameter> table(parameters.back().data(), parameters.back().size());
    names.push_back("storage " + std::to_string(names.size()));
    Storage storage{names.back().c_str(), layout, {}, -1, 0, size, 0, {}, {}, table, {}, split};
    if (layout == Layout::Replicated) {
      storage.shard = place(size);
    } else {
      storage.axes = storedOver;
      const std::size_t ranks = storedOver.count == 1 ? 3 : 6;
      if (layout == Layout::Dimension) {
        storage.dim = pick(static_cast<int>(members[0].shape.size()));
        const auto extent =
            static_cast<std::size_t>(partExtent(members[0], static_cast<std::size_t>(storage.dim)));
        storage.shard = place(size / extent * ((extent + ranks - 1) / ranks));
      } else {
        storage.shard = place((size + ranks - 1) / ranks + static_cast<std::size_t>(pick(4)));
      }
    }
    storages.push_back(storage);
    return storages.back();
  }

  std::vector<Storage> storages;

private:
  int pick(int below) { return std::uniform_int_distribution<>(0, below - 1)(random); }
  bool chance(int of) { return pick(of) == 0; }
  Buffer place(std::size_t count) {
    end += count * sizeof(float);
    return ArenaSpan<float>{end - count * sizeof(float), count};
  }

  /// Of one to four dimensions, of which the axes of `split` split one or two, evenly or not; one
  /// that is not split may be padded.
  Parameter parameter(const AxisList &split) {
    const int rank = 1 + pick(4);
    std::int64_t extents[4] = {};
    for (int d = 0; d < rank; ++d)
      extents[d] = 1 + pick(d == rank - 1 ? 7 : 4);
    const Shape shape = rank == 1   ? Shape{extents[0]}
                        : rank == 2 ? Shape{extents[0], extents[1]}
                        : rank == 3 ? Shape{extents[0], extents[1], extents[2]}
                                    : Shape{extents[0], extents[1], extents[2], extents[3]};
    std::map<int, AxisList> byDimension;
    for (int axis : split) {
      AxisList &axes = byDimension[pick(rank)];
      axes.axis[axes.count++] = axis;
    }
    splits.emplace_back();
    for (const auto &[dim, axes] : byDimension) {
      int parts = 1;
      for (int axis : axes)
        parts *= kAxes[axis].size;
      splits.back().push_back(
          {dim, axes, (extents[dim] + parts - 1) / parts + (chance(3) ? pick(4) : 0)});
    }
    if (const int dim = pick(rank); chance(2) && byDimension.count(dim) == 0) {
      const auto after = std::find_if(splits.back().begin(), splits.back().end(),
                                      [dim](const Split &split) { return split.dim > dim; });
      splits.back().insert(after, {dim, {}, extents[dim] + 1 + pick(3)});
    }
    names.push_back("parameter " + std::to_string(names.size()));
    Parameter result{names.back().c_str(),
                     nullptr,
                     shape,
                     shape,
                     0,
                     Initializer::normal(0, 1),
                     true,
                     position++,
                     Table<Split>(splits.back().data(), splits.back().size())};
    return result;
  }

  std::mt19937 random;
  std::deque<std::string> names;
  std::deque<std::vector<Parameter>> parameters;
  std::deque<std::vector<Split>> splits;
  std::size_t end = 0;
  int position = 0;
};

/// Each element of each member is held by one rank, or by one for each place on the axes that split
/// nothing.
void expectEachOnce(const Storage &storage) {
  std::map<std::pair<std::size_t, std::size_t>, int> held;
  for (const RankPosition &position : allPositions()) {
    bool first = true;
    for (int axis = 0; axis < 4; ++axis) {
      bool used = false;
      for (int a : storage.axes)
        used |= a == axis;
      for (int a : storage.splitAxes)
        used |= a == axis;
      first &= used || position.coordinates[static_cast<std::size_t>(axis)] == 0;
    }
    if (first)
      for (const Run &run : shardRuns(storage, position))
        for (std::size_t i = 0; i < run.count; ++i)
          ++held[{run.member, run.inParameter + i}];
  }
  std::size_t size = 0;
  for (const Parameter &parameter : storage.members)
    size += static_cast<std::size_t>(elements(parameter.shape));
  EXPECT_EQ(held.size(), size);
  for (const auto &[element, times] : held)
    ASSERT_EQ(times, 1) << storage.members[element.first].name << ' ' << element.second;
}

TEST(ShardTest, ASplitColumnOfAFlatUnit) {
  // 2 x 3 of which a rank computes with two columns: [0, 2) or [2, 4), the last one padding; before
  // it one that is whole.
  static constexpr Split splits[] = {{1, {kTensor}, 2}};
  static constexpr Parameter members[] = {
      {"bias", nullptr, {1}, {1}, 0, Initializer::zeros(), false},
      {"weight", nullptr, {2, 3}, {2, 3}, 1, Initializer::zeros(), true, 0, splits}};
  const Storage storage{"unit", Layout::Flat,           {kFsdp}, 0,       0,  5,
                        0,      ArenaSpan<float>{0, 3}, {},      members, {}, {kTensor}};
  const auto runs = [&](int fsdp, int tensor) {
    std::string text;
    for (const auto &run : shardRuns(storage, {kAxes, {0, fsdp, tensor, 0}}))
      text += std::to_string(run.member) + ": " + std::to_string(run.inShard) + " <- " +
              std::to_string(run.inParameter) + " x " + std::to_string(run.count) + "; ";
    return text;
  };
  EXPECT_EQ(runs(0, 0), "0: 0 <- 0 x 1; 1: 1 <- 0 x 2; ");
  EXPECT_EQ(runs(1, 0), "1: 0 <- 3 x 2; ");
  EXPECT_EQ(runs(0, 1), "0: 0 <- 0 x 1; 1: 1 <- 2 x 1; ");
  EXPECT_EQ(runs(1, 1), "1: 0 <- 5 x 1; ");
  EXPECT_EQ(runs(2, 1), "");
}

TEST(ShardTest, RunsOfRandomSplitsAreThoseOfEachElement) {
  int padded = 0, unsplit = 0, twoDimensions = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    RandomStorages made(seed);
    const Storage &storage = made.make(
        std::vector<Layout>{Layout::Flat, Layout::Dimension, Layout::Replicated}[seed % 3]);
    for (const RankPosition &position : allPositions()) {
      expectRuns(storage, position);
      if (HasFatalFailure())
        return;
    }
    expectEachOnce(storage);
    for (const Parameter &parameter : storage.members) {
      twoDimensions += parameter.splits.size() > 1;
      for (const Split &split : parameter.splits)
        (split.axes.count == 0 ? unsplit : padded) +=
            parameter.shape[static_cast<std::size_t>(split.dim)] % split.part != 0;
    }
  }
  EXPECT_GT(padded, 100);
  EXPECT_GT(unsplit, 50);
  EXPECT_GT(twoDimensions, 100);
}

TEST(ShardTest, InitialValuesOfSplitParametersAreThoseOfWholeOnes) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomStorages made(seed);
    const Storage &storage = made.make(
        std::vector<Layout>{Layout::Flat, Layout::Dimension, Layout::Replicated}[seed % 3]);
    std::vector<std::vector<float>> whole;
    for (const Parameter &parameter : storage.members) {
      const Parameter unsplit{parameter.name, nullptr, parameter.shape, parameter.shape, 0,
                              parameter.init, true};
      const auto count = static_cast<std::size_t>(elements(parameter.shape));
      whole.emplace_back(count);
      initializeShard({"whole",
                       Layout::Replicated,
                       {},
                       -1,
                       0,
                       count,
                       0,
                       ArenaSpan<float>{0, count},
                       {},
                       Table<Parameter>(&unsplit, 1)},
                      {kAxes, {0, 0, 0, 0}}, 7, whole.back().data());
    }
    for (const RankPosition &position : allPositions()) {
      std::vector<float> shard(storage.shard.count, -99);
      initializeShard(storage, position, 7, shard.data());
      const std::vector<Place> places = placesOf(storage, position);
      for (std::size_t i = 0; i < shard.size(); ++i)
        ASSERT_EQ(shard[i], places[i] ? whole[places[i]->first][places[i]->second] : 0.0f) << i;
    }
  }
}

TEST(ShardTest, RanksSaveEveryElementOfSplitParametersOnce) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomStorages made(seed);
    for (Layout layout : {Layout::Flat, Layout::Dimension, Layout::Replicated, Layout::Flat})
      made.make(layout);
    Program program{};
    program.name = "test";
    program.axes = kAxes;
    program.storages = Table<Storage>(made.storages.data(), made.storages.size());
    const CheckpointLayout layout(program);
    ASSERT_EQ(layout.files().size(), 1u);
    std::vector<std::vector<int>> written;
    for (const CheckpointTensor &tensor : layout.files()[0].tensors)
      written.emplace_back(tensor.elements);
    for (const RankPosition &position : allPositions())
      for (const ShardShare &share : layout.sharesOf(position.coordinates)) {
        const std::vector<Place> places = placesOf(*share.storage, position);
        for (const CheckpointPiece &piece : share.pieces)
          for (std::size_t i = 0; i < piece.count; ++i) {
            const Place &place = places[piece.inShard + i];
            ASSERT_TRUE(place) << "padding is not saved";
            ASSERT_EQ(layout.files()[0].tensors[piece.tensor].name,
                      share.storage->members[place->first].name);
            ASSERT_EQ(place->second, piece.inTensor + i);
            ++written[piece.tensor][piece.inTensor + i];
          }
      }
    for (std::size_t t = 0; t < written.size(); ++t)
      for (int times : written[t])
        ASSERT_EQ(times, 1) << layout.files()[0].tensors[t].name;
  }
}

} // namespace
