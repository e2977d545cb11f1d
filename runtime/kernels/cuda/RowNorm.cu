//===- RowNorm.cu - layer and RMS normalization of rows -------------------===//
//
// Floors (s: bytes of an element, n: elements): 2 s n for the forward kernels, which read and write
// a row once; for bf16 rows of 768 that is 21 us for 32768 rows at 4.8 TB/s. 3 s n for the
// gradients, which read x and dY and write dX once, 4 s n with a residual, plus the partial sums of
// scale and bias, and those of dX: 4 bytes a column of each for each stripe, written and read once.
//
// A pack of 16 bytes is summed in float, packs in double. The gradients of scale and bias take two
// stages, both in a fixed order: each block sums a stripe of rows in float, then all stripes are
// summed in double. The number of stripes depends on the sizes and on whether rows are aligned.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Row.h"
#include "runtime/kernels/cuda/StripeSum.h"

namespace fsdp::rt {

namespace {

using namespace device;

/// Threads that a gradient may have for a row it holds in registers.
constexpr unsigned kGradThreads = 512;
/// The number of sums over rows that a gradient computes: the terms of scale, those of bias, and
/// its own numbers before they are rounded.
constexpr int sumsOf(bool layer, bool adds) { return 1 + layer + adds; }

/// Threads on each multiprocessor, so that some load while others compute: 64 registers are left to
/// each, or 128 where sums and a residual of N * kHeld columns take more.
constexpr unsigned residentThreads(int columns, int held, bool layer, bool plus, bool adds) {
  const int kept = columns * sumsOf(layer, adds) + (plus && held > 1 ? columns / held : 0);
  return kept > 16 ? 512 : 1024;
}

/// Blocks of `threads` of a gradient's first stage: those that an H200 has at a time where
/// `resident` threads fit on each of its 132 multiprocessors, up to eight on each.
constexpr std::size_t stripesOf(std::size_t rows, unsigned threads, unsigned resident) {
  const std::size_t blocks = resident < threads ? 1 : resident / threads,
                    most = 132 * (blocks < 8 ? blocks : 8);
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
  // The squares are about the rounded mean; the square of its rounding error is subtracted.
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
  const T *dY, *residual; ///< residual null: none
  T *dX;
  float *partial; ///< [stripe][scale, bias, dX][width]
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
template <class T, int N, int kHeld, int kRows, bool kLayer, bool kPlus, bool kAdds>
__global__ void __launch_bounds__(kGradThreads,
                                  residentThreads(N *kHeld, kHeld, kLayer, kPlus, kAdds) /
                                      kGradThreads) normGradHeld(NormGrad<T> at) {
  constexpr int kSums = kLayer ? 2 * kRows : kRows; // over rows: of dY to x, and of dY
  __shared__ double scratch[2][kGradThreads / kWarp][kSums];
  const std::size_t width = at.shape.width;
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  const double inverse = 1 / double(width);
  const Stripe stripe = stripeOf(at.shape.rows);
  Packed<T, N> factor[kHeld];
  float scaleSums[kHeld][N] = {}, biasSums[kHeld][N] = {}, rowSums[kHeld][N] = {};
#pragma unroll
  for (int p = 0; p < kHeld; ++p)
    if (const std::size_t column = (p * blockDim.x + threadIdx.x) * N; column < width) {
      float values[N];
      loadFloats(at.scale + column, at.alignedWeights, values);
      factor[p] = Packed<T, N>::of(values);
    }

  unsigned turn = 0;
  for (std::size_t first = stripe.first; first < stripe.last; first += kRows, turn ^= 1) {
    Packed<T, N> x[kRows][kHeld], dY[kRows][kHeld], residual[kRows][kHeld];
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
          if constexpr (kPlus)
            residual[q][p] = Packed<T, N>::load(at.residual + r * width + column);
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
    // Lane i has sum i % kSums of its warp, then that of the row. Two places alternate: a warp
    // writes to one again after the barrier of the other, which its readers reach after they have
    // read.
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
          for (int i = 0; i < N; ++i) {
            out[i] = fmaf((m[q] - x[q][p].get(i)) * s[q], b,
                          fmaf(dY[q][p].get(i) * factor[p].get(i), s[q], -a));
            if constexpr (kPlus)
              out[i] += residual[q][p].get(i);
            if constexpr (kAdds)
              rowSums[p][i] += out[i];
          }
          storeFloats(out, at.dX + (first + q) * width + (p * blockDim.x + threadIdx.x) * N);
        }
    }
  }
  float *partial = at.partial + blockIdx.x * width * sumsOf(kLayer, kAdds);
#pragma unroll
  for (int p = 0; p < kHeld; ++p)
    if (const std::size_t column = (p * blockDim.x + threadIdx.x) * N; column < width)
#pragma unroll
      for (int i = 0; i < N; ++i) {
        partial[column + i] = scaleSums[p][i];
        if constexpr (kLayer)
          partial[width + column + i] = biasSums[p][i];
        if constexpr (kAdds)
          partial[sumsOf(kLayer, false) * width + column + i] = rowSums[p][i];
      }
}

/// Any width and alignment: one element an access, the row is read twice, sums over the stripe are
/// in the workspace.
template <class T, bool kLayer, bool kPlus, bool kAdds>
__global__ void __launch_bounds__(1024) normGradAny(NormGrad<T> at) {
  __shared__ double scratch[2 * kMaxWarps];
  const std::size_t width = at.shape.width;
  float *scaleSums = at.partial + blockIdx.x * width * sumsOf(kLayer, kAdds);
  float *biasSums = scaleSums + width, *rowSums = scaleSums + width * sumsOf(kLayer, false);
  for (std::size_t j = threadIdx.x; j < width; j += blockDim.x) {
    scaleSums[j] = 0;
    if constexpr (kLayer)
      biasSums[j] = 0;
    if constexpr (kAdds)
      rowSums[j] = 0;
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
      float out = s * (toFloat(dY[j]) * toFloat(at.scale[j]) - a - normalized * b);
      if constexpr (kPlus)
        out += toFloat(at.residual[r * width + j]);
      if constexpr (kAdds)
        rowSums[j] += out;
      at.dX[r * width + j] = fromFloat<T>(out);
    }
  }
}

