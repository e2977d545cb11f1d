//===- PropagationTest.cpp - sharding propagation, rule by rule -----------===//

#include "passes/propagation/Problem.h"
#include "passes/propagation/Projection.h"
#include <gtest/gtest.h>

using namespace mlir::fsdp::propagation;

namespace {

/// A matrix product over axes of size 2, 2 and 4.
struct Product : testing::Test {
  Product() {
    problem.mesh = {{"a", "b", "c"}, {2, 2, 4}};
    problem.values = {{{8, 4}}, {{4, 16}}, {{8, 16}}};
    Op op;
    op.factors = {{8}, {4, /*passThrough=*/false}, {16}};
    op.operandDims = {{{0}, {1}}, {{1}, {2}}};
    op.resultDims = {{{0}, {2}}};
    op.operands = {0, 1};
    op.results = {2};
    problem.ops = {op};
  }

  Sharding sharding(std::vector<DimSharding> dims) { return {std::move(dims)}; }
  std::string solve(int value, Options options = {}) {
    EXPECT_EQ(check(problem), "");
    Solution solution = propagate(problem, options);
    EXPECT_EQ(check(problem, &solution), "");
    return print(problem.mesh, solution.shardings[value]);
  }

  Problem problem;
  AxisPart a = {0, 1, 2}, b = {1, 1, 2}, c = {2, 1, 4};
};

TEST_F(Product, CarriesRowsAndColumns) {
  problem.values[0].sharding = sharding({{{a}, false}, {{}, false}});
  problem.values[1].sharding = sharding({{{}, false}, {{b}, false}});
  EXPECT_EQ(solve(2), "[a+?, b+?]");
}

TEST_F(Product, CarriesBetweenOperandsAlongSummedDimensions) {
  problem.values[0].sharding = sharding({{}, {{c}}});
  EXPECT_EQ(solve(1), "[c+?, ?]");
  EXPECT_EQ(solve(2), "[?, ?]");
}

TEST_F(Product, ExtendsAnOpenDimensionAndNoClosedOne) {
  problem.values[0].sharding = sharding({{{a, b}, false}, {}});
  problem.values[2].sharding = sharding({{{a}}, {}});
  EXPECT_EQ(solve(2), "[a+b+?, ?]");
  problem.values[2].sharding.dims[0].open = false;
  EXPECT_EQ(solve(2), "[a, ?]");
}

TEST_F(Product, TheLargerTensorWinsAConflictBetweenFactors) {
  // Rows of the left and columns of the right conflict over one axis in the result.
  problem.values[0].sharding = sharding({{{a}}, {}});
  problem.values[1].sharding = sharding({{}, {{a}}});
  EXPECT_EQ(solve(2, {Strategy::basic}), "[?, ?]");
  EXPECT_EQ(solve(2), "[?, a+?]");
}

TEST_F(Product, UnreducedAndReplicatedAxesSplitNothing) {
  problem.values[0].sharding = sharding({{{a, b}}, {}});
  problem.values[2].sharding = sharding({{}, {}});
  problem.values[2].sharding.unreduced = {b};
  EXPECT_EQ(solve(2), "[a+?, ?]");
  problem.values[2].sharding.unreduced = {};
  problem.values[2].sharding.replicated = {a};
  EXPECT_EQ(solve(2), "[?, ?]");
}

TEST_F(Product, PrioritiesComeOneAfterTheOther) {
  problem.values[0].sharding = sharding({{{a}, true, 1}, {}});
  problem.values[1].sharding = sharding({{}, {{a}, true, 0}});
  EXPECT_EQ(solve(2), "[?, a+?]");
  problem.values[0].sharding.dims[0].priority = 0;
  problem.values[1].sharding.dims[1].priority = 2;
  EXPECT_EQ(solve(2), "[a+?, ?]");
}

TEST_F(Product, RefusedAxesAreTruncated) {
  problem.values[0].sharding = sharding({{{a, b}}, {}});
  problem.admits = [](int value, int, const AxisList &axes, const Sharding &) {
    return value != 2 || axes.size() < 2;
  };
  EXPECT_EQ(solve(2), "[a+?, ?]");
  problem.admits = [](int, int, const AxisList &, const Sharding &) { return false; };
  EXPECT_EQ(solve(2), "[?, ?]");
}

TEST_F(Product, ABlockedFactorCarriesNothing) {
  problem.values[0].sharding = sharding({{{a}}, {{b}}});
  problem.ops[0].factors[0].blocked = true;
  EXPECT_EQ(solve(2), "[?, ?]");
  EXPECT_EQ(solve(1), "[b+?, ?]");
}

TEST_F(Product, OriginsNameOpSourceAndPriority) {
  problem.values[0].sharding = sharding({{{a}, true, 3}, {}});
  Solution solution = propagate(problem);
  ASSERT_EQ(solution.origins.size(), 2u);
  EXPECT_EQ(solution.origins[0].op, -1);
  EXPECT_EQ(solution.origins[1].value, 2);
  EXPECT_EQ(solution.origins[1].dim, 0);
  EXPECT_EQ(solution.origins[1].op, 0);
  EXPECT_EQ(solution.origins[1].from, 0);
  EXPECT_EQ(solution.origins[1].priority, 3);
}

/// 8 into 2 x 4: the axes are handed out from the major factor on, cut where there is no room.
TEST(Projection, SplitsADimensionIntoFactors) {
  Mesh mesh = {{"a", "b", "c"}, {2, 2, 4}};
  Op op;
  op.factors = {{2}, {4}};
  Mapping merged = {{0, 1}}, parts = {{0}, {1}};
  auto roundTrip = [&](AxisList axes) {
    TensorProjection tensor = project(op, merged, {{{axes, true}}});
    EXPECT_EQ(unproject(op, merged, tensor)[0], axes);
    return print(mesh, tensor.factors[0].axes) + " " + print(mesh, tensor.factors[1].axes) + " " +
           print(mesh, tensor.factors[0].overflow);
  };
  AxisPart a = {0, 1, 2}, b = {1, 1, 2}, c = {2, 1, 4};
  EXPECT_EQ(roundTrip({b, a}), "b a _");
  EXPECT_EQ(roundTrip({c}), "c:(1)2 c:(2)2 _");
  EXPECT_EQ(roundTrip({c, a}), "c:(1)2 c:(2)2+a _");
  op.factors = {{3}, {4}};
  EXPECT_EQ(roundTrip({a}), "_ _ a");
}

/// A dimension of one element that is several factors of size 1 has none of them (attention of one
/// head): what splits it nevertheless, splits no other dimension.
TEST(Projection, AxesOfADimensionWithoutFactorsAreTaken) {
  Problem problem;
  problem.mesh = {{"a", "b"}, {4, 3}};
  const AxisList a = {{0, 1, 4}}, b = {{1, 1, 3}}, both = {{0, 1, 4}, {1, 1, 3}};
  problem.values.push_back({{8, 1}, {{{{}, true}, {a, false}}}});
  problem.values.push_back({{8}, {{{both, false}}}});
  Op op;
  op.factors = {{8, /*passThrough=*/true}};
  op.operands = {0};
  op.operandDims = {{{0}, {}}};
  op.results = {1};
  op.resultDims = {{{0}}};
  problem.ops.push_back(op);
  Solution solution = propagate(problem);
  EXPECT_EQ(check(problem, &solution), "");
  EXPECT_EQ(print(problem.mesh, solution.shardings[0]), "[?, a]");
  // Free axes may be added.
  problem.values[1].sharding.dims[0].axes = b;
  EXPECT_EQ(print(problem.mesh, propagate(problem).shardings[0]), "[b+?, a]");
}

TEST(Axes, PartsOfAnAxis) {
  Mesh mesh = {{"a"}, {16}};
  AxisPart whole = wholeAxis(mesh, 0), first = {0, 1, 4}, second = {0, 4, 4}, middle = {0, 2, 4};
  EXPECT_TRUE(first.isPrefixOf(whole));
  EXPECT_TRUE(whole.contains(middle));
  EXPECT_FALSE(first.overlaps(second));
  EXPECT_TRUE(first.overlaps(middle));
  EXPECT_EQ(whole.withoutOverlap(second), first);
  EXPECT_EQ(first.withoutOverlap(middle), (AxisPart{0, 1, 2}));
  EXPECT_EQ(second.withoutOverlap(middle), std::nullopt);
  AxisList axes = {first};
  append(axes, second);
  EXPECT_EQ(axes, AxisList{whole});
  EXPECT_EQ(print(mesh, AxisList{middle}), "a:(2)4");
}

TEST_F(Product, CheckRefuses) {
  auto defect = [&](auto change) {
    Problem wrong = problem;
    change(wrong);
    return check(wrong);
  };
  EXPECT_EQ(defect([&](Problem &p) { p.values[0].sharding.dims = {{{a}}, {{a}}}; }),
            "value 0 uses axis 'a' twice");
  EXPECT_EQ(defect([&](Problem &p) { p.values[0].sharding.dims = {{{a}}}; }),
            "value 0 has a sharding of 1 dimensions, expected 2");
  EXPECT_EQ(defect([&](Problem &p) { p.values[0].sharding.dims = {{{{7, 1, 2}}}, {}}; }),
            "value 0 names an axis or a part that the mesh does not have");
  EXPECT_EQ(defect([&](Problem &p) { p.values[0].sharding.dims = {{{{2, 1, 2}, {2, 2, 2}}}, {}}; }),
            "value 0 has adjacent parts of axis 'c', expected them as one part");
  EXPECT_EQ(defect([&](Problem &p) { p.ops[0].factors[0].size = 2; }),
            "op 0 gives dimension 0 of value 0 the size 2, expected 8");
  EXPECT_EQ(defect([&](Problem &p) { p.ops[0].results = {9}; }),
            "op 0 names a value that does not exist");
  EXPECT_EQ(defect([&](Problem &p) { p.ops[0].operandDims[0].pop_back(); }),
            "op 0 has a rule whose rank differs from value 0");
  EXPECT_EQ(defect([&](Problem &p) { p.ops[0].results.clear(); }),
            "op 0 needs one rule for each tensor");
  problem.values[0].sharding.dims = {{{a}, false}, {}};
  Solution solution = propagate(problem);
  solution.shardings[0].dims[0].axes = {};
  EXPECT_EQ(check(problem, &solution), "dimension 0 of value 0 has lost user-specified axes");
  solution.shardings[0].dims[0].axes = {a, b};
  EXPECT_EQ(check(problem, &solution),
            "dimension 0 of value 0 is closed but has more axes than specified");
  solution.shardings.pop_back();
  EXPECT_EQ(check(problem, &solution),
            "the solution has another number of values than the problem");
}

} // namespace
