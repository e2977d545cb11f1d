//===- MatmulTest.cpp - products through cuBLASLt, under the emulator and on a GPU --===//

#include "runtime/kernels/cuda/Matmul.h"
#include "runtime/kernels/Gemm.h"
#include "test/unit/cuda/DeviceKernels.h"

#ifdef FSDP_CUDA_EMULATOR
#include <gmock/gmock.h>
#endif

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <sstream>
#include <vector>

using namespace fsdp::rt;

namespace {

class Matmul : public DeviceKernels {};

std::int64_t extentOf(const Gemm &g, const GemmStrides &x, std::int64_t rows,
                      std::int64_t columns) {
  std::int64_t last = (rows - 1) * x.row + (columns - 1) * x.column;
  for (int d = 0; d < 3; ++d)
    last += (g.batch[d] - 1) * x.batch[d];
  return last + 1;
}

std::string print(const Gemm &g) {
  std::ostringstream out;
  out << "m=" << g.m << " n=" << g.n << " k=" << g.k << " batch=" << g.batch[0] << "," << g.batch[1]
      << "," << g.batch[2] << " beta=" << g.beta;
  for (const GemmStrides *x : {&g.a, &g.b, &g.c})
    out << " [" << x->row << "," << x->column << " | " << x->batch[0] << "," << x->batch[1] << ","
        << x->batch[2] << "]";
  return out.str();
}

/// Random sizes, layouts, gaps and orders of the batch dimensions.
struct Generator {
  std::mt19937 random;
  explicit Generator(unsigned seed) : random(seed) {}
  std::int64_t below(std::int64_t n) { return std::int64_t(random() % std::uint64_t(n)); }
  bool coin() { return random() % 2; }

  GemmStrides strides(const Gemm &g, std::int64_t rows, std::int64_t columns, bool mayRepeat) {
    GemmStrides x;
    std::int64_t size;
    if (coin()) {
      x.column = 1, x.row = columns + (coin() ? below(5) : 0);
      size = rows * x.row;
    } else {
      x.row = 1, x.column = rows + (coin() ? below(5) : 0);
      size = columns * x.column;
    }
    if (rows == 1 && coin())
      x.row = below(7);
    if (columns == 1 && coin())
      x.column = below(7);
    int order[3] = {0, 1, 2};
    if (coin())
      std::shuffle(order, order + 3, random);
    for (int i = 2; i >= 0; --i) {
      if (mayRepeat && below(4) == 0)
        continue; // the operand does not vary along it
      x.batch[order[i]] = size + (coin() ? below(3) : 0);
      size = x.batch[order[i]] * g.batch[order[i]];
    }
    return x;
  }

