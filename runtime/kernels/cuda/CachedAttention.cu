//===- CachedAttention.cu - attention to keys that are kept ---------------===//
//
// Floor: with one query the keys and values it sees are read once per group; here once per head. A
// block takes a query of a head: each of its warps walks over every eighth key with a running
// maximum and a running sum, and at the end they are joined in the order of the warps.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/program/Limits.h"

#include <cmath>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kWarps = 8, kThreads = kWarps * kWarp;
constexpr unsigned kHeld = limits::kMaxHeadWidth / kWarp; ///< numbers of a row that a lane holds

template <class T>
__global__ void __launch_bounds__(kThreads)
    attend(CachedAttentionShape shape, const T *q, const T *k, const T *v,
           const std::int32_t *positions, T *out) {
  __shared__ float sums[kWarps][limits::kMaxHeadWidth];
  __shared__ float largests[kWarps], totals[kWarps];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned t = blockIdx.x % shape.queries, row = blockIdx.x / shape.queries;
  const unsigned h = row % shape.heads, b = row / shape.heads;
  const std::size_t query = b * shape.q.batch + h * shape.q.head + t * shape.q.row;
  const unsigned group = h / (shape.heads / shape.groups);
  const std::size_t first =
      (b * std::size_t(shape.groups) + group) * shape.keys * std::size_t(shape.width);
  const auto position = static_cast<unsigned>(positions[b * std::size_t(shape.queries)]) + t;
  const unsigned end = position < shape.keys ? position + 1 : shape.keys;
  const unsigned begin = shape.window != 0 && end > shape.window ? end - shape.window : 0;

  float held[kHeld], own[kHeld];
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    const unsigned column = i * kWarp + lane;
    held[i] = column < shape.width ? toFloat(q[query + column]) : 0.0f;
    own[i] = 0;
  }
  float largest = -INFINITY, total = 0;
  for (unsigned s = begin + warp; s < end; s += kWarps) {
    const std::size_t at = first + s * std::size_t(shape.width);
    float part = 0;
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i)
      if (const unsigned column = i * kWarp + lane; column < shape.width)
        part += held[i] * toFloat(k[at + column]);
    float score = warpReduce<Plus>(part) * shape.scale;
    if (shape.softcap > 0)
      score = shape.softcap * tanhf(score / shape.softcap);
    const float before = largest;
    largest = score > largest ? score : largest;
    const float kept = expf(before - largest), p = expf(score - largest);
    total = total * kept + p;
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i)
      if (const unsigned column = i * kWarp + lane; column < shape.width)
        own[i] = own[i] * kept + p * toFloat(v[at + column]);
  }
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i)
    sums[warp][i * kWarp + lane] = own[i];
  if (lane == 0) {
    largests[warp] = largest;
    totals[warp] = total;
  }
  __syncthreads();
  float all = -INFINITY;
  for (unsigned w = 0; w < kWarps; ++w)
    all = largests[w] > all ? largests[w] : all;
  for (unsigned column = threadIdx.x; column < shape.width; column += kThreads) {
    float sum = 0, weight = 0;
    for (unsigned w = 0; w < kWarps; ++w) {
      // A warp without keys has no largest score.
      const float share = totals[w] > 0 ? expf(largests[w] - all) : 0.0f;
      sum += share * sums[w][column];
      weight += share * totals[w];
    }
    out[query + column] = fromFloat<T>(weight > 0 ? sum / weight : 0.0f);
  }
}

/// A block takes a row, and the threads its elements.
template <class T>
__global__ void __launch_bounds__(kThreads)
    writeOne(WriteShape shape, const T *rows, const std::int32_t *positions, T *written) {
  const std::size_t block = blockIdx.x / shape.rows, row = blockIdx.x % shape.rows;
  const auto at = static_cast<std::uint32_t>(positions[block / shape.outer * shape.rows + row]);
  if (at >= shape.positions)
    return;
  for (std::size_t i = threadIdx.x; i < shape.width; i += kThreads)
    written[(block * shape.positions + at) * shape.width + i] =
        rows[(block * shape.rows + row) * shape.width + i];
}

template <class T>
cudaError_t launchAttention(CachedAttentionShape shape, const T *q, const T *k, const T *v,
                            const std::int32_t *positions, T *out, cudaStream_t stream) {
  if (shape.width > limits::kMaxHeadWidth || (shape.groups && shape.heads % shape.groups))
    return cudaErrorInvalidValue;
  return launchKernel(attend<T>, dim3(shape.batch * shape.heads * shape.queries), kThreads, 0,
                      stream, shape, q, k, v, positions, out);
}

template <class T>
cudaError_t launchWrite(WriteShape shape, const T *table, const T *rows,
                        const std::int32_t *positions, T *written, cudaStream_t stream) {
  const std::size_t blocks = shape.samples * shape.outer;
  if (written != table)
    if (cudaError_t status =
            cudaMemcpyAsync(written, table, blocks * shape.positions * shape.width * sizeof(T),
                            cudaMemcpyDeviceToDevice, stream))
      return status;
  return launchKernel(writeOne<T>, dim3(static_cast<unsigned>(blocks * shape.rows)), kThreads, 0,
                      stream, shape, rows, positions, written);
}

} // namespace

cudaError_t cached_attention(CachedAttentionShape shape, const float *q, const float *k,
                             const float *v, const std::int32_t *positions, float *out,
                             cudaStream_t stream) {
  return launchAttention(shape, q, k, v, positions, out, stream);
}
cudaError_t cached_attention(CachedAttentionShape shape, const bf16 *q, const bf16 *k,
                             const bf16 *v, const std::int32_t *positions, bf16 *out,
                             cudaStream_t stream) {
  return launchAttention(shape, q, k, v, positions, out, stream);
}
cudaError_t write_rows(WriteShape shape, const float *table, const float *rows,
                       const std::int32_t *positions, float *written, cudaStream_t stream) {
  return launchWrite(shape, table, rows, positions, written, stream);
}
cudaError_t write_rows(WriteShape shape, const bf16 *table, const bf16 *rows,
                       const std::int32_t *positions, bf16 *written, cudaStream_t stream) {
  return launchWrite(shape, table, rows, positions, written, stream);
}

} // namespace fsdp::rt
