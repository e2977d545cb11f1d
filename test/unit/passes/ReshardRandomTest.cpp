//===- ReshardRandomTest.cpp - random shardings over many axes ------------===//
//
// More axes than every pair of shardings can be tried on: each plan is executed, and its bytes and
// the elements that ranks hold on the way are bounded.
//
//===----------------------------------------------------------------------===//

#include "ReshardOracle.h"
#include "ReshardRanks.h"
#include "test/Extent.h"

#include <ctime>
#include <iostream>
#include <random>

using namespace mlir::fsdp::reshard;

namespace {

int64_t product(const std::vector<int64_t> &sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// The elements of a rank's shard, with its padding.
int64_t shardOf(const Problem &problem, const Sharding &sharding) {
  int64_t elements = 1;
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    int64_t ranks = 1;
    for (const AxisPart &part : sharding.dims[d])
      ranks *= part.size;
    elements *= (problem.shape[d] + ranks - 1) / ranks;
  }
  return elements;
}

struct Family {
  const char *name;
  int most;         ///< axes
  int64_t devices;  ///< at most
  bool divides;     ///< all ranks together divide each dimension
  int64_t smallest; ///< of a dimension, where not
  bool executes;
};

void PrintTo(const Family &family, std::ostream *out) { *out << family.name; }

Problem draw(std::mt19937 &random, const Family &family) {
  auto draw = [&](int n) { return static_cast<int>(random() % n); };
  Problem problem;
  int64_t devices = 1;
  for (int axes = 2 + draw(family.most - 1); axes > 0; --axes) {
    const int64_t size = std::vector<int64_t>{2, 2, 3, 4}[draw(4)];
    if (devices * size > family.devices)
      continue;
    problem.mesh.push_back({size, {}});
    devices *= size;
  }
  std::vector<AxisPart> parts;
  for (int axis = 0; axis < static_cast<int>(problem.mesh.size()); ++axis)
    if (problem.mesh[axis].size == 4 && draw(2))
      parts.insert(parts.end(), {{axis, 1, 2}, {axis, 2, 2}});
    else
      parts.push_back({axis, 1, problem.mesh[axis].size});
  const int rank = 1 + draw(3);
  for (int d = 0; d < rank; ++d)
    problem.shape.push_back(family.divides ? devices : family.smallest + draw(40));
  const bool withSums = draw(2);
  for (Sharding *sharding : {&problem.from, &problem.to}) {
    sharding->dims.resize(rank);
    for (const AxisPart &part : parts) {
      const int place = draw(rank + 1 + withSums);
      if (place < rank) {
        std::vector<AxisPart> &dim = sharding->dims[place];
        dim.insert(dim.begin() + draw(static_cast<int>(dim.size()) + 1), part);
      } else if (place > rank) {
        sharding->partial.push_back(part);
      }
    }
  }
  if (!mayBecome(problem.from, problem.to))
    problem.to.partial.clear();
  return problem;
}

class RandomReshards : public testing::TestWithParam<Family> {};

// No rank holds more on the way than at its beginning or its end, or twice that where parts have
// padding: so none holds all of a tensor of which it has, and gets, less than that.
TEST_P(RandomReshards, HoldNoMoreThanTheLargerShard) {
  const Family &family = GetParam();
  std::mt19937 random(17);
  const int64_t count = ::fsdp::test::casesOf(200, 4000);
  int64_t larger = 0;
  double longest = 0, total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Problem problem = draw(random, family);
    ASSERT_EQ(validate(problem), "");
    const std::clock_t start = std::clock();
    const Plan plan = solve(problem);
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    longest = std::max(longest, took);
    total += took;
    std::string text;
    for (const Step &step : plan.steps)
      text += "\n" + describe(step);
    const int64_t ends = std::max(shardOf(problem, problem.from), shardOf(problem, problem.to));
    int64_t most = ends;
    for (const Step &step : plan.steps)
      most = std::max(most, product(step.after));
    const int64_t bound = (family.divides ? 1 : 2) * ends;
    larger += most > bound;
    if (family.divides || family.smallest > 1) {
      ASSERT_LE(most, bound) << i << text;
      ASSERT_TRUE(most < product(problem.shape) || bound >= product(problem.shape)) << i << text;
    }
    if (family.executes) {
      Ranks ranks(problem);
      for (const Step &step : plan.steps)
        ranks.perform(step);
      ranks.check();
      ASSERT_FALSE(HasFailure()) << i << text;
    }
  }
  std::cout << count << " plans, " << larger << " hold more, " << 1e6 * total / count
            << " us each, the longest " << 1e3 * longest << " ms\n";
  EXPECT_LE(larger, count / 400); // dimensions shorter than their ranks are many
}

INSTANTIATE_TEST_SUITE_P(Meshes, RandomReshards,
                         testing::Values(Family{"four", 4, 32, true, 0, true},
                                         Family{"six", 6, 64, true, 0, false},
                                         Family{"eight", 8, 512, true, 0, false},
                                         Family{"uneven", 4, 32, false, 64, false},
                                         Family{"short", 5, 32, false, 1, true}));

// As few bytes as the exhaustive search, on four axes.
TEST(RandomReshards, OnFourAxesReceiveTheFewestBytes) {
  const struct {
    std::vector<int64_t> mesh, shape;
  } cases[] = {{{2, 2, 2, 2}, {16, 16}}, {{2, 3, 2, 2}, {24, 24}}, {{2, 2, 2, 2}, {13, 9}}};
  std::mt19937 random(5);
  for (const auto &[sizes, shape] : cases) {
    std::vector<Axis> mesh;
    for (int64_t size : sizes)
      mesh.push_back({size, {}});
    const std::vector<Sharding> all = allShardings(mesh, static_cast<int>(shape.size()));
    Exhaustive exhaustive(mesh, shape);
    int64_t pairs = 0;
    for (int64_t i = 0, sources = ::fsdp::test::casesOf(1, 20); i < sources; ++i) {
      const Sharding &from = all[random() % all.size()];
      const std::map<State, int64_t> best = exhaustive.from(from);
      for (const Sharding &to : all) {
        if (!mayBecome(from, to))
          continue;
        const Problem problem{mesh, shape, 1, from, to, {}, {}};
        const Plan plan = solve(problem);
        std::string text;
        for (const Step &step : plan.steps)
          text += "\n" + describe(step);
        ASSERT_EQ(plan.bytes, best.at(exhaustive.stateOf(to))) << text;
        ++pairs;
      }
    }
    std::cout << pairs << " pairs\n";
  }
}

} // namespace