  Gemm gemm() {
    Gemm g;
    const auto extent = [&] { return below(5) == 0 ? 1 : 1 + below(below(3) ? 20 : 80); };
    g.m = extent(), g.n = extent(), g.k = below(12) == 0 ? 0 : extent();
    for (std::int64_t &batch : g.batch)
      batch = coin() ? 1 : 1 + below(4);
    const std::int64_t k = std::max<std::int64_t>(g.k, 1);
    g.a = strides(g, g.m, k, true);
    g.b = strides(g, k, g.n, true);
    g.c = strides(g, g.m, g.n, false);
    g.beta = float(coin());
    return g;
  }
};

template <class T> std::vector<T> randomValues(std::int64_t count, std::mt19937 &random) {
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<T> result(static_cast<std::size_t>(count));
  for (T &value : result)
    value = T(values(random));
  return result;
}

/// Visits every element of c: `visit(i, j, place in c, place of row i in a, place of column j in
/// b)`.
template <class Visit> void forEach(const Gemm &g, Visit visit) {
  for (std::int64_t x = 0; x < g.batch[0]; ++x)
    for (std::int64_t y = 0; y < g.batch[1]; ++y)
      for (std::int64_t z = 0; z < g.batch[2]; ++z)
        for (std::int64_t i = 0; i < g.m; ++i)
          for (std::int64_t j = 0; j < g.n; ++j) {
            const auto start = [&](const GemmStrides &s) {
              return x * s.batch[0] + y * s.batch[1] + z * s.batch[2];
            };
            visit(start(g.c) + i * g.c.row + j * g.c.column, start(g.a) + i * g.a.row,
                  start(g.b) + j * g.b.column);
          }
}

/// Runs a product on buffers that start `shift` elements into an allocation and compares it with
/// double precision. Memory outside c must not change.
template <class In, class Out>
void check(Blas &blas, const Gemm &g, unsigned seed, double tolerance) {
  SCOPED_TRACE(print(g));
  std::mt19937 random(seed);
  const std::int64_t shift = seed % 4;
  const std::int64_t k = std::max<std::int64_t>(g.k, 1);
  const auto hostA = randomValues<In>(extentOf(g, g.a, g.m, k), random);
  const auto hostB = randomValues<In>(extentOf(g, g.b, k, g.n), random);
  const auto before = randomValues<Out>(extentOf(g, g.c, g.m, g.n), random);
  Device<In> a(hostA, shift), b(hostB, shift);
  Device<Out> c(before, shift);
  cudaStream_t stream;
  StreamWorkspace scratch;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const In *inA = a, *inB = b;
  const cublasStatus_t status = matmul(blas, g, inA, inB, c.data(), WorkStream{stream, &scratch});
  ASSERT_EQ(status, CUBLAS_STATUS_SUCCESS) << cublasLtGetStatusString(status);
  OK(cudaStreamSynchronize(stream));
  const std::vector<Out> after = c.values();
  std::vector<bool> written(before.size());
  int bad = 0;
  forEach(g, [&](std::int64_t at, std::int64_t row, std::int64_t column) {
    double sum = g.beta != 0 ? double(float(before[at])) : 0;
    for (std::int64_t l = 0; l < g.k; ++l)
      sum +=
          double(float(hostA[row + l * g.a.column])) * double(float(hostB[column + l * g.b.row]));
    written[at] = true;
    bad += !(std::abs(double(float(after[at])) - sum) <= tolerance * (1 + std::abs(sum)));
  });
  for (std::size_t i = 0; i < before.size(); ++i)
    bad += !written[i] && float(after[i]) != float(before[i]);
  EXPECT_EQ(bad, 0);
  OK(cudaStreamDestroy(stream));
}

TEST_F(Matmul, RandomProducts) {
  Blas blas;
  for (unsigned seed = 0; seed < 400 && !HasFailure(); ++seed) {
    const Gemm g = Generator(seed).gemm();
    check<float, float>(blas, g, seed, 2e-5);
    if (seed % 2)
      check<bf16, float>(blas, g, seed, 2e-5);
    else
      check<bf16, bf16>(blas, g, seed, 5e-3);
  }
}

TEST_F(Matmul, PreparesAProductOnce) {
  Blas blas;
  Gemm g;
  g.m = 4, g.n = 6, g.k = 100;
  g.a = {100, 1, {}}, g.b = {6, 1, {}}, g.c = {6, 1, {}};
  for (unsigned i = 0; i < 3; ++i)
    check<float, float>(blas, g, 4 * i, 2e-5);
  EXPECT_EQ(blas.plans(), 1u);
  g.beta = 1;
  check<float, float>(blas, g, 0, 2e-5);
  EXPECT_EQ(blas.plans(), 1u);
  check<float, float>(blas, g, 1, 2e-5); // other alignment
  check<bf16, float>(blas, g, 0, 2e-5);
  EXPECT_EQ(blas.plans(), 3u);
}

// Checks of the emulator only, and those that need the CPU's library.
#ifdef FSDP_CUDA_EMULATOR

TEST_F(Matmul, SameAsOnTheCpu) {
  Blas blas;
  StreamWorkspace scratch;
  for (unsigned seed = 1000; seed < 1040; ++seed) {
    const Gemm g = Generator(seed).gemm();
    SCOPED_TRACE(print(g));
    std::mt19937 random(seed);
    const std::int64_t k = std::max<std::int64_t>(g.k, 1);
    const auto hostA = randomValues<float>(extentOf(g, g.a, g.m, k), random);
    const auto hostB = randomValues<float>(extentOf(g, g.b, k, g.n), random);
    auto expected = randomValues<float>(extentOf(g, g.c, g.m, g.n), random);
    Device<float> a(hostA), b(hostB), c(expected);
    kernels::gemm(g, hostA.data(), hostB.data(), expected.data());
    ASSERT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
              CUBLAS_STATUS_SUCCESS);
    const std::vector<float> got = c.values();
    forEach(g, [&](std::int64_t at, std::int64_t, std::int64_t) {
      EXPECT_NEAR(got[at], expected[at], 2e-5 * (1 + std::abs(expected[at])));
    });
  }
}

