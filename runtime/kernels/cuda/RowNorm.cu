//===- RowNorm.cu - layer and RMS normalization of rows -------------------===//
//
// Floors (s: bytes of an element, n: elements): 2 s n for the forward kernels, which read and write
// a row once; for bf16 rows of 768 that is 21 us for 32768 rows at 4.8 TB/s. 3 s n for the
// gradients, which read x and dY and write dX once, plus the partial sums of scale and bias: 8
// bytes a column for each stripe, written and read once.
//
// A pack of 16 bytes is summed in float, packs in double. The gradients of scale and bias take two
// stages, both in a fixed order: each block sums a stripe of rows in float, then all stripes are
// summed in double. The number of stripes depends on the sizes and on whether rows are aligned.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Row.h"

namespace fsdp::rt {

namespace {

using namespace device;

/// Threads that a gradient may have for a row it holds in registers.
constexpr unsigned kGradThreads = 512;
/// Of each multiprocessor, so that some load while others compute: 64 registers are left to each.
constexpr unsigned kResidentThreads = 1024;

/// Blocks of `threads` of a gradient's first stage: those that an H200 has at a time, up to eight
/// on each of its 132 multiprocessors.
constexpr std::size_t stripesOf(std::size_t rows, unsigned threads) {
  const std::size_t resident = kResidentThreads / threads,
                    most = 132 * (resident < 8 ? resident : 8);
  return rows < most ? rows : most;
}

template <class T, int N, int kHeld, bool kLayer>
__global__ void __launch_bounds__(1024)
    normForward(NormRows shape, bool alignedWeights, const T *x, const T *scale, const T *bias,
                T *y, float *mean, float *rstd) {
  __shared__ double scratch[kMaxWarps];
  const std::size_t width = shape.width, r = blockIdx.x;
  const Row<T, N, kHeld> row(x + r * width, width);
  double center = 0;
  if constexpr (kLayer) {
    double sum = 0;
    row.forEach([&](std::size_t, const float (&v)[N]) {
      float part = 0;
#pragma unroll
      for (int i = 0; i < N; ++i)
        part += v[i];
      sum += part;
    });
    center = blockReduce<Plus>(sum, scratch) / double(width);
  }
  const float m = static_cast<float>(center);
  double squares = 0;
  row.forEach([&](std::size_t, const float (&v)[N]) {
    float part = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
      part = fmaf(v[i] - m, v[i] - m, part);
    squares += part;
  });
  // The squares are about the rounded mean; what that adds is taken away.
  const double variance = blockReduce<Plus>(squares, scratch) / double(width) -
                          (center - double(m)) * (center - double(m));
  const float s = static_cast<float>(1 / sqrt(variance + shape.epsilon));
  row.forEach([&](std::size_t column, const float (&v)[N]) {
    float factor[N], shift[N] = {}, out[N];
    loadFloats(scale + column, alignedWeights, factor);
    if constexpr (kLayer)
      loadFloats(bias + column, alignedWeights, shift);
#pragma unroll
    for (int i = 0; i < N; ++i)
      out[i] = kLayer ? (v[i] - m) * s * factor[i] + shift[i] : v[i] * s * factor[i];
    storeFloats(out, y + r * width + column);
  });
  if (threadIdx.x == 0) {
    rstd[r] = s;
    if constexpr (kLayer)
      mean[r] = m;
  }
}

/// Operands and results of a gradient. `mean`, and with it every sum over dY alone, is of layers
/// only.
template <class T> struct NormGrad {
  NormRows shape;
  const T *x, *scale;
  const float *mean, *rstd;
  const T *dY;
  T *dX;
  float *partial; ///< [stripe][scale, bias][width]
  bool alignedWeights;
};

/// Rows of the block: [first, last).
struct Stripe {
  std::size_t first, last;
};
__device__ inline Stripe stripeOf(std::size_t rows) {
  const std::size_t each = ceilDiv<std::size_t>(rows, gridDim.x), first = each * blockIdx.x;
  return {first < rows ? first : rows, first + each < rows ? first + each : rows};
}

/// kRows rows at a time, whose loads are in flight together. A thread owns columns, whose sums over
/// the stripe stay in registers.
template <class T, int N, int kHeld, int kRows, bool kLayer>
__global__ void __launch_bounds__(kGradThreads, N * kHeld * (kLayer ? 2 : 1) > 16
                                                    ? 1 // the sums alone are 32 registers
                                                    : kResidentThreads / kGradThreads)
    normGradHeld(NormGrad<T> at) {
  constexpr int kSums = kLayer ? 2 * kRows : kRows; // over rows: of dY to x, and of dY
  __shared__ double scratch[2][kGradThreads / kWarp][kSums];
  const std::size_t width = at.shape.width;
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const double inverse = 1 / double(width);
  const Stripe stripe = stripeOf(at.shape.rows);
  Packed<T, N> factor[kHeld];
  float scaleSums[kHeld][N] = {}, biasSums[kHeld][N] = {};
#pragma unroll
  for (int p = 0; p < kHeld; ++p)
    if (const std::size_t column = (p * blockDim.x + threadIdx.x) * N; column < width) {
      float values[N];
      loadFloats(at.scale + column, at.alignedWeights, values);
      factor[p] = Packed<T, N>::of(values);
    }

  unsigned turn = 0;
  for (std::size_t first = stripe.first; first < stripe.last; first += kRows, turn ^= 1) {
    Packed<T, N> x[kRows][kHeld], dY[kRows][kHeld];
    float m[kRows], s[kRows];
    bool mine[kRows][kHeld];
#pragma unroll
    for (int q = 0; q < kRows; ++q) {
      const std::size_t r = first + q;
      const bool row = r < stripe.last;
      m[q] = kLayer && row ? at.mean[r] : 0.0f;
      s[q] = row ? at.rstd[r] : 0.0f;
#pragma unroll
      for (int p = 0; p < kHeld; ++p) {
        const std::size_t column = (p * blockDim.x + threadIdx.x) * N;
        mine[q][p] = row && column < width;
        if (mine[q][p]) {
          x[q][p] = Packed<T, N>::load(at.x + r * width + column);
          dY[q][p] = Packed<T, N>::load(at.dY + r * width + column);
        }
      }
    }
    double sums[kSums] = {};
#pragma unroll
    for (int q = 0; q < kRows; ++q)
#pragma unroll
      for (int p = 0; p < kHeld; ++p)
        if (mine[q][p]) {
          float sum = 0, product = 0;
#pragma unroll
          for (int i = 0; i < N; ++i) {
            const float normalized = (x[q][p].get(i) - m[q]) * s[q], d = dY[q][p].get(i),
                        gradient = d * factor[p].get(i);
            sum += gradient;
            product = fmaf(gradient, normalized, product);
            scaleSums[p][i] = fmaf(d, normalized, scaleSums[p][i]);
            biasSums[p][i] += d;
          }
          sums[q] += product;
          if constexpr (kLayer)
            sums[kRows + q] += sum;
        }
    // Lane i has sum i % kSums of its warp, then that of the row. Two places take turns: who writes
    // to one again has met all that read it at the barrier of the other.
    double total = warpReduceEach<Plus>(sums);
    if (warps > 1) {
      if (lane < kSums)
        scratch[turn][warp][lane] = total;
      __syncthreads();
      total = scratch[turn][0][lane % kSums];
      for (unsigned w = 1; w < warps; ++w)
        total += scratch[turn][w][lane % kSums];
    }
    const auto mean = static_cast<float>(total * inverse);
#pragma unroll
    for (int q = 0; q < kRows; ++q) {
      // dX = s (dY f - a - (x - m) s b), in fewer instructions; (x - m) s is near 1 for any x.
      const float b = s[q] * __shfl_sync(kAllLanes, mean, q);
      const float a = kLayer ? s[q] * __shfl_sync(kAllLanes, mean, kRows + q) : 0.0f;
#pragma unroll
      for (int p = 0; p < kHeld; ++p)
        if (mine[q][p]) {
          float out[N];
#pragma unroll
          for (int i = 0; i < N; ++i)
            out[i] = fmaf((m[q] - x[q][p].get(i)) * s[q], b,
                          fmaf(dY[q][p].get(i) * factor[p].get(i), s[q], -a));
          storeFloats(out, at.dX + (first + q) * width + (p * blockDim.x + threadIdx.x) * N);
        }
    }
  }
  float *partial = at.partial + blockIdx.x * width * (kLayer ? 2 : 1);
#pragma unroll
  for (int p = 0; p < kHeld; ++p)
    if (const std::size_t column = (p * blockDim.x + threadIdx.x) * N; column < width)
#pragma unroll
      for (int i = 0; i < N; ++i) {
        partial[column + i] = scaleSums[p][i];
        if constexpr (kLayer)
          partial[width + column + i] = biasSums[p][i];
      }
}

/// Any width and alignment: one element an access, the row is read twice, sums over the stripe are
/// in the workspace.
template <class T, bool kLayer>
__global__ void __launch_bounds__(1024) normGradAny(NormGrad<T> at) {
  __shared__ double scratch[2 * kMaxWarps];
  const std::size_t width = at.shape.width;
  float *scaleSums = at.partial + blockIdx.x * width * (kLayer ? 2 : 1);
  float *biasSums = scaleSums + width;
  for (std::size_t j = threadIdx.x; j < width; j += blockDim.x) {
    scaleSums[j] = 0;
    if constexpr (kLayer)
      biasSums[j] = 0;
  }
  const Stripe stripe = stripeOf(at.shape.rows);
  for (std::size_t r = stripe.first; r < stripe.last; ++r) {
    const T *x = at.x + r * width, *dY = at.dY + r * width;
    const float m = kLayer ? at.mean[r] : 0.0f, s = at.rstd[r];
    double sums[2] = {};
    for (std::size_t j = threadIdx.x; j < width; j += blockDim.x) {
      const float normalized = (toFloat(x[j]) - m) * s, d = toFloat(dY[j]);
      const float gradient = d * toFloat(at.scale[j]);
      sums[0] += kLayer ? gradient : 0.0f;
      sums[1] += gradient * normalized;
      scaleSums[j] = fmaf(d, normalized, scaleSums[j]);
      if constexpr (kLayer)
        biasSums[j] += d;
    }
    blockReduce<Plus>(sums, scratch);
    const auto a = static_cast<float>(sums[0] / double(width));
    const auto b = static_cast<float>(sums[1] / double(width));
    for (std::size_t j = threadIdx.x; j < width; j += blockDim.x) {
      const float normalized = (toFloat(x[j]) - m) * s;
      at.dX[r * width + j] =
          fromFloat<T>(s * (toFloat(dY[j]) * toFloat(at.scale[j]) - a - normalized * b));
    }
  }
}

/// The second stage: columns [0, width) of the sums into `scale`, those after it into `bias`. A
/// block takes 32 columns; each of its warps sums every 32nd stripe.
constexpr unsigned kSumWarps = 32;
__global__ void __launch_bounds__(kSumWarps *kWarp)
    sumStripes(std::size_t stripes, std::size_t columns, std::size_t width, const float *partial,
               float *scale, float *bias) {
  __shared__ double sums[kSumWarps][kWarp];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::size_t column = blockIdx.x * std::size_t(kWarp) + lane;
  double sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (std::size_t stripe = warp; stripe < stripes; stripe += kSumWarps)
      sum += double(partial[stripe * columns + column]);
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= columns)
    return;
  for (unsigned w = 1; w < kSumWarps; ++w)
    sum += sums[w][lane];
  if (column < width)
    scale[column] = static_cast<float>(sum);
  else
    bias[column - width] = static_cast<float>(sum);
}

template <bool kLayer, class T>
cudaError_t launchForward(NormRows shape, const T *x, const T *scale, const T *bias, T *y,
                          float *mean, float *rstd, cudaStream_t stream) {
  constexpr int N = kPack<T>, kHeld = 4;
  const bool vectors = shape.width % N == 0 && aligned16(x, y);
  const RowPlan plan = rowPlan(shape.width, N, kHeld, 1024);
  const bool held = vectors && plan.fits;
  noteVectors(held);
  return launchKernel(held ? normForward<T, N, kHeld, kLayer> : normForward<T, 1, 0, kLayer>,
                      dim3(shape.rows),
                      held ? plan.threads : rowPlan(shape.width, 1, 1, 1024).threads, 0, stream,
                      shape, !held || aligned16(scale, bias), x, scale, bias, y, mean, rstd);
}

template <bool kLayer, class T>
cudaError_t launchGrad(NormGrad<T> at, float *dScale, float *dBias, WorkStream stream) {
  const std::size_t width = at.shape.width, columns = width * (kLayer ? 2 : 1);
  at.alignedWeights = aligned16(at.scale);
  constexpr int N = kPack<T>;
  const bool vectors = width % N == 0 && aligned16(at.x, at.dY, at.dX);
  const RowPlan one = rowPlan(width, N, 1, kGradThreads), two = rowPlan(width, N, 2, kGradThreads);
  const bool held = vectors && (one.fits || two.fits);
  noteVectors(held);
  const unsigned threads = !held      ? rowPlan(width, 1, 1, 1024).threads
                           : one.fits ? one.threads
                                      : two.threads;
  const std::size_t stripes = stripesOf(at.shape.rows, threads);
  if (cudaError_t status = stream.workspace->reserve(stripes * columns * sizeof(float), at.partial))
    return status;
  auto *kernel = !held      ? normGradAny<T, kLayer>
                 : one.fits ? normGradHeld<T, N, 1, 2, kLayer>
                            : normGradHeld<T, N, 2, 1, kLayer>;
  if (cudaError_t status = launchKernel(kernel, dim3(stripes), threads, 0, stream, at))
    return status;
  return launchKernel(sumStripes, dim3(ceilDiv(columns, std::size_t(kWarp))), kSumWarps * kWarp, 0,
                      stream, stripes, columns, width, at.partial, dScale, dBias);
}

} // namespace

