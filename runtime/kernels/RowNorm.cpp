//===- RowNorm.cpp --------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <type_traits>

namespace fsdp::rt::kernels {

namespace {

double inverseRoot(double sum, NormRows shape) {
  return 1 / std::sqrt(sum / static_cast<double>(shape.width) + shape.epsilon);
}

/// Rows whose terms are added in float before they go into a total.
constexpr std::size_t kSumRows = 8;
/// The number of those blocks that several threads compute before their sums are added: they take
/// at most 4 MiB for rows of 4,096.
constexpr std::size_t kChunk = 128;

/// totals[j] += blocks[0][j] + blocks[1][j] + ... of rows `stride` apart, one after the other.
void addBlocks(const float *blocks, std::size_t count, std::size_t stride, std::size_t begin,
               std::size_t end, double *totals) {
  for (std::size_t block = 0; block < count; ++block) {
    const float *__restrict part = blocks + block * stride;
    double *__restrict total = totals;
#pragma omp simd
    for (std::size_t j = begin; j < end; ++j)
      total[j] += double(part[j]);
  }
}

/// `number` sums over rows for each of `width` columns, one after another in `results`: of up to
/// eight rows in float, then in double. `row(r, sums)` adds the terms of row `r`, and is called by
/// several threads for different rows, in no order.
template <class Row>
void sumOverRows(NormRows shape, std::size_t number, const Row &row, float *const *results) {
  const std::size_t columns = number * shape.width;
  const std::size_t blocks = (shape.rows + kSumRows - 1) / kSumRows;
  const std::size_t kept = slotsOfPieces(blocks) == 1 ? 1 : std::min(blocks, kChunk);
  auto *totals = static_cast<double *>(
      Workspace::ofThread().reserve(columns * (sizeof(double) + kept * sizeof(float))));
  auto *sums = reinterpret_cast<float *>(totals + columns);
  std::fill_n(totals, columns, 0.0);
  const auto formBlock = [&](std::size_t block, float *to) {
    std::fill_n(to, columns, 0.0f);
    const std::size_t end = std::min((block + 1) * kSumRows, shape.rows);
    for (std::size_t r = block * kSumRows; r < end; ++r)
      row(r, to);
  };
  for (std::size_t first = 0; first < blocks; first += kept) {
    const std::size_t count = std::min(kept, blocks - first);
    forEachPart(count, kSumRows * shape.width, [&](std::size_t begin, std::size_t end) {
      for (std::size_t block = begin; block < end; ++block)
        formBlock(first + block, sums + block * columns);
    });
    forEachPart(columns, count, 64, [&](std::size_t begin, std::size_t end) {
      addBlocks(sums, count, columns, begin, end, totals);
    });
  }
  for (std::size_t i = 0; i < columns; ++i)
    results[i / shape.width][i % shape.width] = static_cast<float>(totals[i]);
}

/// Whether a residual is added to the gradient of a row, and whether its numbers are, before they
/// are rounded, added to sums over rows.
enum class Addition { none, residual, sums };

/// Writes the gradient of one row, gradient(j) of its element j.
template <Addition kind, class T, class Gradient>
inline void writeGradient(std::size_t width, const Gradient &gradient, const T *residual, T *dX,
                          float *__restrict rowSum) {
#pragma omp simd
  for (std::size_t j = 0; j < width; ++j) {
    float total = gradient(j);
    if constexpr (kind != Addition::none)
      total += float(residual[j]);
    if constexpr (kind == Addition::sums)
      rowSum[j] += total;
    dX[j] = total;
  }
}

/// The gradient of one row, and its terms of those of scale and bias. Not inlined, so that the
/// compiler arranges its sums in the same way for all callers.
template <Addition kind, class T>
[[gnu::noinline]] void layerNormGradOfRow(std::size_t width, const T *x, const T *scale, float m,
                                          float s, const T *dY, const T *residual, T *dX,
                                          float *__restrict scaleSum, float *__restrict biasSum,
                                          float *__restrict rowSum) {
  double sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (std::size_t j = 0; j < width; ++j) {
    const float normalized = (float(x[j]) - m) * s, d = dY[j], gradient = d * float(scale[j]);
    sum += double(gradient);
    product += double(gradient) * double(normalized);
    scaleSum[j] += d * normalized;
    biasSum[j] += d;
  }
  const auto a = static_cast<float>(sum / static_cast<double>(width));
  const auto b = static_cast<float>(product / static_cast<double>(width));
  const auto gradient = [=](std::size_t j) {
    return s * (float(dY[j]) * float(scale[j]) - a - (float(x[j]) - m) * s * b);
  };
  writeGradient<kind>(width, gradient, residual, dX, rowSum);
}

template <Addition kind, class T>
[[gnu::noinline]] void rmsNormGradOfRow(std::size_t width, const T *x, const T *scale, float s,
                                        const T *dY, const T *residual, T *dX,
                                        float *__restrict scaleSum, float *__restrict rowSum) {
  double product = 0;
#pragma omp simd reduction(+ : product)
  for (std::size_t j = 0; j < width; ++j) {
    const float normalized = float(x[j]) * s, d = dY[j];
    product += double(d * float(scale[j])) * double(normalized);
    scaleSum[j] += d * normalized;
  }
  const auto b = static_cast<float>(product / static_cast<double>(width));
  const auto gradient = [=](std::size_t j) {
    return s * (float(dY[j]) * float(scale[j]) - float(x[j]) * s * b);
  };
  writeGradient<kind>(width, gradient, residual, dX, rowSum);
}

/// The gradient of a layer norm, or of an RMS norm where `mean` is null. `results`: of scale and,
/// of a layer norm, bias, and the sums of the gradient if there is one place more.
template <Addition kind, class T>
void normGradOfRows(NormRows shape, const T *x, const T *scale, const float *mean,
                    const float *rstd, const T *dY, std::common_type_t<const T *> residual, T *dX,
                    std::initializer_list<float *> results) {
  const std::size_t width = shape.width;
  const auto row = [&](std::size_t r, float *sums) {
    const std::size_t at = r * width;
    const T *added = residual ? residual + at : nullptr;
    if (mean)
      layerNormGradOfRow<kind>(width, x + at, scale, mean[r], rstd[r], dY + at, added, dX + at,
                               sums, sums + width, sums + 2 * width);
    else
      rmsNormGradOfRow<kind>(width, x + at, scale, rstd[r], dY + at, added, dX + at, sums,
                             sums + width);
  };
  sumOverRows(shape, results.size(), row, results.begin());
}

} // namespace

template <class T>
void layerNorm(NormRows shape, const T *x, const T *scale, const T *bias, T *y, float *mean,
               float *rstd) {
  const std::size_t width = shape.width;
  forEachPart(shape.rows, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const T *from = x + r * width;
      T *to = y + r * width;
      double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
      for (std::size_t j = 0; j < width; ++j)
        sum += double(float(from[j]));
      const double center = sum / static_cast<double>(width);
#pragma omp simd reduction(+ : squares)
      for (std::size_t j = 0; j < width; ++j) {
        const double difference = double(float(from[j])) - center;
        squares += difference * difference;
      }
      const auto m = static_cast<float>(center);
      const auto s = static_cast<float>(inverseRoot(squares, shape));
      mean[r] = m;
      rstd[r] = s;
#pragma omp simd
      for (std::size_t j = 0; j < width; ++j)
        to[j] = (float(from[j]) - m) * s * float(scale[j]) + float(bias[j]);
    }
  });
}

