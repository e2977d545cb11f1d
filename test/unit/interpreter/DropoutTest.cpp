//===- DropoutTest.cpp - the runtime's masks, and the interpreter's -------===//

#include "interpreter/Draws.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/numerics/Random.h"
#include "gtest/gtest.h"

#include <cmath>
#include <vector>

using fsdp::rt::DropoutExtent;
using mlir::fsdp::interpreter::Draws;

namespace {

constexpr uint64_t kSeed = 77;
constexpr int64_t kStep = 5;

std::vector<float> run(double rate, const char *name, uint64_t first,
                       std::vector<DropoutExtent> extents, std::vector<float> x,
                       int64_t step = kStep) {
  fsdp::rt::StepState state{};
  state.seed = kSeed;
  state.step = step;
  fsdp::rt::kernels::dropout(rate, fsdp::rt::hashName(name), first, extents.data(), extents.size(),
                             state, x.data(), x.data());
  return x;
}

TEST(DropoutTest, DropsTheShareOfItsRate) {
  const size_t count = 1 << 20;
  for (double rate : {0.0, 0.1, 0.5, 0.9}) {
    std::vector<float> y = run(rate, "drop", 0, {{count, 1}}, std::vector<float>(count, 2));
    size_t zeros = 0;
    for (float value : y) {
      zeros += value == 0;
      ASSERT_TRUE(value == 0 || value == 2 * static_cast<float>(1 / (1 - rate))) << value;
    }
    // Five standard deviations.
    EXPECT_NEAR(static_cast<double>(zeros), rate * count, 5 * std::sqrt(rate * (1 - rate) * count));
  }
}

// Any part of the whole tensor, in any pieces, has the interpreter's draws of its indices.
TEST(DropoutTest, DrawsAsTheInterpreter) {
  Draws draws(kSeed, "h.0.drop", kStep + 1);
  for (double rate : {0.1, 0.37, 1.0 / 3})
    for (uint64_t first : {0ull, 1ull, 5ull, 4099ull, (1ull << 34) - 9})
      for (size_t rows : {1, 2, 7})
        for (size_t width : {0, 1, 3, 4, 33, 128, 517}) {
          const size_t stride = 601;
          std::vector<float> y = run(rate, "h.0.drop", first, {{rows, stride}, {width, 1}},
                                     std::vector<float>(rows * width, 1));
          for (size_t r = 0; r < rows; ++r)
            for (size_t i = 0; i < width; ++i)
              ASSERT_EQ(y[r * width + i] != 0, draws.uniform(first + r * stride + i) >= rate)
                  << "rate " << rate << ", first " << first << ", row " << r << ", element " << i;
        }
}

TEST(DropoutTest, ChangesWithNameAndStep) {
  const std::vector<float> ones(1000, 1);
  std::vector<float> y = run(0.5, "a", 0, {{1000, 1}}, ones);
  EXPECT_EQ(y, run(0.5, "a", 0, {{1000, 1}}, ones));
  EXPECT_NE(y, run(0.5, "b", 0, {{1000, 1}}, ones));
  EXPECT_NE(y, run(0.5, "a", 0, {{1000, 1}}, ones, kStep + 1));
}

// Dropped elements are 0, even if they were not finite.
TEST(DropoutTest, DropsInfinities) {
  std::vector<float> y = run(0.5, "a", 0, {{1000, 1}}, std::vector<float>(1000, INFINITY));
  for (float value : y)
    ASSERT_TRUE(value == 0 || value == INFINITY) << value;
}

} // namespace
