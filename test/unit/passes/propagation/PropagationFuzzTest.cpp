//===- PropagationFuzzTest.cpp - propagation of random programs -----------===//
//
// Random meshes, ops with merged dimensions, and given shardings. Of every solution: it is valid,
// the given axes stay, it is a fixed point (once more changes nothing), and it does not depend on
// the names and numbers of axes, nor on the numbers of values; where nothing contradicts, not on
// the order of ops.
//
//===----------------------------------------------------------------------===//

#include "passes/propagation/Problem.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace mlir::fsdp::propagation;

namespace {

class Generator {
public:
  explicit Generator(uint32_t seed) : random(seed) {}

  Problem program() {
    Problem problem;
    int axes = 1 + below(3);
    for (int axis = 0; axis < axes; ++axis) {
      problem.mesh.names.push_back(std::string(1, 'a' + axis));
      problem.mesh.sizes.push_back(2 << below(3));
    }
    int inputs = 1 + below(3);
    for (int input = 0; input < inputs; ++input) {
      Value value;
      int rank = 1 + below(3);
      for (int dim = 0; dim < rank; ++dim)
        value.sizes.push_back(size());
      problem.values.push_back(value);
    }
    int ops = 1 + below(7);
    for (int op = 0; op < ops; ++op)
      addOp(problem);
    for (Value &value : problem.values)
      if (below(3) == 0)
        give(problem.mesh, value);
    return problem;
  }

  int below(int bound) { return static_cast<int>(random() % bound); }

private:
  int64_t size() {
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
    return sizes[below(8)];
  }

  void addOp(Problem &problem) {
    Op op;
    int first = below(problem.values.size());
    op.operands = {first};
    const std::vector<int64_t> sizes = problem.values[first].sizes;
    Mapping dims;
    for (int64_t size : sizes) {
      dims.emplace_back();
      // Some dimensions are of two factors.
      for (int64_t part : {2, 3})
        if (dims.back().empty() && size > part && size % part == 0 && below(3) == 0) {
          dims.back() = {static_cast<int>(op.factors.size()),
                         static_cast<int>(op.factors.size()) + 1};
          op.factors.push_back({part});
          op.factors.push_back({size / part});
        }
      if (dims.back().empty()) {
        dims.back() = {static_cast<int>(op.factors.size())};
        op.factors.push_back({size});
      }
    }
    op.operandDims = {dims};
    std::vector<int> kept(op.factors.size());
    std::iota(kept.begin(), kept.end(), 0);
    int kind = below(4);
    if (kind == 0) {
      op.kind = OpKind::elementwise;
      op.operands.push_back(first);
      op.operandDims.push_back(dims);
      for (size_t other = 0; other < problem.values.size(); ++other)
        if (problem.values[other].sizes == sizes && below(2))
          op.operands.back() = other;
      op.resultDims = {dims};
      finish(problem, std::move(op));
      return;
    }
    if (kind == 1) {
      op.kind = OpKind::passThrough;
      std::shuffle(kept.begin(), kept.end(), random);
    } else if (kind == 2 || kept.empty()) {
      op.kind = OpKind::broadcast;
      op.factors.push_back({size()});
      kept.insert(kept.begin() + below(kept.size() + 1), op.factors.size() - 1);
    } else {
      int gone = below(kept.size());
      op.factors[kept[gone]].passThrough = false;
      kept.erase(kept.begin() + gone);
    }
    Mapping result;
    for (int factor : kept)
      if (!result.empty() && below(4) == 0)
        result.back().push_back(factor);
      else
        result.push_back({factor});
    op.resultDims = {result};
    finish(problem, std::move(op));
  }

  void finish(Problem &problem, Op op) {
    Value value;
    for (const std::vector<int> &dim : op.resultDims[0]) {
      int64_t size = 1;
      for (int factor : dim)
        size *= op.factors[factor].size;
      value.sizes.push_back(size);
    }
    op.results = {static_cast<int>(problem.values.size())};
    problem.values.push_back(value);
    problem.ops.push_back(std::move(op));
  }

  void give(const Mesh &mesh, Value &value) {
    value.sharding.dims.resize(value.sizes.size());
    if (value.sizes.empty())
      return;
    for (size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
      if (below(2))
        continue;
      DimSharding &dim = value.sharding.dims[below(value.sizes.size())];
      dim.axes.push_back(wholeAxis(mesh, axis));
    }
    for (DimSharding &dim : value.sharding.dims) {
      dim.open = below(2);
      if (!dim.axes.empty() && below(4) == 0)
        dim.priority = below(3);
    }
  }

