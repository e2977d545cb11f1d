//===- Statistics.h - statistics of a tensor for prints ---------*- C++ -*-===//

#ifndef INTERPRETER_STATISTICS_H
#define INTERPRETER_STATISTICS_H

#include "interpreter/Tensor.h"

#include <cmath>

namespace mlir::fsdp::interpreter {

/// Of the elements that are finite; without any, minimum and maximum are inf and -inf, the mean
/// NaN.
struct Statistics {
  double min = INFINITY, max = -INFINITY, mean = NAN;
  int64_t notFinite = 0;

  static Statistics of(const Tensor &tensor);
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_STATISTICS_H
