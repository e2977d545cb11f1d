//===- RowNorm.cpp --------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/Workspace.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

namespace {

double inverseRoot(double sum, NormRows shape) {
  return 1 / std::sqrt(sum / static_cast<double>(shape.width) + shape.epsilon);
}

/// Sums over rows of `width` columns: of up to eight rows in float, then in double.
class ColumnSums {
public:
  ColumnSums(double *totals, float *parts, std::size_t width)
      : totals(totals), parts(parts), width(width) {
    std::fill_n(totals, width, 0.0);
    std::fill_n(parts, width, 0.0f);
  }

  static std::size_t bytes(std::size_t width) { return width * (sizeof(double) + sizeof(float)); }

  /// Where the terms of the next row are added.
  float *row() { return parts; }
  /// After each row.
  void next() {
    if (++count % 8 == 0)
      flush();
  }
  void finish(float *to) {
    flush();
    for (std::size_t j = 0; j < width; ++j)
      to[j] = static_cast<float>(totals[j]);
  }

private:
  void flush() {
    double *__restrict total = totals;
    float *__restrict part = parts;
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j) {
      total[j] += double(part[j]);
      part[j] = 0;
    }
  }

  double *totals;
  float *parts;
  std::size_t width, count = 0;
};

} // namespace

template <class T>
void layerNorm(NormRows shape, const T *x, const T *scale, const T *bias, T *y, float *mean,
               float *rstd) {
  const std::size_t width = shape.width;
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, y += width) {
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < width; ++j)
      sum += double(float(x[j]));
    const double center = sum / static_cast<double>(width);
#pragma omp simd reduction(+ : squares)
    for (std::size_t j = 0; j < width; ++j) {
      const double difference = double(float(x[j])) - center;
      squares += difference * difference;
    }
    const auto m = static_cast<float>(center);
    const auto s = static_cast<float>(inverseRoot(squares, shape));
    mean[r] = m;
    rstd[r] = s;
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      y[j] = (float(x[j]) - m) * s * float(scale[j]) + float(bias[j]);
  }
}

template <class T>
void layerNormGrad(NormRows shape, const T *x, const T *scale, const float *mean, const float *rstd,
                   const T *dY, T *dX, float *dScale, float *dBias) {
  const std::size_t width = shape.width;
  auto *totals = static_cast<double *>(Workspace::ofThread().reserve(2 * ColumnSums::bytes(width)));
  auto *parts = reinterpret_cast<float *>(totals + 2 * width);
  ColumnSums scaleSums(totals, parts, width), biasSums(totals + width, parts + width, width);
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, dY += width, dX += width) {
    const float m = mean[r], s = rstd[r];
    float *__restrict scaleSum = scaleSums.row(), *__restrict biasSum = biasSums.row();
    double sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (std::size_t j = 0; j < width; ++j) {
      const float normalized = (float(x[j]) - m) * s, d = dY[j], gradient = d * float(scale[j]);
      sum += double(gradient);
      product += double(gradient) * double(normalized);
      scaleSum[j] += d * normalized;
      biasSum[j] += d;
    }
    scaleSums.next(), biasSums.next();
    const auto a = static_cast<float>(sum / static_cast<double>(width));
    const auto b = static_cast<float>(product / static_cast<double>(width));
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      dX[j] = s * (float(dY[j]) * float(scale[j]) - a - (float(x[j]) - m) * s * b);
  }
  scaleSums.finish(dScale), biasSums.finish(dBias);
}

template <class T> void rmsNorm(NormRows shape, const T *x, const T *scale, T *y, float *rstd) {
  const std::size_t width = shape.width;
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, y += width) {
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::size_t j = 0; j < width; ++j)
      squares += double(float(x[j])) * double(float(x[j]));
    const auto s = static_cast<float>(inverseRoot(squares, shape));
    rstd[r] = s;
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      y[j] = float(x[j]) * s * float(scale[j]);
  }
}

template <class T>
void rmsNormGrad(NormRows shape, const T *x, const T *scale, const float *rstd, const T *dY, T *dX,
                 float *dScale) {
  const std::size_t width = shape.width;
  auto *totals = static_cast<double *>(Workspace::ofThread().reserve(ColumnSums::bytes(width)));
  ColumnSums scaleSums(totals, reinterpret_cast<float *>(totals + width), width);
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, dY += width, dX += width) {
    const float s = rstd[r];
    float *__restrict scaleSum = scaleSums.row();
    double product = 0;
#pragma omp simd reduction(+ : product)
    for (std::size_t j = 0; j < width; ++j) {
      const float normalized = float(x[j]) * s, d = dY[j];
      product += double(d * float(scale[j])) * double(normalized);
      scaleSum[j] += d * normalized;
    }
    scaleSums.next();
    const auto b = static_cast<float>(product / static_cast<double>(width));
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      dX[j] = s * (float(dY[j]) * float(scale[j]) - float(x[j]) * s * b);
  }
  scaleSums.finish(dScale);
}

#define INSTANTIATE(T)                                                                             \
  template void layerNorm(NormRows, const T *, const T *, const T *, T *, float *, float *);       \
  template void layerNormGrad(NormRows, const T *, const T *, const float *, const float *,        \
                              const T *, T *, float *, float *);                                   \
  template void rmsNorm(NormRows, const T *, const T *, T *, float *);                             \
  template void rmsNormGrad(NormRows, const T *, const T *, const float *, const T *, T *, float *);
INSTANTIATE(float)
INSTANTIATE(bf16)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
