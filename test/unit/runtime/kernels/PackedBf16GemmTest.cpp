#include "runtime/kernels/PackedBf16Gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

/// Of this processor, best first.
std::vector<PairInstructions> allInstructions() {
  std::vector<PairInstructions> all;
  for (PairInstructions some : {PairInstructions::Matrices, PairInstructions::Vectors})
    if (some <= pairInstructions())
      all.push_back(some);
  return all;
}

std::vector<bf16> randomValues(std::mt19937 &random, std::int64_t count) {
  std::vector<bf16> values(static_cast<std::size_t>(count));
  for (bf16 &value : values)
    value = float(int(random() % 2001) - 1000) / 1000.0f;
  return values;
}

/// Lines of `terms` terms that lie either way, with a gap now and then; a line or a term that is
/// not one of them is NaN.
struct Side {
  PackedBf16Gemm::Side x;
  std::vector<bf16> values;
  Side(std::mt19937 &random, std::int64_t lines, std::int64_t terms) : x{1, 1} {
    const std::int64_t gap = std::int64_t(random() % 3);
    const bool along = random() % 2;
    (along ? x.line : x.term) = (along ? terms : lines) + gap;
    values.assign(static_cast<std::size_t>(lines * x.line + terms * x.term),
                  bf16(std::numeric_limits<float>::quiet_NaN()));
    const std::vector<bf16> numbers = randomValues(random, lines * terms);
    for (std::int64_t i = 0; i < lines; ++i)
      for (std::int64_t k = 0; k < terms; ++k)
        values[at(i, k)] = numbers[static_cast<std::size_t>(i * terms + k)];
  }
  std::size_t at(std::int64_t line, std::int64_t term) const {
    return static_cast<std::size_t>(line * x.line + term * x.term);
  }
  double operator()(std::int64_t line, std::int64_t term) const { return values[at(line, term)]; }
};

/// What a product asks for, and nothing behind it.
class Workspace {
public:
  explicit Workspace(const PackedBf16Gemm &product)
      : data(static_cast<unsigned char *>(
            std::aligned_alloc(64, (product.workspaceBytes() + 63) / 64 * 64))) {
    std::memset(data.get(), 0xff, product.workspaceBytes()); // NaN
  }
  void *get() const { return data.get(); }

private:
  struct Free {
    void operator()(unsigned char *bytes) const { std::free(bytes); }
  };
  std::unique_ptr<unsigned char, Free> data;
};

template <class Out> void compare(PairInstructions instructions, unsigned seed) {
  std::mt19937 random(seed);
  const auto extent = [&] { return std::int64_t(1 + random() % (random() % 4 ? 80 : 400)); };
  const std::int64_t rows = extent(), columns = extent(), terms = extent();
  const Side a(random, rows, terms), b(random, columns, terms);
  const std::int64_t stride = columns + std::int64_t(random() % 4);
  const bool add = random() % 2;
  const PackedBf16Gemm product({rows, columns, terms, a.x, b.x, stride, dtypeOf<Out>, add},
                               instructions);
  std::vector<Out> c(static_cast<std::size_t>(rows * stride), Out(0.5f));
  const Workspace workspace(product);
  std::int64_t done = 0;
  const auto note = [](void *self, std::int64_t begin, std::int64_t end) {
    auto &done = *static_cast<std::int64_t *>(self);
    EXPECT_EQ(begin, done);
    done = end;
  };
  product.run(a.values.data(), b.values.data(), c.data(), workspace.get(), {note, &done});
  EXPECT_EQ(done, rows);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < stride; ++j) {
      double expected = add || j >= columns ? 0.5 : 0;
      for (std::int64_t k = 0; j < columns && k < terms; ++k)
        expected += a(i, k) * b(j, k);
      const double slack = sizeof(Out) == 2 ? std::abs(expected) / 256 : 2e-4;
      ASSERT_NEAR(float(c[static_cast<std::size_t>(i * stride + j)]), expected, slack + 1e-5)
          << "seed " << seed << ", " << rows << " x " << columns << " x " << terms << ", row " << i
          << ", column " << j;
    }
}

TEST(PackedBf16GemmTest, AgreesWithTheDefinition) {
  if (allInstructions().empty())
    GTEST_SKIP() << "this processor does not multiply pairs";
  for (PairInstructions instructions : allInstructions())
    for (unsigned seed = 0; seed < 60; ++seed) {
      compare<float>(instructions, seed);
      compare<bf16>(instructions, seed);
    }
}

// What is told of rows may use the processor's tiles for a product of its own.
TEST(PackedBf16GemmTest, RowsMayBeMultipliedOn) {
  if (allInstructions().empty())
    GTEST_SKIP() << "this processor does not multiply pairs";
  std::mt19937 random(1);
  const Side a(random, 600, 40), b(random, 40, 40);
  struct Inner {
    const Side &a, &b;
    PackedBf16Gemm product;
    std::vector<float> c;
    Workspace workspace;
    Inner(const Side &a, const Side &b)
        : a(a), b(b), product({600, 40, 40, a.x, b.x, 40, DType::F32, false}), c(600 * 40),
          workspace(product) {}
    void run(EpilogueCallback done) {
      product.run(a.values.data(), b.values.data(), c.data(), workspace.get(), done);
    }
  };
  Inner inner(a, b), outer(a, b);
  const auto call = [](void *self, std::int64_t, std::int64_t) {
    static_cast<Inner *>(self)->run({});
  };
  outer.run({call, &inner});
  EXPECT_EQ(outer.c, inner.c);
}

// Large results of floats pass the caches by where nobody waits for their rows: the same bits.
TEST(PackedBf16GemmTest, LargeResultsPassTheCaches) {
  if (allInstructions().empty())
    GTEST_SKIP() << "this processor does not multiply pairs";
  std::mt19937 random(3);
  for (const auto &[rows, columns, terms] :
       {std::array{1100, 1003, 70}, std::array{1056, 1024, 33}, std::array{1030, 1030, 1700}}) {
    const Side a(random, rows, terms), b(random, columns, terms);
    const std::int64_t stride = (columns + 31) / 16 * 16;
    const PackedBf16Gemm product({rows, columns, terms, a.x, b.x, stride, DType::F32, false});
    const Workspace workspace(product);
    const auto count = static_cast<std::size_t>(rows * stride);
    std::vector<float> near(count, 7), memory(count + 16, 7);
    float *far = memory.data();
    while (reinterpret_cast<std::uintptr_t>(far) % 64)
      ++far;
    const auto wait = [](void *, std::int64_t, std::int64_t) {};
    product.run(a.values.data(), b.values.data(), near.data(), workspace.get(), {wait, nullptr});
    product.run(a.values.data(), b.values.data(), far, workspace.get(), {});
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(far[i], near[i]) << rows << " x " << columns << ", element " << i;
  }
}

TEST(PackedBf16GemmTest, WorkspaceIsBounded) {
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    const auto extent = [&] {
      return std::int64_t(1) + random() % (std::int64_t(1) << random() % 20);
    };
    const std::int64_t rows = extent(), columns = extent(), terms = extent();
    const PackedBf16Gemm product({rows, columns, terms, {}, {}, columns, DType::F32, false},
                                 PairInstructions::Vectors);
    ASSERT_LE(product.workspaceBytes(), std::size_t(17) << 20)
        << rows << " x " << columns << " x " << terms;
  }
}

} // namespace
