//===- ReshardTest.cpp - plans against an exhaustive search, and executed -===//

#include "ReshardOracle.h"
#include "ReshardRanks.h"
#include "test/Extent.h"

#include <algorithm>
#include <ctime>
#include <iostream>
#include <random>

using namespace mlir::fsdp::reshard;

namespace {

struct Case {
  std::vector<int64_t> mesh, shape;
};
void PrintTo(const Case &c, std::ostream *out) {
  for (int64_t size : c.mesh)
    *out << size << ".";
  for (int64_t size : c.shape)
    *out << "x" << size;
}

class AllPairs : public testing::TestWithParam<Case> {};

void execute(const Problem &problem, const Plan &plan) {
  Ranks ranks(problem);
  for (const Step &step : plan.steps)
    ranks.perform(step);
  ranks.check();
}

// Of every pair: no plan receives more than the exhaustive optimum, and executed it does what it
// should.
TEST_P(AllPairs, ReceiveTheFewestBytes) {
  std::vector<Axis> mesh;
  for (int64_t size : GetParam().mesh)
    mesh.push_back({size, {}});
  const std::vector<int64_t> &shape = GetParam().shape;
  const std::vector<Sharding> all = allShardings(mesh, static_cast<int>(shape.size()));
  Exhaustive exhaustive(mesh, shape);
  int64_t pairs = 0, steps = 0;
  double seconds = 0;
  // From every eighth one of many in each check.
  const size_t stride = all.size() > 50 ? ::fsdp::test::casesOf(8, 1) : 1;
  for (size_t i = 0; i < all.size(); i += stride) {
    const Sharding &from = all[i];
    const std::map<State, int64_t> best = exhaustive.from(from);
    for (const Sharding &to : all) {
      if (!mayBecome(from, to))
        continue;
      const Problem problem{mesh, shape, 4, from, to, {}, {}};
      ASSERT_EQ(validate(problem), "");
      const std::clock_t start = std::clock();
      const Plan plan = solve(problem);
      seconds += static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      std::string text;
      for (const Step &step : plan.steps)
        text += "\n" + describe(step);
      ASSERT_EQ(plan.bytes, 4 * best.at(exhaustive.stateOf(to))) << text;
      execute(problem, plan);
      ASSERT_FALSE(HasFailure()) << text;
      ++pairs;
      steps += static_cast<int64_t>(plan.steps.size());
    }
  }
  RecordProperty("pairs", static_cast<int>(pairs));
  std::cout << pairs << " pairs, " << steps << " steps, " << 1e6 * seconds / pairs
            << " us a pair\n";
  EXPECT_LT(seconds / pairs, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Meshes, AllPairs,
                         testing::Values(Case{{2, 2}, {8}}, Case{{2, 4}, {16}},
                                         Case{{2, 2, 2}, {16}}, Case{{2, 2}, {8, 4}},
                                         Case{{2, 4}, {16, 8}}, Case{{2, 2, 2}, {16, 8}},
                                         Case{{2, 3}, {6, 12}},
                                         // sizes that do not divide
                                         Case{{2, 2}, {10}}, Case{{2, 4}, {13}},
                                         Case{{2, 2, 2}, {9}}, Case{{2, 2}, {5, 7}},
                                         Case{{2, 4}, {3, 10}}, Case{{2, 2}, {0, 3}}));

AxisPart part(int axis, int64_t pre, int64_t size) { return {axis, pre, size}; }

std::vector<std::string> stepsOf(const Problem &problem) {
  EXPECT_EQ(validate(problem), "");
  const Plan plan = solve(problem);
  execute(problem, plan);
  std::vector<std::string> texts;
  for (const Step &step : plan.steps)
    texts.push_back(describe(step));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Reshard, SplitMovesByAllToAll) {
  EXPECT_EQ(stepsOf({{{4}}, {8, 8}, 4, {{{part(0, 1, 4)}, {}}, {}}, {{{}, {part(0, 1, 4)}}, {}}}),
            Texts{"all-to-all dimension 0 to 1 over axis 0:(1)4: 2x8 -> 8x2, 48 bytes"});
}

TEST(Reshard, SumsAreScatteredWhereTheyAreSplit) {
  EXPECT_EQ(stepsOf({{{4}}, {8}, 4, {{{}}, {part(0, 1, 4)}}, {{{part(0, 1, 4)}}, {}}}),
            Texts{"reduce-scatter dimension 0 over axis 0:(1)4: 8 -> 2, 24 bytes"});
  EXPECT_EQ(stepsOf({{{4}}, {8}, 4, {{{}}, {part(0, 1, 4)}}, {{{}}, {}}}),
            Texts{"all-reduce over axis 0:(1)4: 8 -> 8, 48 bytes"});
}

TEST(Reshard, PartsThatDoNotDivideMoveOnlyForeignElements) {
  // 10 by a=2 is 5 and 5, by a=2, b=2 it is 3, 3, 3, 1.
  EXPECT_EQ(
      stepsOf(
          {{{2}, {2}}, {10}, 4, {{{part(0, 1, 2)}}, {}}, {{{part(0, 1, 2), part(1, 1, 2)}}, {}}}),
      (Texts{"repartition dimension 0 over axis 0:(1)2: 5 -> 6, 4 bytes",
             "all-slice dimension 0 over axis 1:(1)2: 6 -> 3, 0 bytes"}));
}

TEST(Reshard, PartsOfAxes) {
  // Half of an axis of 4 moves to the other dimension.
  EXPECT_EQ(stepsOf({{{4}},
                     {8, 8},
                     4,
                     {{{part(0, 1, 4)}, {}}, {}},
                     {{{part(0, 1, 2)}, {part(0, 2, 2)}}, {}}}),
            Texts{"all-to-all dimension 0 to 1 over axis 0:(2)2: 2x8 -> 4x4, 32 bytes"});
}

TEST(Reshard, LinksDecide) {
  // A sum over 2x2: over the slow axis only half goes, when the fast one has scattered.
  Problem problem{{{2, {1e-6, 1e9}}, {2, {1e-6, 1e11}}},
                  {1 << 20},
                  4,
                  {{{}}, {part(0, 1, 2), part(1, 1, 2)}},
                  {{{}}, {}}};
  const Texts large = {
      "reduce-scatter dimension 0 over axis 1:(1)2: 1048576 -> 524288, 2097152 bytes",
      "all-reduce over axis 0:(1)2: 524288 -> 524288, 2097152 bytes",
      "all-gather dimension 0 over axis 1:(1)2: 524288 -> 1048576, 2097152 bytes"};
  const Plan plan = solve(problem);
  Texts got;
  for (const Step &step : plan.steps)
    got.push_back(describe(step));
  EXPECT_EQ(got, large);
  problem.shape = {1}; // latency decides
  EXPECT_EQ(solve(problem).steps.size(), 2u);
}

TEST(Reshard, OrdersOfDevices) {
  std::mt19937 random(7);
  const std::vector<Axis> mesh = {{2}, {2}, {2}};
  const std::vector<Sharding> all = allShardings(mesh, 2);
  for (int i = 0; i < 400; ++i) {
    Problem problem{mesh, {8, 4}, 4, all[random() % all.size()], all[random() % all.size()],
                    {},   {}};
    if (!mayBecome(problem.from, problem.to))
      continue;
    for (int device = 0; device < 8; ++device)
      problem.fromOrder.push_back(device), problem.toOrder.push_back(device);
    std::shuffle(problem.toOrder.begin(), problem.toOrder.end(), random);
    ASSERT_EQ(validate(problem), "");
    const Plan plan = solve(problem);
    execute(problem, plan);
    ASSERT_FALSE(HasFailure());
    // At most the cost without it, plus the bytes that a rank holds on the path.
    Problem same = problem;
    same.fromOrder = same.toOrder;
    int64_t held = 8 * 4 * 4;
    for (const Step &step : solve(same).steps)
      held = std::min(held, 4 * step.before[0] * step.before[1]);
    EXPECT_LE(plan.bytes, solve(same).bytes + held);
  }
}

/// Bytes received where everything is reduced and gathered whole, and sliced again.
int64_t bytesByWhole(const Problem &problem) {
  int64_t elements = 1, bytes = 0;
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    int64_t ranks = 1;
    for (const AxisPart &part : problem.from.dims[d])
      ranks *= part.size;
    elements *= (problem.shape[d] + ranks - 1) / ranks;
  }
  int64_t ranks = 1;
  for (const AxisPart &part : problem.from.partial)
    if (!std::count(problem.to.partial.begin(), problem.to.partial.end(), part))
      ranks *= part.size;
  bytes += 2 * (ranks - 1) * ((elements + ranks - 1) / ranks);
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    int64_t parts = 1;
    for (const AxisPart &part : problem.from.dims[d])
      parts *= part.size;
    bytes += (parts - 1) * elements;
    elements = elements / ((problem.shape[d] + parts - 1) / parts) * problem.shape[d];
  }
  return bytes * problem.elementBytes;
}

