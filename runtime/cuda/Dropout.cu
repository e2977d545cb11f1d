//===- Dropout.cu - random elements become zero ---------------------------===//
//
// Floor: 2 s n bytes (s of an element, n elements). A thread makes one draw of Philox, about 100
// integer instructions for four elements.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/Dropout.h"

#include "runtime/Random.h"
#include "runtime/cuda/Element.h"
#include "runtime/cuda/KernelLaunch.h"
#include "runtime/cuda/Kernels.h"

#include <cmath>

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads)
    drop(DropoutRuns runs, std::uint32_t threshold, float scale, bool vectors,
         const StepState *state, const T *x, T *y) {
  const Random random(state->seed, runs.name, static_cast<std::uint64_t>(state->step) + 1);
  const std::size_t all = runs.runs * runs.groups;
  for (std::size_t d = blockIdx.x * std::size_t(kThreads) + threadIdx.x; d < all;
       d += std::size_t(gridDim.x) * kThreads) {
    const std::size_t run = d / runs.groups;
    const DropoutRuns::Piece piece = runs.piece(run, d % runs.groups);
    if (piece.begin == piece.end)
      continue;
    const auto words = random.words(piece.index / 4);
    const std::size_t at = run * runs.size + piece.begin;
    if (vectors && at % 4 == 0 && piece.end - piece.begin == 4) {
      float values[4];
      loadFloats(x + at, true, values);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        values[i] = words[i] >> 8 >= threshold ? values[i] * scale : 0.0f;
      storeFloats(values, y + at);
      continue;
    }
    for (std::size_t i = 0; i < piece.end - piece.begin; ++i)
      y[at + i] = words[(piece.index + i) % 4] >> 8 >= threshold
                      ? fromFloat<T>(toFloat(x[at + i]) * scale)
                      : T{};
  }
}

} // namespace

template <class T>
cudaError_t device::dropout(const DropoutRuns &runs, const StepState *state, const T *x, T *y,
                            cudaStream_t stream) {
  return launchKernel(drop<T>, dim3(stridingBlocks(runs.runs * runs.groups, kThreads)), kThreads, 0,
                      stream, runs, static_cast<std::uint32_t>(std::ceil(runs.rate * 0x1p24)),
                      static_cast<float>(1 / (1 - runs.rate)), aligned16(x, y), state, x, y);
}
template cudaError_t device::dropout(const DropoutRuns &, const StepState *, const float *, float *,
                                     cudaStream_t);
template cudaError_t device::dropout(const DropoutRuns &, const StepState *, const bf16 *, bf16 *,
                                     cudaStream_t);

} // namespace fsdp::rt
