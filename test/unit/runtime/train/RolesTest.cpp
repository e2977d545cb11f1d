//===- RolesTest.cpp - who holds what where ranks run different programs --===//

#include "runtime/program/Roles.h"
#include "runtime/train/CheckpointLayout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

/// The table of a vector, which outlives it.
template <class T> Table<T> tableOf(const std::vector<T> &values) {
  return {values.data(), values.size()};
}

constexpr MeshAxis kAxes[] = {{"data", 2}, {"pipeline", 3}, {"fsdp", 2}};
constexpr int kSecond[] = {1}, kThird[] = {2}, kEnds[] = {0, 2};
constexpr Parameter kMembers[] = {
    {.name = "w", .shape = {4}, .fileShape = {4}, .init = Initializer::zeros()}};

/// Flat over `fsdp`; two elements a rank.
Storage storageOf(Table<int> roles) {
  Storage storage{};
  storage.name = "w.flat";
  storage.layout = Layout::Flat;
  storage.axes = {2};
  storage.size = 4;
  storage.shard = ArenaSpan<float>{64, 2};
  storage.members = kMembers;
  storage.roles = roles;
  return storage;
}

Program withRoles(Table<int> own = {}) {
  Program program{};
  program.name = "train";
  program.axes = kAxes;
  program.roleAxes = {1};
  program.roles = own;
  return program;
}

RankPosition at(int data, int pipeline, int fsdp) { return {kAxes, {data, pipeline, fsdp}}; }

void expectReplica(const std::optional<Replica> &got, std::size_t index, std::size_t count) {
  ASSERT_TRUE(got);
  EXPECT_EQ(got->index, index);
  EXPECT_EQ(got->count, count);
}

TEST(RolesTest, StoragesOfAllRolesAreOnAllRanks) {
  const Program program = withRoles();
  const Storage storage = storageOf({});
  expectReplica(replicaAt(program, storage, at(0, 0, 1)), 0, 6);
  expectReplica(replicaAt(program, storage, at(0, 2, 0)), 2, 6);
  expectReplica(replicaAt(program, storage, at(1, 1, 0)), 4, 6);
}

TEST(RolesTest, OthersOwnNothingOfAStorage) {
  const Program program = withRoles();
  const Storage one = storageOf(kSecond), ends = storageOf(kEnds);
  EXPECT_FALSE(replicaAt(program, one, at(0, 0, 0)));
  expectReplica(replicaAt(program, one, at(0, 1, 1)), 0, 2);
  expectReplica(replicaAt(program, one, at(1, 1, 0)), 1, 2);
  EXPECT_FALSE(replicaAt(program, ends, at(1, 1, 1)));
  expectReplica(replicaAt(program, ends, at(1, 0, 1)), 1, 4);
  expectReplica(replicaAt(program, ends, at(0, 2, 1)), 2, 4);
  expectReplica(replicaAt(program, ends, at(1, 2, 0)), 3, 4);
}

TEST(RolesTest, InputsAreLoadedByTheirRoles) {
  const Program program = withRoles();
  Input input{};
  input.axes = {0, 2}; // samples
  expectReplica(replicaAt(program, input, at(1, 2, 1)), 2, 3);
  input.roles = kThird;
  EXPECT_FALSE(replicaAt(program, input, at(1, 0, 1)));
  expectReplica(replicaAt(program, input, at(1, 2, 1)), 0, 1);
}

TEST(RolesTest, EachRankRunsTheProgramOfItsRole) {
  Program ends = withRoles(kEnds), middle = withRoles(kSecond);
  ends.arenaBytes = 100;
  middle.arenaBytes = 300;
  ends.digest = 7;
  middle.digest = 9;
  const Program *const programs[] = {&ends, &middle};
  ends.programs = middle.programs = programs;
  EXPECT_EQ(&programAt(ends, at(0, 0, 1)), &ends);
  EXPECT_EQ(&programAt(ends, at(1, 1, 0)), &middle);
  EXPECT_EQ(&programAt(ends, at(1, 2, 0)), &ends);
  EXPECT_EQ(arenaBytesOf(ends), 300u);
  EXPECT_EQ(digestOf(ends), digestOf(middle));
  const std::uint64_t before = digestOf(ends);
  middle.digest = 10;
  EXPECT_NE(digestOf(ends), before) << "ranks of which one program differs refuse one another";

  Program alone{};
  alone.axes = kAxes;
  alone.arenaBytes = 50;
  alone.digest = 3;
  EXPECT_EQ(&programAt(alone, at(1, 1, 1)), &alone);
  EXPECT_EQ(arenaBytesOf(alone), 50u);
  EXPECT_EQ(digestOf(alone), 3u);
}