// Meshes of more axes and parts of axes: executed, and never more than a gather of all and a slice.
TEST(Reshard, RandomProblems) {
  std::mt19937 random(11);
  auto draw = [&](int n) { return static_cast<int>(random() % n); };
  int solved = 0;
  double longest = 0, total = 0;
  for (int i = 0; i < 600; ++i) {
    Problem problem;
    int64_t devices = 1;
    for (int axes = 1 + draw(4); axes > 0 && devices < 16; --axes) {
      const int64_t size = std::vector<int64_t>{2, 2, 3, 4}[draw(4)];
      problem.mesh.push_back({size, {}});
      devices *= size;
    }
    for (int rank = 1 + draw(3); rank > 0; --rank)
      problem.shape.push_back(1 + draw(12));
    auto sharding = [&](const Sharding *sumsOf) {
      Sharding result;
      result.dims.resize(problem.shape.size());
      for (int axis = 0; axis < static_cast<int>(problem.mesh.size()); ++axis) {
        const int64_t size = problem.mesh[axis].size;
        std::vector<AxisPart> parts = {{axis, 1, size}};
        if (size == 4 && draw(2))
          parts = {{axis, 1, 2}, {axis, 2, 2}};
        for (const AxisPart &part : parts) {
          const int place = draw(static_cast<int>(problem.shape.size()) + 2);
          if (place < static_cast<int>(problem.shape.size())) {
            auto &dim = result.dims[place];
            dim.insert(dim.begin() + draw(static_cast<int>(dim.size()) + 1), part);
          } else if (place == static_cast<int>(problem.shape.size()) &&
                     (!sumsOf ||
                      std::count(sumsOf->partial.begin(), sumsOf->partial.end(), part))) {
            result.partial.push_back(part);
          }
        }
      }
      return result;
    };
    problem.from = sharding(nullptr);
    problem.to = sharding(&problem.from);
    if (!validate(problem).empty())
      continue; // parts of axes that move apart more than the search takes
    const std::clock_t start = std::clock();
    const Plan plan = solve(problem);
    const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    longest = std::max(longest, took);
    total += took;
    execute(problem, plan);
    ASSERT_FALSE(HasFailure()) << i;
    ASSERT_LE(plan.bytes, bytesByWhole(problem)) << i;
    ++solved;
  }
  std::cout << solved << " problems, " << 1e6 * total / solved << " us each, the longest "
            << 1e3 * longest << " ms\n";
  EXPECT_GT(solved, 500);
}

