//===- RowNorm.h - launches of kernels/RowNorm.h -------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_ROWNORM_H
#define FSDP_RUNTIME_LAUNCHES_ROWNORM_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/RowNorm.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// Rows of mean 0 and variance 1, scaled and shifted; `mean` and `rstd` are kept for the gradient.
template <class T>
void layer_norm(Context &c, int stream, const char *name, NormRows shape, ArenaSpan<T> x,
                ArenaSpan<T> scale, ArenaSpan<T> bias, ArenaSpan<T> y, ArenaSpan<float> mean,
                ArenaSpan<float> rstd) {
  launch(
      c, stream, name, reads(x, scale, bias), writes(y, mean, rstd),
      [shape](const T *x, const T *scale, const T *bias, T *y, float *mean, float *rstd) {
        kernels::layerNorm(shape, x, scale, bias, y, mean, rstd);
      },
      Work{"layer_norm"});
}

/// The gradient of `layer_norm`.
template <class T>
void layer_norm_grad(Context &c, int stream, const char *name, NormRows shape, ArenaSpan<T> x,
                     ArenaSpan<T> scale, ArenaSpan<float> mean, ArenaSpan<float> rstd,
                     ArenaSpan<T> dY, ArenaSpan<T> dX, ArenaSpan<float> dScale,
                     ArenaSpan<float> dBias) {
  launch(
      c, stream, name, reads(x, scale, mean, rstd, dY), writes(dX, dScale, dBias),
      [shape](const T *x, const T *scale, const float *mean, const float *rstd, const T *dY, T *dX,
              float *dScale, float *dBias) {
        kernels::layerNormGrad(shape, x, scale, mean, rstd, dY, dX, dScale, dBias);
      },
      Work{"layer_norm_grad"});
}

/// Rows of mean square 1, scaled; `rstd` is kept for the gradient.
template <class T>
void rms_norm(Context &c, int stream, const char *name, NormRows shape, ArenaSpan<T> x,
              ArenaSpan<T> scale, ArenaSpan<T> y, ArenaSpan<float> rstd) {
  launch(
      c, stream, name, reads(x, scale), writes(y, rstd),
      [shape](const T *x, const T *scale, T *y, float *rstd) {
        kernels::rmsNorm(shape, x, scale, y, rstd);
      },
      Work{"rms_norm"});
}

/// The gradient of `rms_norm`.
template <class T>
void rms_norm_grad(Context &c, int stream, const char *name, NormRows shape, ArenaSpan<T> x,
                   ArenaSpan<T> scale, ArenaSpan<float> rstd, ArenaSpan<T> dY, ArenaSpan<T> dX,
                   ArenaSpan<float> dScale) {
  launch(
      c, stream, name, reads(x, scale, rstd, dY), writes(dX, dScale),
      [shape](const T *x, const T *scale, const float *rstd, const T *dY, T *dX, float *dScale) {
        kernels::rmsNormGrad(shape, x, scale, rstd, dY, dX, dScale);
      },
      Work{"rms_norm_grad"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_ROWNORM_H
