//===- FactorStep.h - carry axes across one op ------------------*- C++ -*-===//

#ifndef PASSES_PROPAGATION_FACTORSTEP_H
#define PASSES_PROPAGATION_FACTORSTEP_H

#include "passes/propagation/Projection.h"

namespace mlir::fsdp::propagation {

/// The directions in which axes may propagate along a factor.
enum class Direction { none, forward, backward, both };
inline Direction join(Direction a, Direction b) {
  return static_cast<Direction>(static_cast<int>(a) | static_cast<int>(b));
}

/// The tensors of one op, operands first, while axes are carried between them.
class FactorStep {
public:
  FactorStep(const Op &op, bool subAxes, std::vector<TensorProjection> tensors)
      : op(op), subAxes(subAxes), tensors(std::move(tensors)) {}

  /// Extends each tensor along each factor by the axes that all tensors agree on. Returns the
  /// tensors that changed.
  ///
  ///   c[i, k] = sum over j of a[i, j] * b[j, k]
  ///   before: a [x, _]    b [_, y]    c [_, _]
  ///   after:  a [x, _]    b [_, y]    c [x, y]
  ///   with b [_, x], x conflicts between i and k of c: c stays [_, _]
  std::vector<bool> carryCompatible(const std::vector<Direction> &directions);
  /// Extends each tensor by all axes that it does not contradict; of factors that need the same
  /// axis, the factor of the larger tensor gets it.
  ///
  ///   c[i, k] = sum over j of a[i, j] * b[j, k], a larger than b
  ///   before: a [x, _]    b [_, x]    c [_, _]
  ///   after:  a [x, _]    b [_, x]    c [x, _]
  std::vector<bool> carryAggressively(const std::vector<Direction> &directions);

  const TensorProjection &tensor(size_t index) const { return tensors[index]; }

private:
  size_t numOperands() const { return op.operandDims.size(); }
  /// The longest list that is compatible with every tensor's; tensors on the source side of
  /// `direction` may extend it: of x+y, x and x+y it is x+y, of x+y and x+z it is x.
  AxisList commonAxes(int factor, Direction direction) const;
  /// The longest prefix of `axis` that overlaps no axis of another factor of `tensor`: of an axis
  /// x of size 8 in a tensor that has x:(4)2 in another dimension, x:(1)4.
  std::optional<AxisPart> withoutOtherFactors(AxisPart axis, const TensorProjection &tensor,
                                              int factor) const;
  /// The longest prefix of `axis` that `factor` of `tensor` has room for after axes of size
  /// `before`.
  std::optional<AxisPart> withinFactor(AxisPart axis, const TensorProjection &tensor, int factor,
                                       int64_t before) const;
  template <typename Fit> void truncate(AxisList &axes, Fit fit) const;
  bool extend(TensorProjection &tensor, int factor, const AxisList &axes);
  /// The part of `axes` that extends `tensor` along `factor`; empty if it adds no axis.
  AxisList fitting(const TensorProjection &tensor, int factor, AxisList axes) const;

  const Op &op;
  bool subAxes;
  std::vector<TensorProjection> tensors;
};

} // namespace mlir::fsdp::propagation

#endif // PASSES_PROPAGATION_FACTORSTEP_H