/// Where the sums of `width` columns each go, in the order of their places in a stripe.
struct SummedColumns {
  float *of[3];
};

/// The second stage. A block takes 32 columns; each of its warps sums every 32nd stripe.
constexpr unsigned kSumWarps = 32;
__global__ void __launch_bounds__(kSumWarps *kWarp)
    sumStripes(std::size_t stripes, std::size_t columns, std::size_t width, const float *partial,
               SummedColumns results) {
  const std::size_t column = blockIdx.x * std::size_t(kWarp) + threadIdx.x % kWarp;
  const bool inside = column < columns;
  const double sum = combineStripes<Plus, kWarp, kSumWarps>(0.0, partial + (inside ? column : 0),
                                                            stripes, columns, inside);
  if (threadIdx.x >= kWarp || !inside)
    return;
  if (column < width)
    results.of[0][column] = static_cast<float>(sum);
  else if (column < 2 * width)
    results.of[1][column - width] = static_cast<float>(sum);
  else
    results.of[2][column - 2 * width] = static_cast<float>(sum);
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

template <bool kLayer, bool kPlus, bool kAdds, class T>
cudaError_t launchGrad(NormGrad<T> at, SummedColumns results, WorkStream stream) {
  const std::size_t width = at.shape.width, columns = width * sumsOf(kLayer, kAdds);
  at.alignedWeights = aligned16(at.scale);
  constexpr int N = kPack<T>;
  const bool vectors =
      width % N == 0 && aligned16(at.x, at.dY, at.dX) && (!kPlus || aligned16(at.residual));
  const RowPlan one = rowPlan(width, N, 1, kGradThreads), two = rowPlan(width, N, 2, kGradThreads);
  const bool held = vectors && (one.fits || two.fits);
  noteVectors(held);
  const unsigned threads = !held      ? rowPlan(width, 1, 1, 1024).threads
                           : one.fits ? one.threads
                                      : two.threads;
  const unsigned resident = !held      ? 1024
                            : one.fits ? residentThreads(N, 1, kLayer, kPlus, kAdds)
                                       : residentThreads(2 * N, 2, kLayer, kPlus, kAdds);
  const std::size_t stripes = stripesOf(at.shape.rows, threads, resident);
  if (cudaError_t status = stream.workspace->reserve(stripes * columns * sizeof(float), at.partial))
    return status;
  auto *kernel = !held      ? normGradAny<T, kLayer, kPlus, kAdds>
                 : one.fits ? normGradHeld<T, N, 1, 2, kLayer, kPlus, kAdds>
                            : normGradHeld<T, N, 2, 1, kLayer, kPlus, kAdds>;
  if (cudaError_t status = launchKernel(kernel, dim3(stripes), threads, 0, stream, at))
    return status;
  return launchKernel(sumStripes, dim3(ceilDiv(columns, std::size_t(kWarp))), kSumWarps * kWarp, 0,
                      stream, stripes, columns, width, at.partial, results);
}

/// Those of a layer norm, then of an RMS norm.
template <bool kPlus, bool kAdds, class T>
cudaError_t layerGrad(NormRows shape, const T *x, const T *scale, const float *mean,
                      const float *rstd, const T *dY, const T *residual, T *dX,
                      SummedColumns results, WorkStream stream) {
  return launchGrad<true, kPlus, kAdds>(
      NormGrad<T>{shape, x, scale, mean, rstd, dY, residual, dX, nullptr, false}, results, stream);
}
template <bool kPlus, bool kAdds, class T>
cudaError_t rmsGrad(NormRows shape, const T *x, const T *scale, const float *rstd, const T *dY,
                    const T *residual, T *dX, SummedColumns results, WorkStream stream) {
  return launchGrad<false, kPlus, kAdds>(
      NormGrad<T>{shape, x, scale, nullptr, rstd, dY, residual, dX, nullptr, false}, results,
      stream);
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
    return layerGrad<false, false, T>(shape, x, scale, mean, rstd, dY, nullptr, dX,                \
                                      {{dScale, dBias}}, stream);                                  \
  }                                                                                                \
  cudaError_t layer_norm_grad(NormRows shape, const T *x, const T *scale, const float *mean,       \
                              const float *rstd, const T *dY, const T *residual, T *dX,            \
                              float *dScale, float *dBias, WorkStream stream) {                    \
    return layerGrad<true, false>(shape, x, scale, mean, rstd, dY, residual, dX,                   \
                                  {{dScale, dBias}}, stream);                                      \
  }                                                                                                \
  cudaError_t layer_norm_grad(NormRows shape, const T *x, const T *scale, const float *mean,       \
                              const float *rstd, const T *dY, const T *residual, T *dX,            \
                              float *dScale, float *dBias, float *sums, WorkStream stream) {       \
    return layerGrad<true, true>(shape, x, scale, mean, rstd, dY, residual, dX,                    \
                                 {{dScale, dBias, sums}}, stream);                                 \
  }                                                                                                \
  cudaError_t rms_norm(NormRows shape, const T *x, const T *scale, T *y, float *rstd,              \
                       cudaStream_t stream) {                                                      \
    return launchForward<false>(shape, x, scale, static_cast<const T *>(nullptr), y, nullptr,      \
                                rstd, stream);                                                     \
  }                                                                                                \
  cudaError_t rms_norm_grad(NormRows shape, const T *x, const T *scale, const float *rstd,         \
                            const T *dY, T *dX, float *dScale, WorkStream stream) {                \
    return rmsGrad<false, false, T>(shape, x, scale, rstd, dY, nullptr, dX, {{dScale}}, stream);   \
  }                                                                                                \
  cudaError_t rms_norm_grad(NormRows shape, const T *x, const T *scale, const float *rstd,         \
                            const T *dY, const T *residual, T *dX, float *dScale,                  \
                            WorkStream stream) {                                                   \
    return rmsGrad<true, false>(shape, x, scale, rstd, dY, residual, dX, {{dScale}}, stream);      \
  }                                                                                                \
  cudaError_t rms_norm_grad(NormRows shape, const T *x, const T *scale, const float *rstd,         \
                            const T *dY, const T *residual, T *dX, float *dScale, float *sums,     \
                            WorkStream stream) {                                                   \
    return rmsGrad<true, true>(shape, x, scale, rstd, dY, residual, dX, {{dScale, sums}}, stream); \
  }
INSTANTIATE(float)
INSTANTIATE(bf16)
#undef INSTANTIATE

} // namespace fsdp::rt