TEST(Reshard, PlansAreRemembered) {
  Solver solver;
  const Problem problem{{{4}}, {8}, 4, {{{part(0, 1, 4)}}, {}}, {{{}}, {}}};
  const Plan &plan = solver.solve(problem);
  EXPECT_EQ(&solver.solve(problem), &plan);
  Problem other = problem;
  other.elementBytes = 2;
  EXPECT_EQ(solver.solve(other).bytes * 2, plan.bytes);
}

TEST(Reshard, RefusesInvalidProblems) {
  const Problem right{{{4}, {2}}, {8}, 4, {{{part(0, 1, 4)}}, {}}, {{{}}, {}}};
  const struct {
    void (*change)(Problem &);
    const char *text;
  } cases[] = {
      {[](Problem &p) { p.mesh[0].size = 0; },
       "the mesh has an axis of size 0, expected at least 1"},
      {[](Problem &p) { p.to.dims.clear(); }, "the sharding after has 0 dimensions, expected 1"},
      {[](Problem &p) { p.from.dims[0] = {part(2, 1, 2)}; },
       "the sharding before names axis 2, expected one below 2"},
      {[](Problem &p) { p.from.dims[0] = {part(0, 1, 3)}; },
       "the sharding before names axis 0 of size 3, expected a part of 4"},
      {[](Problem &p) { p.from.partial = {part(0, 2, 2)}; },
       "the sharding before names axis 0 twice, expected each part of an axis once"},
      {[](Problem &p) { p.to.partial = {part(1, 1, 2)}; },
       "the target sharding is a partial sum over axis 1, but the source sharding is not"},
      {[](Problem &p) { p.toOrder = {0, 1, 2, 3, 4, 5, 6, 7}; },
       "expected two permutations of 8 devices"},
      {[](Problem &p) {
         p.fromOrder = {0, 1, 2, 3, 4, 5, 6, 7}, p.toOrder = {0, 1, 2, 3, 4, 5, 6, 6};
       },
       "expected two permutations of 8 devices"},
      {[](Problem &p) {
         p.mesh[0].size = 6;
         p.from.dims[0] = {part(0, 1, 2)};
         p.to.dims[0] = {part(0, 1, 3)};
       },
       "the shardings split an axis at positions that do not nest; use sizes that divide one "
       "another"},
      {[](Problem &p) {
         p.mesh = std::vector<Axis>(9, {2});
         p.shape.assign(9, 2), p.from.dims.assign(9, {}), p.to.dims.assign(9, {});
         for (int axis = 0; axis < 9; ++axis)
           (axis % 2 ? p.from : p.to).dims[axis] = {part(axis, 1, 2)};
       },
       "the shardings split 9 dimensions, expected 8 at most"},
  };
  EXPECT_EQ(validate(right), "");
  for (const auto &wrong : cases) {
    Problem problem = right;
    wrong.change(problem);
    EXPECT_EQ(validate(problem), wrong.text);
  }
}

} // namespace
