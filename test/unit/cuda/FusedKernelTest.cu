//===- FusedKernelTest.cu - what generated kernels are made of --------------------===//
//
// In kernels as codegen/CudaKernelPrinter.cpp writes them.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/FusedKernel.h"
#include "test/unit/cuda/DeviceKernels.h"

using namespace fsdp::rt;
using namespace fsdp::rt::device;

namespace {

class FusedKernel : public DeviceKernels {};

/// parts[split][c] = of in[r][c], over the rows r of a split: what a generated kernel does, without
/// batches. A block has Columns * N columns.
template <class Op, int Columns, int Lanes, int N>
__global__ void reduceColumns(const float *in, float *parts, int rows, int columns, float start) {
  const int column = (blockIdx.x * Columns + threadIdx.x % Columns) * N;
  auto total = repeated<float, N>(start);
  if (column < columns)
    for (int row = blockIdx.y * Lanes + threadIdx.x / Columns; row < rows; row += gridDim.y * Lanes)
      for (int i = 0; i < N; ++i)
        total[i] = Op::apply(total[i], in[row * columns + column + i]);
  total = reduceLanes<Op, Columns, Lanes>(total);
  if (threadIdx.x < Columns && column < columns)
    for (int i = 0; i < N; ++i)
      parts[blockIdx.y * columns + column + i] = total[i];
}

template <class Op, int Columns, int Lanes, int Parts>
__global__ void combineColumns(const float *parts, float *out, int columns, float start) {
  const int column = blockIdx.x * Columns + threadIdx.x % Columns;
  const bool inside = column < columns;
  const float total = combineStripes<Op, Columns, Lanes>(start, parts + (inside ? column : 0),
                                                         Parts, columns, inside);
  if (threadIdx.x < Columns && inside)
    out[column] = total;
}

class Columns : public FusedKernel {
protected:
  /// The sums and the largest of the columns of a matrix, whose elements are small integers, as one
  /// kernel and as two compute them. The largest of a column with a NaN is one.
  template <int kColumns, int kLanes, int N> void check(int rows, int columns) {
    SCOPED_TRACE(testing::Message() << kColumns << " columns of " << N << ", " << kLanes
                                    << " lanes, " << rows << " x " << columns);
    Floats in(rows * columns), sums(columns), largest(columns, -INFINITY);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        const float value = in[r * columns + c] = float((r * 31 + c * 17) % 101 - 50);
        sums[c] += value;
        largest[c] = std::max(largest[c], value);
      }
    Device<float> in_(in);
    EXPECT_EQ((reduce<Plus, kColumns, kLanes, N, 1>(in_, rows, columns, 0)), sums);
    EXPECT_EQ((reduce<Plus, kColumns, kLanes, N, 5>(in_, rows, columns, 0)), sums);
    const int last = columns - 1;
    in_.set((rows - 1) * columns + last, NAN);
    for (const Floats &got :
         {reduce<Maximum, kColumns, kLanes, N, 1>(in_, rows, columns, -INFINITY),
          reduce<Maximum, kColumns, kLanes, N, 5>(in_, rows, columns, -INFINITY)}) {
      EXPECT_TRUE(std::isnan(got[last])) << got[last];
      EXPECT_EQ(Floats(got.begin(), got.end() - 1), Floats(largest.begin(), largest.end() - 1));
    }
  }

private:
  template <class Op, int kColumns, int kLanes, int N, int kSplits>
  Floats reduce(const float *in, int rows, int columns, float start) {
    Device<float> parts(kSplits * columns), out(columns);
    float *to = parts, *result = out;
    const float *from = to;
    const unsigned blocks = (columns + kColumns * N - 1) / (kColumns * N);
    EXPECT_EQ(launchKernel(reduceColumns<Op, kColumns, kLanes, N>, dim3(blocks, kSplits),
                           kColumns * kLanes, 0, stream, in, to, rows, columns, start),
              cudaSuccess)
        << deviceFailure();
    if (kSplits == 1)
      return parts.floats();
    EXPECT_EQ(launchKernel(combineColumns<Op, 32, 8, kSplits>, dim3((columns + 31) / 32), 256, 0,
                           stream, from, result, columns, start),
              cudaSuccess)
        << deviceFailure();
    return out.floats();
  }
};