  std::mt19937 random;
};

std::string all(const Problem &problem, const Solution &solution) {
  std::string text;
  for (const Sharding &sharding : solution.shardings)
    text += print(problem.mesh, sharding) + " ";
  return text;
}

/// The same program with the axes of the mesh in the other order, their names too.
Problem withAxesReversed(Problem problem) {
  int last = problem.mesh.sizes.size() - 1;
  std::reverse(problem.mesh.sizes.begin(), problem.mesh.sizes.end());
  std::reverse(problem.mesh.names.begin(), problem.mesh.names.end());
  for (Value &value : problem.values)
    for (DimSharding &dim : value.sharding.dims)
      for (AxisPart &axis : dim.axes)
        axis.axis = last - axis.axis;
  return problem;
}

/// The same program with the values numbered from the other end.
Problem withValuesReversed(Problem problem) {
  int last = problem.values.size() - 1;
  std::reverse(problem.values.begin(), problem.values.end());
  for (Op &op : problem.ops)
    for (std::vector<int> *values : {&op.operands, &op.results})
      for (int &value : *values)
        value = last - value;
  return problem;
}

TEST(PropagationFuzz, ValidFixedPointForAnyNames) {
  int64_t axes = 0, parts = 0, aggressive = 0;
  for (uint32_t seed = 0; seed < 10000; ++seed) {
    Generator generator(seed);
    Problem problem = generator.program();
    ASSERT_EQ(check(problem), "") << "seed " << seed;
    Options options;
    options.strategy = static_cast<Strategy>(generator.below(3));
    options.opPriorities = generator.below(3) != 0;
    options.subAxes = generator.below(3) != 0;
    Solution solution = propagate(problem, options);
    ASSERT_EQ(check(problem, &solution), "") << "seed " << seed;
    std::string text = all(problem, solution);
    EXPECT_EQ(all(problem, propagate(problem, options)), text) << "seed " << seed;
    Problem renamed = withAxesReversed(problem);
    EXPECT_EQ(all(renamed, propagate(renamed, options)), text) << "seed " << seed;
    Problem renumbered = withValuesReversed(problem);
    Solution other = propagate(renumbered, options);
    std::reverse(other.shardings.begin(), other.shardings.end());
    EXPECT_EQ(all(problem, other), text) << "seed " << seed;
    for (const Origin &origin : solution.origins) {
      ++axes;
      parts += !isWhole(problem.mesh, origin.axis);
      aggressive += origin.aggressive;
      EXPECT_TRUE(options.subAxes || isWhole(problem.mesh, origin.axis)) << "seed " << seed;
      EXPECT_TRUE(origin.op < 0 || origin.from >= 0) << "seed " << seed;
    }
    // Once more from the result: nothing changes.
    for (size_t value = 0; value < problem.values.size(); ++value) {
      problem.values[value].sharding = solution.shardings[value];
      for (DimSharding &dim : problem.values[value].sharding.dims)
        dim.priority = 0;
    }
    EXPECT_EQ(all(problem, propagate(problem, options)), text) << "seed " << seed;
  }
  // The cases reach what they are for.
  EXPECT_GT(axes, 10000);
  EXPECT_GT(parts, 500);
  EXPECT_GT(aggressive, 500);
}

/// One specified value and no op with a conflict: the order of ops does not matter.
TEST(PropagationFuzz, OrderOfOpsIsOfNoConsequenceWithoutContradiction) {
  int64_t carried = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Generator generator(seed);
    Problem problem;
    problem.mesh = {{"a"}, {2}};
    problem.values.resize(8);
    for (Value &value : problem.values)
      value.sizes = {8};
    Op op;
    op.kind = OpKind::elementwise;
    op.factors = {{8}};
    op.operandDims = op.resultDims = {{{0}}};
    // A tree: each value from one before.
    for (int value = 1; value < 8; ++value) {
      op.operands = {generator.below(value)};
      op.results = {value};
      problem.ops.push_back(op);
    }
    problem.values[generator.below(8)].sharding.dims = {{{{0, 1, 2}}}};
    Solution solution = propagate(problem);
    carried += solution.origins.size();
    std::string text = all(problem, solution);
    std::mt19937 random(seed);
    std::shuffle(problem.ops.begin(), problem.ops.end(), random);
    EXPECT_EQ(all(problem, propagate(problem)), text) << "seed " << seed;
  }
  EXPECT_EQ(carried, 1000 * 8);
}

} // namespace