#define INSTANTIATE(T)                                                                             \
  cudaError_t layer_norm(NormRows shape, const T *x, const T *scale, const T *bias, T *y,          \
                         float *mean, float *rstd, cudaStream_t stream) {                          \
    return launchForward<true>(shape, x, scale, bias, y, mean, rstd, stream);                      \
  }                                                                                                \
  cudaError_t layer_norm_grad(NormRows shape, const T *x, const T *scale, const float *mean,       \
                              const float *rstd, const T *dY, T *dX, float *dScale, float *dBias,  \
                              WorkStream stream) {                                                 \
    return launchGrad<true>(NormGrad<T>{shape, x, scale, mean, rstd, dY, dX, nullptr, false},      \
                            dScale, dBias, stream);                                                \
  }                                                                                                \
  cudaError_t rms_norm(NormRows shape, const T *x, const T *scale, T *y, float *rstd,              \
                       cudaStream_t stream) {                                                      \
    return launchForward<false>(shape, x, scale, static_cast<const T *>(nullptr), y, nullptr,      \
                                rstd, stream);                                                     \
  }                                                                                                \
  cudaError_t rms_norm_grad(NormRows shape, const T *x, const T *scale, const float *rstd,         \
                            const T *dY, T *dX, float *dScale, WorkStream stream) {                \
    return launchGrad<false>(NormGrad<T>{shape, x, scale, nullptr, rstd, dY, dX, nullptr, false},  \
                             dScale, nullptr, stream);                                             \
  }
INSTANTIATE(float)
INSTANTIATE(bf16)
#undef INSTANTIATE

} // namespace fsdp::rt
