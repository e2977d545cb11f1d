#include "runtime/Gemm.h"

#include "test/unit/runtime/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

using namespace fsdp::rt;

namespace {

/// Row-major or column-major strides of a batch of matrices, with gaps now and then.
GemmStrides layOut(std::mt19937 &random, std::int64_t rows, std::int64_t columns,
                   const std::int64_t (&batch)[3], bool mayRepeat, std::size_t &size) {
  GemmStrides strides;
  const std::int64_t gap = random() % 3 == 0 ? std::int64_t(random() % 5) : 0;
  std::int64_t next;
  if (random() % 2) {
    strides.column = 1, strides.row = columns + gap;
    next = rows * strides.row;
  } else {
    strides.row = 1, strides.column = rows + gap;
    next = columns * strides.column;
  }
  for (int d = 2; d >= 0; --d) {
    if (mayRepeat && random() % 4 == 0)
      continue; // stride 0: the same matrix for every index
    strides.batch[d] = next;
    next *= std::max<std::int64_t>(batch[d], 1);
  }
  size = static_cast<std::size_t>(std::max<std::int64_t>(next, 1)) + 8;
  return strides;
}

std::vector<float> randomValues(std::mt19937 &random, std::size_t count) {
  std::vector<float> values(count);
  for (float &value : values)
    value = float(int(random() % 2001) - 1000) / 1000.0f;
  return values;
}

/// One random product against the definition in double.
void compare(unsigned seed) {
  std::mt19937 random(seed);
  const auto extent = [&] {
    constexpr std::int64_t some[] = {0, 1, 1, 2, 3, 5, 8, 16, 17, 33, 64, 70};
    return some[random() % std::size(some)];
  };
  Gemm g;
  g.m = extent(), g.n = extent(), g.k = extent();
  for (std::int64_t &b : g.batch)
    b = random() % 3 ? 1 : std::int64_t(random() % 4);
  g.beta = float(random() % 2);
  std::size_t sizeA, sizeB, sizeC;
  g.a = layOut(random, g.m, g.k, g.batch, true, sizeA);
  g.b = layOut(random, g.k, g.n, g.batch, true, sizeB);
  g.c = layOut(random, g.m, g.n, g.batch, false, sizeC);
  const auto a = randomValues(random, sizeA), b = randomValues(random, sizeB);
  const auto before = randomValues(random, sizeC);
  auto c = before;
  kernels::gemm(g, a.data(), b.data(), c.data());

  auto expected = before;
  for (std::int64_t x = 0; x < g.batch[0]; ++x)
    for (std::int64_t y = 0; y < g.batch[1]; ++y)
      for (std::int64_t z = 0; z < g.batch[2]; ++z)
        for (std::int64_t i = 0; i < g.m; ++i)
          for (std::int64_t j = 0; j < g.n; ++j) {
            const auto at = [&](const GemmStrides &s, std::int64_t r, std::int64_t q) {
              return static_cast<std::size_t>(x * s.batch[0] + y * s.batch[1] + z * s.batch[2] +
                                              r * s.row + q * s.column);
            };
            double sum = g.beta != 0 ? before[at(g.c, i, j)] : 0.0;
            for (std::int64_t l = 0; l < g.k; ++l)
              sum += double(a[at(g.a, i, l)]) * b[at(g.b, l, j)];
            expected[at(g.c, i, j)] = float(sum);
          }
  for (std::size_t i = 0; i < sizeC; ++i)
    ASSERT_NEAR(c[i], expected[i], 2e-5) << "seed " << seed << ", element " << i;
}

TEST(GemmTest, AgreesWithTheDefinition) {
  for (unsigned seed = 0; seed < 400; ++seed)
    compare(seed);
}

// The strides of extents of 1 mean nothing and must not matter.
TEST(GemmTest, IgnoresStridesOfExtentOne) {
  const float a[] = {2, 9, 9, 9, 3}, b[] = {5, 7};
  float c[] = {-1, -1};
  Gemm g;
  g.m = 1, g.n = 1, g.k = 2;
  g.a = {77, 4, {}}, g.b = {1, 99, {}}, g.c = {13, 17, {}};
  kernels::gemm(g, a, b, c);
  EXPECT_EQ(c[0], 2 * 5 + 3 * 7);
  EXPECT_EQ(c[1], -1);
}

TEST(GemmTest, SaysWhatTheLibraryRefuses) {
  Gemm g;
  g.m = -1, g.n = 2, g.k = 3;
  g.a = {3, 1, {}}, g.b = {2, 1, {}}, g.c = {2, 1, {}};
  float values[6] = {};
  EXPECT_NE(messageOf([&] {
              kernels::gemm(g, values, values, values);
            }).find("oneDNN refused the matrix product m=-1 n=2 k=3"),
            std::string::npos);
}

TEST(GemmTest, ThreadsDoNotDisturbOneAnother) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (unsigned round = 0; round < 3; ++round)
        for (unsigned seed = 0; seed < 40; ++seed)
          compare(t * 10 + seed);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(GemmTest, IsReproducible) {
  std::mt19937 random(5);
  const auto a = randomValues(random, 70 * 50), b = randomValues(random, 50 * 90);
  Gemm g;
  g.m = 70, g.n = 90, g.k = 50;
  g.a = {50, 1, {}}, g.b = {90, 1, {}}, g.c = {90, 1, {}};
  std::vector<float> first(70 * 90), second(70 * 90);
  kernels::gemm(g, a.data(), b.data(), first.data());
  kernels::gemm(g, a.data(), b.data(), second.data());
  EXPECT_EQ(first, second);
}

} // namespace