TEST_F(Matmul, AlgorithmsUseTheStreamsScratchMemory) {
  emulator::configure("deferred");
  Blas blas;
  Gemm g;
  g.m = 4, g.n = 6, g.k = 100;
  g.a = {100, 1, {}}, g.b = {6, 1, {}}, g.c = {6, 1, {}};
  Device<float> a(400), b(600), c(24);
  cudaStream_t streams[2];
  StreamWorkspace scratch[2];
  for (cudaStream_t &stream : streams)
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {streams[0], nullptr}),
            CUBLAS_STATUS_INVALID_VALUE);
  for (int i = 0; i < 3; ++i)
    for (int s = 0; s < 2; ++s) {
      ASSERT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {streams[s], &scratch[s]}),
                CUBLAS_STATUS_SUCCESS);
      EXPECT_EQ(scratch[s].bytes(), 4096u);
    }
  for (cudaStream_t stream : streams) {
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
  }
}

TEST_F(Matmul, RefusesInvalidMatrices) {
  Blas blas;
  StreamWorkspace scratch;
  Gemm g;
  g.m = 4, g.n = 6, g.k = 5;
  g.a = {10, 2, {}}, g.b = {6, 1, {}}, g.c = {6, 1, {}};
  Device<float> a(100), b(100), c(100);
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_NOT_SUPPORTED);
  g.a = {5, 1, {}};
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_SUCCESS);
  g.batch[1] = 2; // its results would overlap
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_NOT_SUPPORTED);
  g.batch[1] = 1;
  g.n = 30; // b has 100 elements
  g.b = {30, 1, {}}, g.c = {30, 1, {}};
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE),
              testing::HasSubstr("got 600 bytes at 0 of an allocation"));
}

/// A product of ones and thirds, of `m` rows.
std::vector<float> thirds(std::int64_t m) {
  Blas blas;
  StreamWorkspace scratch;
  Gemm g;
  g.m = m, g.n = 2, g.k = 1000;
  g.a = {1000, 1, {}}, g.b = {2, 1, {}}, g.c = {2, 1, {}};
  Device<float> a(std::vector<float>(1000 * m, 1.0f / 3)), b(std::vector<float>(2000, 1.0f)),
      c(std::vector<float>(2 * m));
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_SUCCESS);
  return c.values();
}

TEST_F(Matmul, TheOrderOfSumsIsOfTheSizes) {
  EXPECT_EQ(thirds(1)[0], thirds(2)[0]);
  emulator::configure("products=split");
  std::set<float> sums;
  for (std::int64_t m = 1; m < 8; ++m)
    sums.insert(thirds(m)[0]);
  EXPECT_GT(sums.size(), 1u);
  for (float sum : sums)
    EXPECT_NEAR(sum, 1000.0f / 3, 1e-2);
  EXPECT_EQ(thirds(3), thirds(3));
}

// As exact as one rounding: the sums of parts, which may be larger than the whole, are not rounded.
TEST_F(Matmul, PartsOfSumsAreNotRoundedToTheTypeOfTheResult) {
  emulator::configure("products=split");
  Blas blas;
  Gemm g;
  g.m = 9, g.n = 7, g.k = 1000;
  g.a = {1000, 1, {}}, g.b = {7, 1, {}}, g.c = {7, 1, {}};
  for (unsigned seed = 0; seed < 4; ++seed)
    check<bf16, bf16>(blas, g, 4 * seed, 4e-3); // 2^-8 is half of the last place
}

TEST_F(Matmul, ReportsMissingAlgorithms) {
  Blas blas;
  StreamWorkspace scratch;
  Gemm g;
  g.m = g.n = g.k = 4;
  g.a = g.b = g.c = {4, 1, {}};
  Device<float> a(16), b(16), c(16);
  emulator::configure("products=none:" + std::to_string(emulator::statistics().algorithms + 1));
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_STREQ(cublasLtGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED),
               "no algorithm is known for this problem");
  EXPECT_EQ(matmul(blas, g, a.data(), b.data(), c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_SUCCESS);
}

TEST_F(Matmul, WithoutADevice) {
  emulator::configure("devices=0");
  Blas blas;
  Gemm g;
  g.m = g.n = g.k = 1;
  EXPECT_EQ(matmul(blas, g, static_cast<const float *>(nullptr), nullptr, nullptr, {}),
            CUBLAS_STATUS_NOT_INITIALIZED);
}

#endif // FSDP_CUDA_EMULATOR

} // namespace
