//===- Manual.h - parts of a step in the terms of one rank ------*- C++ -*-===//
//
// `fsdp.manual` and its inlining. Inside a region a value has, for each manual axis, a state: a
// type that determines its cotangent and the collectives that may take it. `inlineManual` replaces
// a region by its body between `fsdp.enter_manual` and `fsdp.exit_manual`, with a `fsdp.pvary`
// wherever an op combines an invariant value with a varying one: from then on each op has a
// derivative of its own, and all passes see one flat step.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_MANUAL_H
#define DIALECT_FSDP_MANUAL_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::fsdp {

/// The state of a value of a region on the ranks along one axis.
enum class AxisState {
  invariant, ///< equal on all of them, and so is its cotangent
  varying,   ///< each has its own
  partial,   ///< each has a term of a sum that is not formed yet
};
StringRef stringify(AxisState state);

/// The states of a value: one for each axis of the region.
using AxisStates = SmallVector<AxisState, 2>;

/// The states of the values in the body of a region.
class ManualTypes {
public:
  /// Fails, emitting on the op, where an op cannot have the states of its operands.
  static FailureOr<ManualTypes> infer(ManualOp region);

  /// The states of `value`; invariant over all axes for one that is not in the body.
  AxisStates lookup(Value value) const;
  ArrayRef<StringAttr> getAxes() const { return axes; }
  /// Makes `value` varying over those of `over` over which it is invariant, and takes the states of
  /// `from` for the others.
  void addVarying(Value value, Value from, ArrayRef<StringAttr> over);

private:
  LogicalResult visit(Operation *op);
  LogicalResult visitCompute(Operation *op);
  LogicalResult visitCollective(Operation *op);

  SmallVector<StringAttr> axes;
  DenseMap<Value, AxisStates> states;
};

/// The part of `value` that a rank has at the boundary of a region, behind a constraint that splits
/// it over `over` as `sharding` says.
Value enterManual(OpBuilder &builder, Location loc, Value value, ShardingAttr sharding,
                  ArrayAttr over);

/// Replaces `region` by its body. Regions inside stay.
void inlineManual(ManualOp region);
/// Replaces all regions of `step`, also those in checkpoints.
void inlineManual(StepOp step);

/// The state of a value at the boundary of a region with the sharding `sharding`, over `axis`.
AxisState getBoundaryState(ShardingAttr sharding, StringAttr axis);
/// The axes of `sharding` along dimension `dim` that have more than one rank.
SmallVector<StringAttr> getSplittingAxes(ShardingAttr sharding, int64_t dim, MeshAttr mesh);

/// The manual axes of the values of a step whose regions are inlined: those over which a value is
/// in local terms, in the order of the mesh.
class ManualAxes {
public:
  explicit ManualAxes(StepOp step);

  ArrayRef<StringAttr> lookup(Value value) const;
  /// All axes over which some value is in local terms.
  ArrayRef<StringAttr> getAll() const { return all; }
  /// Fails, emitting on the op, where a collective is over an axis that is not manual for its
  /// operand, or where a value in local terms goes where whole ones belong.
  LogicalResult verify(StepOp step) const;

private:
  DenseMap<Value, SmallVector<StringAttr>> axes;
  DenseSet<Value> constants; ///< values computed from constants alone: the same in any terms
  SmallVector<StringAttr> all;
};

/// Whether `op` is a collective in local terms (`fsdp.psum`, ...).
inline bool isManualCollective(Operation *op) {
  return isa<PsumOp, PmaxOp, PvaryOp, PgatherOp, PsumScatterOp, PswapOp, PpermuteOp>(op);
}
/// The axes of such a collective.
SmallVector<StringAttr> getManualCollectiveAxes(Operation *op);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_MANUAL_H
