//===- ProductEpilogueTest.cpp - what cuBLASLt computes behind a product -----------===//
//
// Under the emulator and on a GPU, against double precision.
//
//===----------------------------------------------------------------------===//

#include "base/Error.h"
#include "runtime/kernels/cuda/Matmul.h"
#include "test/unit/cuda/DeviceKernels.h"

#ifdef FSDP_CUDA_EMULATOR
#include <gmock/gmock.h>
#endif

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

class ProductEpilogues : public DeviceKernels {};

/// A row-major product of dense matrices.
Gemm productOf(std::int64_t m, std::int64_t n, std::int64_t k) {
  Gemm g;
  g.m = m, g.n = n, g.k = k;
  g.a = {k, 1, {}}, g.b = {n, 1, {}}, g.c = {n, 1, {}};
  return g;
}

double geluOf(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/// Operands of a product with an epilogue, on the device.
template <class T> struct Operands {
  std::vector<T> hostA, hostB, hostBias, hostResidual;
  Device<T> a, b, bias, residual, sum, c;

  static std::vector<T> random(std::int64_t count, std::mt19937 &from) {
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<T> result(static_cast<std::size_t>(count));
    for (T &value : result)
      value = T(values(from));
    return result;
  }

  Operands(const Gemm &g, std::mt19937 from)
      : hostA(random(g.m * g.k, from)), hostB(random(g.k * g.n, from)), hostBias(random(g.n, from)),
        hostResidual(random(g.m * g.n, from)), a(hostA), b(hostB), bias(hostBias),
        residual(hostResidual), sum(std::vector<T>(hostResidual.size(), T(7.0f))),
        c(std::vector<T>(hostResidual.size(), T(7.0f))) {}

  /// Element (i, j) of the product, in double.
  double productAt(const Gemm &g, std::int64_t i, std::int64_t j) const {
    const auto valueOf = [](const std::vector<T> &matrix, std::int64_t at) {
      return double(float(matrix[static_cast<std::size_t>(at)]));
    };
    double sum = 0;
    for (std::int64_t l = 0; l < g.k; ++l)
      sum += valueOf(hostA, i * g.a.row + l * g.a.column) *
             valueOf(hostB, l * g.b.row + j * g.b.column);
    return sum;
  }

  EpilogueOperands choose(bool hasBias, bool hasResidual, bool gelu, bool keepsSum) {
    return {hasBias ? bias.data() : nullptr, hasResidual ? residual.data() : nullptr,
            gelu ? ProductFunction::gelu : ProductFunction::none, keepsSum ? sum.data() : nullptr,
            nullptr};
  }
};

template <class T> void compare(const Gemm &g, bool bias, bool residual, bool gelu, bool keepsSum) {
  SCOPED_TRACE(testing::Message() << "m=" << g.m << " n=" << g.n << " k=" << g.k << " bias=" << bias
                                  << " residual=" << residual << " gelu=" << gelu
                                  << " sum=" << keepsSum);
  constexpr cudaDataType_t type = CudaDataType<T>::value;
  const double tolerance = type == CUDA_R_32F ? 2e-5 : 5e-3;
  Operands<T> on(g, std::mt19937(unsigned(g.m * 100 + g.n)));
  const EpilogueOperands epilogue = on.choose(bias, residual, gelu, keepsSum);
  Blas blas;
  StreamWorkspace scratch;
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_TRUE(blas.takes(g, type, type, on.a.data(), on.b.data(), on.c.data(), epilogue));
  ASSERT_EQ(blas.multiply(g, type, type, on.a.data(), on.b.data(), on.c.data(),
                          WorkStream{stream, &scratch}, epilogue),
            CUBLAS_STATUS_SUCCESS)
      << cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(blas.plans(), 1u);
  OK(cudaStreamSynchronize(stream));
  const std::vector<T> results = on.c.values(), sums = on.sum.values();
  int bad = 0;
  for (std::int64_t i = 0; i < g.m; ++i)
    for (std::int64_t j = 0; j < g.n; ++j) {
      const auto at = static_cast<std::size_t>(i * g.n + j);
      double sum = on.productAt(g, i, j);
      sum += bias ? double(float(on.hostBias[static_cast<std::size_t>(j)])) : 0;
      sum += residual ? double(float(on.hostResidual[at])) : 0;
      const auto isNear = [&](T got, double expected) {
        return std::abs(double(float(got)) - expected) <= tolerance * (1 + std::abs(expected));
      };
      bad += !isNear(results[at], gelu ? geluOf(sum) : sum);
      bad += !isNear(sums[at], keepsSum ? sum : 7);
    }
  EXPECT_EQ(bad, 0);
  OK(cudaStreamDestroy(stream));
}

/// Those of getLibraryEpilogue (dialect/nn/LibraryEpilogue.h).
template <class T> void compareAll(const Gemm &g) {
  for (bool bias : {false, true}) {
    if (bias)
      compare<T>(g, bias, /*residual=*/false, /*gelu=*/false, /*keepsSum=*/false);
    compare<T>(g, bias, /*residual=*/true, /*gelu=*/false, /*keepsSum=*/false);
    compare<T>(g, bias, /*residual=*/false, /*gelu=*/true, /*keepsSum=*/false);
    if (g.n % 8 == 0)
      compare<T>(g, bias, /*residual=*/false, /*gelu=*/true, /*keepsSum=*/true);
  }
}

TEST_F(ProductEpilogues, AreComputedWithTheProduct) {
  for (const Gemm &g : {productOf(32, 48, 64), productOf(9, 24, 100), productOf(5, 7, 16)}) {
    compareAll<bf16>(g);
    compareAll<float>(g);
  }
}

TEST_F(ProductEpilogues, GradientsOfGelu) {
  const Gemm g = productOf(32, 48, 64);
  Operands<bf16> on(g, std::mt19937(6));
  Blas blas;
  StreamWorkspace scratch;
  EpilogueOperands epilogue;
  epilogue.function = ProductFunction::geluGradient;
  epilogue.argument = on.residual.data();
  ASSERT_TRUE(
      blas.takes(g, CUDA_R_16BF, CUDA_R_16BF, on.a.data(), on.b.data(), on.c.data(), epilogue));
  ASSERT_EQ(blas.multiply(g, CUDA_R_16BF, CUDA_R_16BF, on.a.data(), on.b.data(), on.c.data(),
                          {nullptr, &scratch}, epilogue),
            CUBLAS_STATUS_SUCCESS);
  OK(cudaDeviceSynchronize());
  const std::vector<bf16> results = on.c.values();
  for (std::size_t at = 0; at < results.size(); ++at) {
    const double sum = on.productAt(g, std::int64_t(at) / g.n, std::int64_t(at) % g.n);
    const double x = double(float(on.hostResidual[at])), step = 1e-4;
    const double slope = (geluOf(x + step) - geluOf(x - step)) / (2 * step);
    EXPECT_NEAR(double(float(results[at])), sum * slope, 5e-3 * (1 + std::abs(sum * slope)));
  }
}

/// The sum over the k rows of an operand, with the gradient of a weight that lies either way round.
template <class In> void compareOperandSum(bool ofRight) {
  SCOPED_TRACE(ofRight ? "right" : "left");
  constexpr std::int64_t m = 24, n = 40, k = 100;
  Gemm g = productOf(m, n, k);
  g.a = {1, m, {}}; // both have rows of their own dimension
  std::mt19937 from(7);
  const auto hostA = Operands<In>::random(k * m, from), hostB = Operands<In>::random(k * n, from);
  Device<In> a(hostA), b(hostB);
  Device<float> c(std::vector<float>(m * n, 7)), sum(std::vector<float>(ofRight ? n : m, 7));
  EpilogueOperands epilogue;
  epilogue.operandSum = sum.data();
  epilogue.sumsRight = ofRight;
  Blas blas;
  StreamWorkspace scratch;
  constexpr cudaDataType_t in = CudaDataType<In>::value;
  ASSERT_TRUE(blas.takes(g, in, CUDA_R_32F, a.data(), b.data(), c.data(), epilogue));
  ASSERT_EQ(
      blas.multiply(g, in, CUDA_R_32F, a.data(), b.data(), c.data(), {nullptr, &scratch}, epilogue),
      CUBLAS_STATUS_SUCCESS);
  OK(cudaDeviceSynchronize());
  const auto valueOf = [](const std::vector<In> &matrix, std::int64_t at) {
    return double(float(matrix[static_cast<std::size_t>(at)]));
  };
  const std::vector<float> sums = sum.values(), results = c.values();
  for (std::int64_t at = 0; at < std::int64_t(sums.size()); ++at) {
    double expected = 0;
    for (std::int64_t l = 0; l < k; ++l)
      expected += ofRight ? valueOf(hostB, l * n + at) : valueOf(hostA, l * m + at);
    EXPECT_NEAR(sums[static_cast<std::size_t>(at)], expected, 1e-4);
  }
  double expected = 0;
  for (std::int64_t l = 0; l < k; ++l)
    expected += valueOf(hostA, l * m + 3) * valueOf(hostB, l * n + 5);
  EXPECT_NEAR(results[3 * n + 5], expected, 1e-4);
}

TEST_F(ProductEpilogues, SumsOfOperands) {
  for (bool ofRight : {false, true}) {
    compareOperandSum<bf16>(ofRight);
    compareOperandSum<float>(ofRight);
  }
}

TEST_F(ProductEpilogues, SumsOfOperandsThatDoNotLieInRowsAreLeftToAKernel) {
  Gemm g = productOf(8, 16, 4);
  Operands<float> on(g, std::mt19937(8));
  Device<float> sum(16);
  Blas blas;
  EpilogueOperands epilogue;
  epilogue.operandSum = sum.data();
  const auto takes = [&](bool ofRight) {
    epilogue.sumsRight = ofRight;
    return blas.takes(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(), epilogue);
  };
  EXPECT_FALSE(takes(false)); // rows of a are rows of the result
  EXPECT_TRUE(takes(true));
  g.b = {1, 4, {}};
  EXPECT_FALSE(takes(true));
  g.a = {1, 8, {}};
  EXPECT_TRUE(takes(false));
}

TEST_F(ProductEpilogues, TheRightSideMayBeTransposed) {
  Gemm g = productOf(16, 24, 32);
  g.b = {1, 32, {}};
  Operands<float> on(g, std::mt19937(1));
  Blas blas;
  StreamWorkspace scratch;
  const EpilogueOperands epilogue = on.choose(true, true, false, false);
  ASSERT_TRUE(
      blas.takes(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(), epilogue));
  ASSERT_EQ(blas.multiply(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(),
                          {nullptr, &scratch}, epilogue),
            CUBLAS_STATUS_SUCCESS);
  OK(cudaDeviceSynchronize());
  const double sum =
      on.productAt(g, 3, 5) + double(on.hostBias[5]) + double(on.hostResidual[3 * 24 + 5]);
  EXPECT_NEAR(on.c.values()[3 * 24 + 5], sum, 1e-5);
}

/// Whether an f32 product of these operands takes a bias and keeps the sum before GELU.
bool takes(Blas &blas, const Gemm &g, Operands<float> &on, bool keepsSum) {
  return blas.takes(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(),
                    on.choose(true, false, keepsSum, keepsSum));
}

TEST_F(ProductEpilogues, AreLeftToAKernelWhereNoCallHasThem) {
  const Gemm g = productOf(8, 12, 4);
  Operands<float> on(g, std::mt19937(2));
  Blas blas;
  EXPECT_TRUE(takes(blas, g, on, false));
  // Rows of an auxiliary matrix begin at multiples of eight elements.
  EXPECT_FALSE(takes(blas, g, on, true));
  Gemm other = g;
  other.c = {1, 8, {}}; // a bias would have an element for each row
  EXPECT_FALSE(takes(blas, other, on, false));
  other = g;
  other.k = 0;
  EXPECT_FALSE(takes(blas, other, on, false));
  other = g;
  other.m = 4;
  other.batch[0] = 2;
  other.a.batch[0] = 16, other.c.batch[0] = 48;
  EXPECT_FALSE(takes(blas, other, on, false));
  ASSERT_EQ(setenv("FSDP_EPILOGUES", "0", 1), 0);
  Blas without;
  EXPECT_FALSE(takes(without, g, on, false));
  ASSERT_EQ(unsetenv("FSDP_EPILOGUES"), 0);
}

TEST_F(ProductEpilogues, OtherValuesOfTheVariableAreRefused) {
  ASSERT_EQ(setenv("FSDP_EPILOGUES", "yes", 1), 0);
  std::string said;
  try {
    Blas blas;
  } catch (const base::Error &error) {
    said = error.what();
  }
  ASSERT_EQ(unsetenv("FSDP_EPILOGUES"), 0);
  EXPECT_EQ(said, "environment variable 'FSDP_EPILOGUES' got 'yes', expected 0 or 1");
}

#ifdef FSDP_CUDA_EMULATOR

TEST_F(ProductEpilogues, AMissingAlgorithmIsRemembered) {
  const Gemm g = productOf(8, 16, 4);
  Operands<float> on(g, std::mt19937(3));
  Blas blas;
  emulator::configure("products=none:" + std::to_string(emulator::statistics().algorithms + 1));
  EXPECT_FALSE(takes(blas, g, on, false));
  EXPECT_FALSE(takes(blas, g, on, false));
  EXPECT_EQ(blas.plans(), 1u);
  // The product alone has one.
  StreamWorkspace scratch;
  EXPECT_EQ(matmul(blas, g, on.a.data(), on.b.data(), on.c.data(), {nullptr, &scratch}),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(blas.plans(), 2u);
}

TEST_F(ProductEpilogues, OperandsHaveTheAlignmentThatTheAlgorithmWasFoundFor) {
  const Gemm g = productOf(8, 16, 4);
  Operands<float> on(g, std::mt19937(4));
  Device<float> shifted(on.hostBias, 1);
  Blas blas;
  StreamWorkspace scratch;
  for (const float *bias : {on.bias.data(), shifted.data()}) {
    EpilogueOperands epilogue;
    epilogue.bias = bias;
    EXPECT_TRUE(
        blas.takes(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(), epilogue));
    EXPECT_EQ(blas.multiply(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(),
                            {nullptr, &scratch}, epilogue),
              CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(blas.plans(), 2u);
  OK(cudaDeviceSynchronize());
}

TEST_F(ProductEpilogues, TheEmulatorChecksTheirMemory) {
  const Gemm g = productOf(8, 16, 4);
  Operands<float> on(g, std::mt19937(5));
  Device<float> few(8);
  Blas blas;
  StreamWorkspace scratch;
  EpilogueOperands epilogue;
  epilogue.bias = few.data();
  EXPECT_EQ(blas.multiply(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(),
                          {nullptr, &scratch}, epilogue),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE), testing::HasSubstr("the bias"));
  epilogue = {nullptr, nullptr, ProductFunction::gelu, few.data(), nullptr};
  EXPECT_EQ(blas.multiply(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(),
                          {nullptr, &scratch}, epilogue),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE),
              testing::HasSubstr("the auxiliary matrix"));
  epilogue = {};
  epilogue.operandSum = few.data();
  epilogue.sumsRight = true;
  EXPECT_EQ(blas.multiply(g, CUDA_R_32F, CUDA_R_32F, on.a.data(), on.b.data(), on.c.data(),
                          {nullptr, &scratch}, epilogue),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(cublasLtGetStatusString(CUBLAS_STATUS_INVALID_VALUE),
              testing::HasSubstr("the sum of an operand"));
}

#endif // FSDP_CUDA_EMULATOR

} // namespace
