//===- Projection.h - the shardings of an op along its factors --*- C++ -*-===//

#ifndef PASSES_PROPAGATION_PROJECTION_H
#define PASSES_PROPAGATION_PROJECTION_H

#include "passes/propagation/Problem.h"

namespace mlir::fsdp::propagation {

/// How one tensor is split along one factor.
struct FactorSharding {
  bool present = false;
  AxisList axes;
  bool closed = false;
  /// The last factor of its dimension, the only one that need not divide by its axes.
  bool minorMost = false;
  /// Axes of the dimension that exceed the size of the factor: they cannot be propagated.
  AxisList overflow;
};

/// How one tensor of an op is split along all its factors.
struct TensorProjection {
  std::vector<FactorSharding> factors;
  AxisList replicated, unreduced;
  int64_t size = 1; ///< product of the sizes of its factors

  bool has(int factor) const { return factors[factor].present; }
};

/// Distributes the axes of each dimension to its factors, major to minor: a factor takes axes that
/// divide its size, splitting an axis where necessary.
///
///   mesh "a"=2, "b"=4; a dimension of factors f0 of size 4 and f1 of size 6, split over a+b
///   f0: a+b:(1)2    f1: b:(2)2
///   the same with f0 of size 3: nothing divides it
///   f0: _ (overflow a+b)    f1: _
TensorProjection project(const Op &op, const Mapping &dims, const Sharding &sharding);

/// The axes of each dimension from those of its factors. Axes after a factor that is not split
/// completely are left out: their shards would be strided.
///
///   mesh "a"=2, "b"=4; factors of sizes 4 and 6, f0 split over b, f1 over a
///   the dimension: b+a
///   f0 split over a only, f1 over b
///   the dimension: a
std::vector<AxisList> unproject(const Op &op, const Mapping &dims, const TensorProjection &tensor);

} // namespace mlir::fsdp::propagation

#endif // PASSES_PROPAGATION_PROJECTION_H
