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

constexpr int kColumns = 8, kLanes = 32, kTerms = 100;

/// out[c] = sum of in[r][c] over rows; a block has kColumns columns.
__global__ void sumColumns(const float *in, float *out, int columns) {
  const int column = blockIdx.x * kColumns + threadIdx.x % kColumns;
  float total = 0;
  for (int row = threadIdx.x / kColumns; row < kTerms; row += kLanes)
    total += in[row * columns + column];
  total = reduceLanes<Plus, kColumns, kLanes>(total);
  if (threadIdx.x < kColumns)
    out[column] = total;
}

TEST_F(FusedKernel, LanesOfAColumnAreSummed) {
  const int columns = 3 * kColumns;
  Floats in(kTerms * columns), expected(columns);
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = float(i % 17);
    expected[i % columns] += in[i]; // exact: small integers
  }
  Device<float> in_(in), out(columns);
  const float *from = in_;
  float *to = out;
  OK(launchKernel(sumColumns, dim3(3), kColumns * kLanes, 0, stream, from, to, columns));
  EXPECT_EQ(out.floats(), expected);
}

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