TEST(RolesTest, EachElementOfACheckpointIsWrittenOnce) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int most) { return static_cast<int>(random() % unsigned(most)) + 1; };
    // Up to four axes; the second is one of roles.
    const std::vector<MeshAxis> axes = {
        {"data", draw(2)}, {"pipeline", draw(4)}, {"fsdp", draw(3)}, {"tensor", draw(2)}};
    std::vector<std::vector<int>> owners(3);
    std::vector<std::vector<Parameter>> members(3);
    std::vector<std::vector<State>> states(3);
    std::vector<Storage> storages;
    int position = 0;
    const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    for (std::size_t s = 0; s < 3; ++s) {
      for (int role = 0; role < axes[1].size; ++role)
        if (draw(2) == 1)
          owners[s].push_back(role);
      std::int64_t size = 0;
      for (int m = draw(2); m > 0; --m) {
        const std::int64_t extent = draw(5000);
        Parameter parameter{.name = names[position],
                            .shape = {extent},
                            .fileShape = {extent},
                            .offset = static_cast<std::size_t>(size),
                            .init = Initializer::zeros()};
        parameter.position = position++;
        members[s].push_back(parameter);
        size += extent;
      }
      Storage storage{};
      storage.name = names[s];
      storage.size = static_cast<std::size_t>(size);
      storage.layout = draw(3) == 1 ? Layout::Replicated : Layout::Flat;
      int parts = 1;
      if (storage.layout == Layout::Flat) {
        storage.axes = {2};
        parts = axes[2].size;
      }
      const auto count = static_cast<std::size_t>((size + parts - 1) / parts);
      storage.shard = ArenaSpan<float>{0, count};
      if (draw(2) == 1)
        states[s].push_back({"exp_avg", ArenaSpan<float>{0, count}});
      storage.states = tableOf(states[s]);
      storage.members = tableOf(members[s]);
      storages.push_back(storage);
    }
    Program program{};
    program.axes = tableOf(axes);
    program.storages = tableOf(storages);
    const std::string alone = CheckpointLayout(program).fingerprint();
    for (std::size_t s = 0; s < 3; ++s)
      storages[s].roles = tableOf(owners[s]); // none: all
    program.roleAxes = {1};
    const CheckpointLayout layout(program);
    EXPECT_EQ(layout.fingerprint(), alone) << "files do not know roles";

    std::vector<std::vector<std::vector<int>>> written;
    for (const CheckpointFile &file : layout.files()) {
      written.emplace_back();
      for (const CheckpointTensor &tensor : file.tensors)
        written.back().emplace_back(tensor.elements);
    }
    const Mesh mesh(program.axes);
    for (int rank = 0; rank < mesh.size(); ++rank)
      for (const ShardShare &share : layout.sharesOf(mesh.coordinates(rank))) {
        const std::vector<int> &roles = owners[std::size_t(share.storage - storages.data())];
        EXPECT_TRUE(roles.empty() ||
                    std::count(roles.begin(), roles.end(), mesh.coordinate(rank, 1)) == 1)
            << "seed " << seed << ": rank " << rank << " does not own '" << share.storage->name
            << "'";
        for (const CheckpointPiece &piece : share.pieces)
          for (std::size_t i = 0; i < piece.count; ++i)
            ++written[piece.file][piece.tensor][piece.inTensor + i];
      }
    for (const auto &file : written)
      for (const std::vector<int> &tensor : file)
        for (const int times : tensor)
          ASSERT_EQ(times, 1) << "seed " << seed;
  }
}

} // namespace