template <class T>
void layerNormGrad(NormRows shape, const T *x, const T *scale, const float *mean, const float *rstd,
                   const T *dY, T *dX, float *dScale, float *dBias) {
  normGradOfRows<Addition::none>(shape, x, scale, mean, rstd, dY, nullptr, dX, {dScale, dBias});
}

template <class T>
void layerNormGradPlus(NormRows shape, const T *x, const T *scale, const float *mean,
                       const float *rstd, const T *dY, const T *residual, T *dX, float *dScale,
                       float *dBias) {
  normGradOfRows<Addition::residual>(shape, x, scale, mean, rstd, dY, residual, dX,
                                     {dScale, dBias});
}

template <class T>
void layerNormGradSums(NormRows shape, const T *x, const T *scale, const float *mean,
                       const float *rstd, const T *dY, const T *residual, T *dX, float *dScale,
                       float *dBias, float *sums) {
  normGradOfRows<Addition::sums>(shape, x, scale, mean, rstd, dY, residual, dX,
                                 {dScale, dBias, sums});
}

template <class T> void rmsNorm(NormRows shape, const T *x, const T *scale, T *y, float *rstd) {
  const std::size_t width = shape.width;
  forEachPart(shape.rows, width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const T *from = x + r * width;
      T *to = y + r * width;
      double squares = 0;
#pragma omp simd reduction(+ : squares)
      for (std::size_t j = 0; j < width; ++j)
        squares += double(float(from[j])) * double(float(from[j]));
      const auto s = static_cast<float>(inverseRoot(squares, shape));
      rstd[r] = s;
#pragma omp simd
      for (std::size_t j = 0; j < width; ++j)
        to[j] = float(from[j]) * s * float(scale[j]);
    }
  });
}

template <class T>
void rmsNormGrad(NormRows shape, const T *x, const T *scale, const float *rstd, const T *dY, T *dX,
                 float *dScale) {
  normGradOfRows<Addition::none>(shape, x, scale, nullptr, rstd, dY, nullptr, dX, {dScale});
}

template <class T>
void rmsNormGradPlus(NormRows shape, const T *x, const T *scale, const float *rstd, const T *dY,
                     const T *residual, T *dX, float *dScale) {
  normGradOfRows<Addition::residual>(shape, x, scale, nullptr, rstd, dY, residual, dX, {dScale});
}

template <class T>
void rmsNormGradSums(NormRows shape, const T *x, const T *scale, const float *rstd, const T *dY,
                     const T *residual, T *dX, float *dScale, float *sums) {
  normGradOfRows<Addition::sums>(shape, x, scale, nullptr, rstd, dY, residual, dX, {dScale, sums});
}

#define INSTANTIATE(function)                                                                      \
  template decltype(function<float>) function<float>;                                              \
  template decltype(function<bf16>) function<bf16>;
INSTANTIATE(layerNorm)
INSTANTIATE(layerNormGrad)
INSTANTIATE(layerNormGradPlus)
INSTANTIATE(layerNormGradSums)
INSTANTIATE(rmsNorm)
INSTANTIATE(rmsNormGrad)
INSTANTIATE(rmsNormGradPlus)
INSTANTIATE(rmsNormGradSums)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
