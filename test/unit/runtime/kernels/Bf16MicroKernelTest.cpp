#include "runtime/kernels/Bf16MicroKernel.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

/// Small whole numbers, whose sums of products are exact in any order.
std::vector<float> wholeNumbers(std::size_t count, std::mt19937 &random) {
  std::vector<float> values(count);
  for (float &value : values)
    value = float(int(random() % 17) - 8);
  return values;
}

std::vector<bf16> narrowed(const std::vector<float> &values) {
  std::vector<bf16> result(values.size());
  convert(values.data(), values.size(), result.data());
  return result;
}

void compare(PairInstructions instructions, std::size_t m, std::size_t n, std::size_t k, bool add,
             std::mt19937 &random) {
  SCOPED_TRACE(testing::Message() << int(instructions) << ": " << m << " x " << n << " x " << k);
  // Strides with room to spare, in which nothing may be written.
  const Bf16MicroKernel shape{m, n, k, k + 6, k * 32 + 64, n + 3};
  const auto a = wholeNumbers(m * shape.aRow, random);
  const auto b = wholeNumbers(n / 32 * shape.bPanel, random);
  const auto before = wholeNumbers(m * shape.cRow, random);
  auto c = before;
  const auto narrowA = narrowed(a), narrowB = narrowed(b);
  const PairMultiplier multiply(instructions);
  multiply(shape, narrowA.data(), narrowB.data(), c.data(), add);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < shape.cRow; ++j) {
      float expected = add || j >= n ? before[i * shape.cRow + j] : 0;
      for (std::size_t l = 0; l < k && j < n; ++l)
        expected +=
            a[i * shape.aRow + l] * b[j / 32 * shape.bPanel + l / 2 * 64 + 2 * (j % 32) + l % 2];
      ASSERT_EQ(c[i * shape.cRow + j], expected) << i << ", " << j;
    }
}

TEST(Bf16MicroKernelTest, FollowsItsFormula) {
  if (pairInstructions() == PairInstructions::None)
    GTEST_SKIP() << "this processor has no instructions for bf16";
  std::mt19937 random(1);
  for (int kind = 1; kind <= int(pairInstructions()); ++kind)
    for (const bool add : {false, true}) {
      compare(PairInstructions(kind), 32, 32, 32, add, random);
      compare(PairInstructions(kind), 64, 96, 0, add, random);
      compare(PairInstructions(kind), 96, 64, 160, add, random);
      compare(PairInstructions(kind), 32, 256, 64, add, random);
    }
}

} // namespace
