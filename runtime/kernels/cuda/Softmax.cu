//===- Softmax.cu - rows of probabilities ---------------------------------===//
//
// Floor: 2 s n bytes (s of an element, n elements). Rows that fit the registers of a block are read
// once, others twice.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Row.h"
#include "runtime/kernels/cuda/RowExponentials.h"

namespace fsdp::rt {

namespace {

using namespace device;

template <class T, int N, int kHeld>
__global__ void __launch_bounds__(1024) softmaxRows(SoftmaxRows shape, const T *x, T *y) {
  __shared__ float tops[kMaxWarps];
  __shared__ double sums[kMaxWarps];
  const std::size_t start = blockIdx.x * shape.width;
  const Row<T, N, kHeld> row(x + start, shape.width);
  OnlineSum mine;
  row.forEach([&](std::size_t, const float (&v)[N]) { mine.add(v); });
  const OnlineSum all = mine.overBlock(tops, sums);
  const float base = all.base();
  const auto factor = static_cast<float>(1 / all.sum);
  row.forEach([&](std::size_t column, const float (&v)[N]) {
    float out[N];
#pragma unroll
    for (int i = 0; i < N; ++i)
      out[i] = exponential(v[i], base) * factor;
    storeFloats(out, y + start + column);
  });
}

template <class T> cudaError_t launch(SoftmaxRows shape, const T *x, T *y, cudaStream_t stream) {
  constexpr int N = kPack<T>, kHeld = 4;
  const RowPlan plan = rowPlan(shape.width, N, kHeld, 1024);
  const bool vectors = shape.width % N == 0 && aligned16(x, y) && plan.fits;
  noteVectors(vectors);
  if (vectors)
    return launchKernel(softmaxRows<T, N, kHeld>, dim3(shape.rows), plan.threads, 0, stream, shape,
                        x, y);
  return launchKernel(softmaxRows<T, 1, 0>, dim3(shape.rows),
                      rowPlan(shape.width, 1, 1, 1024).threads, 0, stream, shape, x, y);
}

} // namespace

cudaError_t softmax(SoftmaxRows shape, const float *x, float *y, cudaStream_t stream) {
  return launch(shape, x, y, stream);
}
cudaError_t softmax(SoftmaxRows shape, const bf16 *x, bf16 *y, cudaStream_t stream) {
  return launch(shape, x, y, stream);
}

} // namespace fsdp::rt
