#include "runtime/numerics/Random.h"
#include "runtime/program/Shard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace fsdp::rt;

namespace {

// The known answers that come with Random123, the reference implementation.
TEST(RandomTest, PhiloxGivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, NormalsHaveTheirMoments) {
  const Random random(1, hashName("kernel"));
  constexpr int count = 200000;
  double sum = 0, squares = 0, fourth = 0, neighbours = 0;
  float before = 0;
  for (int i = 0; i < count; ++i) {
    const float x = random.normal(std::uint64_t(i));
    sum += x, squares += x * x, fourth += double(x) * x * x * x, neighbours += x * before;
    before = x;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.015);
  EXPECT_NEAR(fourth / count, 3, 0.12);
  EXPECT_NEAR(neighbours / count, 0, 0.01);
}

TEST(RandomTest, NormalsFollowBoxAndMuller) {
  const Random random(3, hashName("kernel"));
  for (std::uint64_t group = 0; group < 20000; ++group) {
    const auto words = random.words(group);
    const auto values = random.normals(group);
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      const double radius = std::sqrt(-2 * std::log((words[pair] + 1.0) * 0x1p-32));
      const double angle = 6.283185307179586 * (words[pair + 1] * 0x1p-32);
      // The float nearest to a number near 1 says little of its logarithm.
      const double tolerance = 1e-6 * (1 + radius) + 0x1p-23 / radius;
      ASSERT_NEAR(values[pair], radius * std::cos(angle), tolerance);
      ASSERT_NEAR(values[pair + 1], radius * std::sin(angle), tolerance);
    }
  }
}

TEST(RandomTest, NormalsInVectorsAreThoseOneByOne) {
  const Random random(3, hashName("kernel"), 5);
  for (const std::uint64_t first : {std::uint64_t(0), std::uint64_t(0xfffffff8)}) {
    float block[4 * Random::kLanes];
    random.normals(first, block);
    for (std::size_t i = 0; i < 4 * Random::kLanes; ++i)
      ASSERT_EQ(block[i], random.normal(4 * first + i)) << i;
  }
}

TEST(RandomTest, UniformsFillTheUnitInterval) {
  const Random random(1, hashName("kernel"));
  int bins[10] = {};
  for (int i = 0; i < 100000; ++i) {
    const float x = random.uniform(std::uint64_t(i));
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    ++bins[int(x * 10)];
  }
  for (int bin : bins)
    EXPECT_NEAR(bin, 10000, 500);
}

TEST(RandomTest, EveryPartOfTheKeyMatters) {
  const float value = Random(1, hashName("a"), 2).normal(3);
  EXPECT_EQ(value, Random(1, hashName("a"), 2).normal(3));
  EXPECT_NE(value, Random(2, hashName("a"), 2).normal(3));
  EXPECT_NE(value, Random(1, hashName("b"), 2).normal(3));
  EXPECT_NE(value, Random(1, hashName("a"), 3).normal(3));
  EXPECT_NE(value, Random(1, hashName("a"), 2).normal(std::uint64_t(3) + (std::uint64_t(1) << 34)));
}

constexpr Parameter kMembers[] = {
    {"kernel", nullptr, {5, 7}, {5, 7}, 0, Initializer::normal(0.5, 2), true},
    {"bias", nullptr, {7}, {7}, 35, Initializer::constant(3), false},
    {"scale", nullptr, {4}, {4}, 42, Initializer::uniform(-1, 1), false}};

/// As many ranks as a storage needs.
constexpr MeshAxis kAxis[] = {{"fsdp", 50}};

Storage flat(std::size_t local) {
  return {"unit", Layout::Flat, {0}, 0, 0, 46, 0, ArenaSpan<float>{0, local}, {}, kMembers};
}

TEST(RandomTest, InitialValuesDoNotDependOnTheMesh) {
  std::vector<float> whole(46);
  initializeShard(flat(46), {kAxis, {0}}, 9, whole.data());
  for (int ranks : {2, 3, 7, 50}) {
    const std::size_t local = (46 + std::size_t(ranks) - 1) / std::size_t(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> shard(local, -99);
      initializeShard(flat(local), {kAxis, {rank}}, 9, shard.data());
      for (std::size_t i = 0; i < local; ++i) {
        const std::size_t global = std::size_t(rank) * local + i;
        EXPECT_EQ(shard[i], global < 46 ? whole[global] : 0.0f) << ranks << ' ' << rank << ' ' << i;
      }
    }
  }
  EXPECT_EQ(whole[35], 3);
  EXPECT_EQ(whole[41], 3);
  EXPECT_NE(whole[0], whole[1]);
  EXPECT_LT(std::abs(whole[45]), 1);
}

// The same parameter, cut along its second dimension, holds the same values.
TEST(RandomTest, InitialValuesDoNotDependOnTheLayout) {
  std::vector<float> whole(46), shard(5 * 3);
  initializeShard(flat(46), {kAxis, {0}}, 9, whole.data());
  for (int rank = 0; rank < 3; ++rank) {
    const Storage cut{"kernel", Layout::Dimension,
                      {0},      0,
                      1,        35,
                      0,        ArenaSpan<float>{0, 15},
                      {},       Table<Parameter>(kMembers, 1)};
    initializeShard(cut, {kAxis, {rank}}, 9, shard.data());
    for (int o = 0; o < 5; ++o)
      for (int l = 0; l < 3; ++l)
        EXPECT_EQ(shard[std::size_t(o * 3 + l)],
                  rank * 3 + l < 7 ? whole[std::size_t(o * 7 + rank * 3 + l)] : 0.0f);
  }
}

} // namespace
