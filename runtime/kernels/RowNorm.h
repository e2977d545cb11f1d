//===- RowNorm.h - normalization of rows ------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_ROWNORM_H
#define FSDP_RUNTIME_KERNELS_ROWNORM_H

#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>

namespace fsdp::rt {

// Rows and their scale and bias are float or bf16; statistics of rows and sums over rows are float.

namespace kernels {
/// y[r, j] = (x[r, j] - mean[r]) * rstd[r] * scale[j] + bias[j], where mean is that of the row and
/// rstd = 1 / sqrt(population variance + epsilon). Both are taken in double. In place is fine.
template <class T>
void layerNorm(NormRows shape, const T *x, const T *scale, const T *bias, T *y, float *mean,
               float *rstd);
/// The gradients of x, and those of scale and bias: sums over the rows, in order, of blocks of
/// eight in float, then of blocks in double. dX may be dY.
template <class T>
void layerNormGrad(NormRows shape, const T *x, const T *scale, const float *mean, const float *rstd,
                   const T *dY, T *dX, float *dScale, float *dBias);
/// y[r, j] = x[r, j] * rstd[r] * scale[j], where rstd = 1 / sqrt(mean of the squares + epsilon).
template <class T> void rmsNorm(NormRows shape, const T *x, const T *scale, T *y, float *rstd);
/// As `layerNormGrad`.
template <class T>
void rmsNormGrad(NormRows shape, const T *x, const T *scale, const float *rstd, const T *dY, T *dX,
                 float *dScale);
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_ROWNORM_H
