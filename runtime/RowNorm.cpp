//===- RowNorm.cpp --------------------------------------------------------===//

#include "runtime/RowNorm.h"

#include "runtime/Workspace.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

namespace {

double inverseRoot(double sum, NormRows shape) {
  return 1 / std::sqrt(sum / static_cast<double>(shape.width) + shape.epsilon);
}

void toFloats(const double *from, std::size_t count, float *to) {
  for (std::size_t j = 0; j < count; ++j)
    to[j] = static_cast<float>(from[j]);
}

} // namespace

void layerNorm(NormRows shape, const float *x, const float *scale, const float *bias, float *y,
               float *mean, float *rstd) {
  const std::size_t width = shape.width;
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, y += width) {
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t j = 0; j < width; ++j)
      sum += double(x[j]);
    const double center = sum / static_cast<double>(width);
#pragma omp simd reduction(+ : squares)
    for (std::size_t j = 0; j < width; ++j)
      squares += (double(x[j]) - center) * (double(x[j]) - center);
    const auto m = static_cast<float>(center);
    const auto s = static_cast<float>(inverseRoot(squares, shape));
    mean[r] = m;
    rstd[r] = s;
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      y[j] = (x[j] - m) * s * scale[j] + bias[j];
  }
}

void layerNormGrad(NormRows shape, const float *x, const float *scale, const float *mean,
                   const float *rstd, const float *dY, float *dX, float *dScale, float *dBias) {
  const std::size_t width = shape.width;
  auto *scaleSums =
      static_cast<double *>(Workspace::ofThread().reserve(2 * width * sizeof(double)));
  double *biasSums = scaleSums + width;
  std::fill_n(scaleSums, 2 * width, 0.0);
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, dY += width, dX += width) {
    const float m = mean[r], s = rstd[r];
    double sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (std::size_t j = 0; j < width; ++j) {
      const float normalized = (x[j] - m) * s, gradient = dY[j] * scale[j];
      sum += double(gradient);
      product += double(gradient) * double(normalized);
      scaleSums[j] += double(dY[j]) * double(normalized);
      biasSums[j] += double(dY[j]);
    }
    const auto a = static_cast<float>(sum / static_cast<double>(width));
    const auto b = static_cast<float>(product / static_cast<double>(width));
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      dX[j] = s * (dY[j] * scale[j] - a - (x[j] - m) * s * b);
  }
  toFloats(scaleSums, width, dScale);
  toFloats(biasSums, width, dBias);
}

void rmsNorm(NormRows shape, const float *x, const float *scale, float *y, float *rstd) {
  const std::size_t width = shape.width;
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, y += width) {
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::size_t j = 0; j < width; ++j)
      squares += double(x[j]) * double(x[j]);
    const auto s = static_cast<float>(inverseRoot(squares, shape));
    rstd[r] = s;
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      y[j] = x[j] * s * scale[j];
  }
}

void rmsNormGrad(NormRows shape, const float *x, const float *scale, const float *rstd,
                 const float *dY, float *dX, float *dScale) {
  const std::size_t width = shape.width;
  auto *scaleSums = static_cast<double *>(Workspace::ofThread().reserve(width * sizeof(double)));
  std::fill_n(scaleSums, width, 0.0);
  for (std::size_t r = 0; r < shape.rows; ++r, x += width, dY += width, dX += width) {
    const float s = rstd[r];
    double product = 0;
#pragma omp simd reduction(+ : product)
    for (std::size_t j = 0; j < width; ++j) {
      const float normalized = x[j] * s;
      product += double(dY[j] * scale[j]) * double(normalized);
      scaleSums[j] += double(dY[j]) * double(normalized);
    }
    const auto b = static_cast<float>(product / static_cast<double>(width));
#pragma omp simd
    for (std::size_t j = 0; j < width; ++j)
      dX[j] = s * (dY[j] * scale[j] - x[j] * s * b);
  }
  toFloats(scaleSums, width, dScale);
}

} // namespace fsdp::rt::kernels
