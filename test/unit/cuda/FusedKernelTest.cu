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
  const float total = combineParts<Op, Columns, Lanes, Parts, float>(
      start, parts + (inside ? column : 0), columns, inside);
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
  total = reduceBlock<Maximum>(total);
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

} // namespace
