#include "runtime/kernels/Gemm.h"

#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>
#include <type_traits>
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

template <class T = float> std::vector<T> randomValues(std::mt19937 &random, std::size_t count) {
  std::vector<T> values(count);
  for (T &value : values)
    value = T(float(int(random() % 2001) - 1000) / 1000.0f);
  return values;
}

/// A product with random strides.
template <class In, class Out> struct Product {
  Gemm g;
  std::vector<In> a, b;
  std::vector<Out> before;

  Product(std::mt19937 &random, const Gemm &extents, bool mayRepeat) : g(extents) {
    std::size_t sizeA, sizeB, sizeC;
    g.a = layOut(random, g.m, g.k, g.batch, mayRepeat, sizeA);
    g.b = layOut(random, g.k, g.n, g.batch, mayRepeat, sizeB);
    g.c = layOut(random, g.m, g.n, g.batch, false, sizeC);
    a = randomValues<In>(random, sizeA), b = randomValues<In>(random, sizeB);
    before = randomValues<Out>(random, sizeC);
  }

  static std::size_t at(const GemmStrides &s, const std::int64_t (&batch)[3], std::int64_t row,
                        std::int64_t column) {
    return static_cast<std::size_t>(batch[0] * s.batch[0] + batch[1] * s.batch[1] +
                                    batch[2] * s.batch[2] + row * s.row + column * s.column);
  }

  /// Element (i, j) of matrix `batch` of the result, by the definition.
  double expected(const std::int64_t (&batch)[3], std::int64_t i, std::int64_t j) const {
    double sum = g.beta != 0 ? double(float(before[at(g.c, batch, i, j)])) : 0.0;
    for (std::int64_t l = 0; l < g.k; ++l)
      sum += double(float(a[at(g.a, batch, i, l)])) * float(b[at(g.b, batch, l, j)]);
    return sum;
  }

  std::vector<Out> result(EpilogueCallback done = {}) const {
    std::vector<Out> c = before;
    kernels::gemm(g, a.data(), b.data(), c.data(), done);
    return c;
  }
};

/// How far a rounded sum may lie from the true one.
template <class Out> double tolerance(double value) {
  return std::is_same_v<Out, bf16> ? std::abs(value) / 128 + 2e-2 : 2e-5;
}

/// One random product against the definition in double.
template <class In = float, class Out = float> void compare(unsigned seed) {
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
  const Product<In, Out> product(random, g, true);
  const std::vector<Out> c = product.result();

  std::vector<double> expected(product.before.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = float(product.before[i]);
  for (std::int64_t x = 0; x < g.batch[0]; ++x)
    for (std::int64_t y = 0; y < g.batch[1]; ++y)
      for (std::int64_t z = 0; z < g.batch[2]; ++z)
        for (std::int64_t i = 0; i < g.m; ++i)
          for (std::int64_t j = 0; j < g.n; ++j)
            expected[product.at(product.g.c, {x, y, z}, i, j)] = product.expected({x, y, z}, i, j);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(float(c[i]), expected[i], tolerance<Out>(expected[i]))
        << "seed " << seed << ", element " << i;
}

/// A product of many rows, in some of its elements; what is told of rows as they are done.
template <class In = float, class Out = float>
void compareLarge(unsigned seed, std::int64_t m, std::int64_t n, std::int64_t k) {
  std::mt19937 random(seed);
  Gemm g;
  g.m = m, g.n = n, g.k = k;
  g.beta = float(random() % 2);
  const Product<In, Out> product(random, g, false);
  std::int64_t done = 0;
  const auto note = [](void *self, std::int64_t begin, std::int64_t end) {
    auto &done = *static_cast<std::int64_t *>(self);
    EXPECT_EQ(begin, done);
    EXPECT_GT(end, begin);
    done = end;
  };
  const std::vector<Out> c = product.result({note, &done});
  EXPECT_EQ(done, m);
  for (int sample = 0; sample < 100; ++sample) {
    const std::int64_t i = sample % 5 ? random() % m : m - 1, j = sample % 3 ? random() % n : n - 1;
    const double expected = product.expected({0, 0, 0}, i, j);
    ASSERT_NEAR(float(c[product.at(product.g.c, {0, 0, 0}, i, j)]), expected,
                tolerance<Out>(expected) + 1e-7 * double(k))
        << "seed " << seed << ", row " << i << ", column " << j;
  }
}

TEST(GemmTest, AgreesWithTheDefinition) {
  for (unsigned seed = 0; seed < 400; ++seed)
    compare(seed);
}

TEST(GemmTest, AgreesWithTheDefinitionInBFloat16) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    compare<bf16, float>(seed);
    compare<bf16, bf16>(seed);
  }
}

TEST(GemmTest, ManyRowsAreBlocks) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    compareLarge(seed, 512 + seed * 7, 256 + seed, 64 + seed);
    compareLarge<bf16, float>(seed, 512 + seed * 7, 256 + seed, 64 + seed);
    compareLarge<bf16, bf16>(seed, 512 + seed * 7, 256 + seed, 64 + seed);
  }
}

// On a processor that multiplies pairs: rows and columns beyond whole blocks of 32, odd numbers of
// terms, blocks of rows, panels of columns and parts of the sum.
TEST(GemmTest, PairsAreBlocks) {
  const std::int64_t extents[][3] = {{64, 64, 32},     {65, 97, 33},     {95, 64, 1},
                                     {257, 300, 769},  {1100, 200, 70},  {130, 1030, 1537},
                                     {600, 900, 2100}, {70, 5000, 3000}, {1300, 5200, 520}};
  unsigned seed = 0;
  for (const auto &[m, n, k] : extents)
    for (int round = 0; round < (m * n * k < 1e8 ? 2 : 1); ++round, ++seed) {
      compareLarge<bf16, float>(seed, m, n, k);
      compareLarge<bf16, bf16>(seed, m, n, k);
    }
}

TEST(GemmTest, LargeRightSidesArePanels) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    compareLarge(seed, 513, 8000, 400);             // panels of columns
    compareLarge(seed, 300, 400, 8000);             // parts of the sum
    compareLarge<bf16, bf16>(seed, 520, 770, 8500); // not parts, which bf16 would round
  }
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

TEST(GemmTest, ReportsErrorsOfTheLibrary) {
  Gemm g;
  g.m = -1, g.n = 2, g.k = 3;
  g.a = {3, 1, {}}, g.b = {2, 1, {}}, g.c = {2, 1, {}};
  float values[6] = {};
  EXPECT_NE(messageOf([&] {
              kernels::gemm(g, values, values, values);
            }).find("oneDNN refused the matrix product m=-1 n=2 k=3 of f32 to f32"),
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
