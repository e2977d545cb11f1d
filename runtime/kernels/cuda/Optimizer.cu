//===- Optimizer.cu - sums of squares -------------------------------------===//
//
// square_sum: 4 n bytes. A block sums a fixed stretch of a tensor in double, a second kernel sums
// the stretches of all tensors in a fixed order: no bit depends on the device.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/StripeSum.h"

#include <cmath>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;
constexpr unsigned kSumThreads = 1024;
constexpr std::size_t kStretch = 16384; ///< elements that one block squares

/// Tensors in stretches, which follow one another in the order of the tensors.
struct Stretches {
  SquaredShards shards;
  unsigned ends[SquaredShards::kMax]; ///< number of stretches up to the end of each tensor
  bool vectors[SquaredShards::kMax];  ///< of tensors at addresses of whole vectors
};

__global__ void __launch_bounds__(kThreads) squareStretches(Stretches all, double *sums) {
  __shared__ double scratch[kMaxWarps];
  int shard = 0;
  while (blockIdx.x >= all.ends[shard])
    ++shard;
  const unsigned before = shard > 0 ? all.ends[shard - 1] : 0;
  const std::size_t count = all.shards.counts[shard], first = (blockIdx.x - before) * kStretch;
  const std::size_t last = first + kStretch < count ? first + kStretch : count;
  const float *values = all.shards.values[shard];
  const bool vectors = all.vectors[shard];
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

__global__ void __launch_bounds__(kSumThreads)
    reducePartials(std::size_t count, const double *sums, double *out) {
  const double sum = combineStripes<Plus, 1, kSumThreads>(0.0, sums, count, 1, true);
  if (threadIdx.x == 0)
    *out = sum;
}

} // namespace

cudaError_t device::square_sums(const SquaredShards &shards, double *sum, WorkStream stream) {
  Stretches all{shards, {}, {}};
  unsigned stretches = 0;
  bool vectors = true;
  for (int i = 0; i < shards.count; ++i) {
    stretches += static_cast<unsigned>(ceilDiv(shards.counts[i], kStretch));
    all.ends[i] = stretches;
    all.vectors[i] = aligned16(shards.values[i]);
    vectors = vectors && all.vectors[i];
  }
  noteVectors(vectors);
  double *sums = nullptr;
  if (cudaError_t status = stream.workspace->reserve(stretches * sizeof(double), sums))
    return status;
  if (cudaError_t status =
          launchKernel(squareStretches, dim3(stretches), kThreads, 0, stream, all, sums))
    return status;
  return launchKernel(reducePartials, dim3(1), kSumThreads, 0, stream, std::size_t(stretches), sums,
                      sum);
}

cudaError_t square_sum(std::size_t count, const float *values, double *out, WorkStream stream) {
  return square_sums(Counts<1>{{count}}, values, out, stream);
}

} // namespace fsdp::rt