TEST_F(Columns, LanesOfAWarpAreReduced) {
  check<8, 4, 4>(50, 96); // no other warp has a part
  check<1, 32, 2>(7, 6);
}
TEST_F(Columns, WarpsAreReduced) {
  check<8, 32, 8>(100, 3 * 64);
  check<1, 256, 1>(1000, 5);
  check<2, 128, 8>(300, 40);
}
TEST_F(Columns, EveryWarpHasItsLane) {
  check<32, 8, 4>(99, 132);
  check<32, 1, 8>(20, 264);
}
TEST_F(Columns, SeveralWarpsHaveTheLane) {
  check<128, 2, 4>(33, 516);
  check<64, 4, 1>(17, 65);
}
TEST_F(Columns, OneRowOfOneColumn) { check<1, 32, 1>(1, 1); }
TEST_F(Columns, MoreLanesThanRows) { check<4, 64, 2>(3, 16); }

__global__ void largestOfRow(const float *in, float *out, int columns) {
  float total = -1;
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    total = maximum(total, in[blockIdx.x * columns + column]);
  total = reduceLanes<Maximum, 1, 256>(total);
  if (threadIdx.x == 0)
    out[blockIdx.x] = total;
}

TEST_F(FusedKernel, ABlockIsReduced) {
  const int columns = 1000;
  Floats in(4 * columns);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = float(i * 7 % in.size());
  Floats expected(4);
  for (std::size_t i = 0; i < in.size(); ++i)
    expected[i / columns] = std::max(expected[i / columns], in[i]);
  Device<float> in_(in), out(4);
  const float *from = in_;
  float *to = out;
  OK(launchKernel(largestOfRow, dim3(4), 256, 0, stream, from, to, columns));
  EXPECT_EQ(out.floats(), expected);
}

__global__ void geluOfAll(const float *x, float *function, float *gradient) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  function[i] = fastGelu(x[i]);
  gradient[i] = fastGeluGradient(x[i], 3.0f);
}

/// The error in units in the last place of bf16, those of the smallest normal number below it.
double bf16Units(double got, double exact) {
  const int exponent = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  return std::fabs(got - exact) / std::ldexp(1.0, exponent - 7);
}

/// Of all bf16 numbers, before the results are rounded and after. What is below 1e-35 may be 0.
TEST_F(FusedKernel, GeluIsFarBelowTheRoundingOfBf16) {
  constexpr unsigned count = 1 << 16;
  Floats in(count);
  for (unsigned bits = 0; bits < count; ++bits) {
    bf16 x;
    x.bits = static_cast<std::uint16_t>(bits);
    in[bits] = static_cast<float>(x);
  }
  Device<float> in_(in), function(count), gradient(count);
  const float *from = in_;
  float *to = function, *slope = gradient;
  OK(launchKernel(geluOfAll, dim3(count / 256), 256, 0, stream, from, to, slope));
  const Floats values = function.floats(), slopes = gradient.floats();
  const double a = std::sqrt(2 / M_PI), b = 0.044715 * a;
  double worst[2] = {}, rounded[2] = {};
  for (unsigned i = 0; i < count; ++i) {
    const double x = in[i];
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(values[i]) && std::isnan(slopes[i])) << i;
      continue;
    }
    if (std::isinf(x)) // 0 times infinity is in both, as in the exact form
      continue;
    const double twice = 2 * (a * x + b * x * x * x), logistic = 1 / (1 + std::exp(-twice)),
                 rest = 1 / (1 + std::exp(twice)), bend = logistic * rest;
    const double exact[] = {x * logistic,
                            3 * (logistic + (bend == 0 ? 0 : bend * x * (2 * a + 6 * b * x * x)))};
    for (int k : {0, 1}) {
      const float got = k ? slopes[i] : values[i];
      if (std::fabs(exact[k]) < 1e-35 && got == 0)
        continue;
      worst[k] = std::max(worst[k], bf16Units(got, exact[k]));
      rounded[k] = std::max(rounded[k], bf16Units(static_cast<float>(bf16(got)), exact[k]));
    }
  }
  for (int k : {0, 1}) {
    EXPECT_LT(worst[k], 0.05) << (k ? "gradient" : "function");
    EXPECT_LT(rounded[k], 0.55) << (k ? "gradient" : "function");
  }
}

} // namespace
