//===- Optimizer.cu - sums of squares -------------------------------------===//
//
// square_sum: 4 n bytes. A block sums a fixed stretch in double, a second kernel sums the stretches
// in order: no bit depends on the device.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <cmath>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;
constexpr std::size_t kStretch = 16384; ///< elements that one block squares

__global__ void __launch_bounds__(kThreads)
    squareStretches(std::size_t count, bool vectors, const float *values, double *sums) {
  __shared__ double scratch[kMaxWarps];
  const std::size_t first = blockIdx.x * kStretch;
  const std::size_t last = first + kStretch < count ? first + kStretch : count;
  double sum = 0;
  // A thread has the same elements, in the same order, whether it loads four at once or one.
  for (std::size_t i = first + threadIdx.x * 4; i < last; i += kThreads * 4) {
    float v[4] = {};
    if (vectors && i + 4 <= last)
      loadFloats(values + i, true, v);
    else
      for (std::size_t k = 0; i + k < last && k < 4; ++k)
        v[k] = values[i + k];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      sum += double(v[k]) * double(v[k]);
  }
  sum = blockReduce<Plus>(sum, scratch);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    reducePartials(std::size_t count, const double *sums, double *out) {
  __shared__ double scratch[kMaxWarps];
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < count; i += kThreads)
    sum += sums[i];
  sum = blockReduce<Plus>(sum, scratch);
  if (threadIdx.x == 0)
    *out = sum;
}

} // namespace

cudaError_t square_sum(std::size_t count, const float *values, double *out, WorkStream stream) {
  const bool vectors = aligned16(values);
  noteVectors(vectors);
  const std::size_t stretches = ceilDiv(count, kStretch);
  double *sums = nullptr;
  if (cudaError_t status = stream.workspace->reserve(stretches * sizeof(double), sums))
    return status;
  if (cudaError_t status = launchKernel(squareStretches, dim3(stretches), kThreads, 0, stream,
                                        count, vectors, values, sums))
    return status;
  return launchKernel(reducePartials, dim3(1), kThreads, 0, stream, stretches, sums, out);
}

} // namespace fsdp::rt
