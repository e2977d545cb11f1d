//===- RowNorm.h - normalization of rows ------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_ROWNORM_H
#define FSDP_RUNTIME_ROWNORM_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>

namespace fsdp::rt {

namespace kernels {
/// y[r, j] = (x[r, j] - mean[r]) * rstd[r] * scale[j] + bias[j], where mean is that of the row and
/// rstd = 1 / sqrt(population variance + epsilon). Both are taken in double. In place is fine.
void layerNorm(NormRows shape, const float *x, const float *scale, const float *bias, float *y,
               float *mean, float *rstd);
/// The gradients of x, and those of scale and bias: sums over the rows, taken in double in order.
/// dX may be dY.
void layerNormGrad(NormRows shape, const float *x, const float *scale, const float *mean,
                   const float *rstd, const float *dY, float *dX, float *dScale, float *dBias);
/// y[r, j] = x[r, j] * rstd[r] * scale[j], where rstd = 1 / sqrt(mean of the squares + epsilon).
void rmsNorm(NormRows shape, const float *x, const float *scale, float *y, float *rstd);
/// As `layerNormGrad`.
void rmsNormGrad(NormRows shape, const float *x, const float *scale, const float *rstd,
                 const float *dY, float *dX, float *dScale);
} // namespace kernels

/// Rows of mean 0 and variance 1, scaled and shifted; `mean` and `rstd` are kept for the gradient.
inline void layer_norm(Context &c, int stream, const char *name, NormRows shape, Slice<float> x,
                       Slice<float> scale, Slice<float> bias, Slice<float> y, Slice<float> mean,
                       Slice<float> rstd) {
  launch(c, stream, name, reads(x, scale, bias), writes(y, mean, rstd),
         [shape](const float *x, const float *scale, const float *bias, float *y, float *mean,
                 float *rstd) { kernels::layerNorm(shape, x, scale, bias, y, mean, rstd); });
}

/// The gradient of `layer_norm`.
inline void layer_norm_grad(Context &c, int stream, const char *name, NormRows shape,
                            Slice<float> x, Slice<float> scale, Slice<float> mean,
                            Slice<float> rstd, Slice<float> dY, Slice<float> dX,
                            Slice<float> dScale, Slice<float> dBias) {
  launch(c, stream, name, reads(x, scale, mean, rstd, dY), writes(dX, dScale, dBias),
         [shape](const float *x, const float *scale, const float *mean, const float *rstd,
                 const float *dY, float *dX, float *dScale, float *dBias) {
           kernels::layerNormGrad(shape, x, scale, mean, rstd, dY, dX, dScale, dBias);
         });
}

/// Rows of mean square 1, scaled; `rstd` is kept for the gradient.
inline void rms_norm(Context &c, int stream, const char *name, NormRows shape, Slice<float> x,
                     Slice<float> scale, Slice<float> y, Slice<float> rstd) {
  launch(c, stream, name, reads(x, scale), writes(y, rstd),
         [shape](const float *x, const float *scale, float *y, float *rstd) {
           kernels::rmsNorm(shape, x, scale, y, rstd);
         });
}

/// The gradient of `rms_norm`.
inline void rms_norm_grad(Context &c, int stream, const char *name, NormRows shape, Slice<float> x,
                          Slice<float> scale, Slice<float> rstd, Slice<float> dY, Slice<float> dX,
                          Slice<float> dScale) {
  launch(c, stream, name, reads(x, scale, rstd, dY), writes(dX, dScale),
         [shape](const float *x, const float *scale, const float *rstd, const float *dY, float *dX,
                 float *dScale) { kernels::rmsNormGrad(shape, x, scale, rstd, dY, dX, dScale); });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ROWNORM_H
