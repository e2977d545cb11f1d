//===- CollectiveOps.cpp - the shared rules of collectives ----------------===//

#include "dialect/fsdp/FSDPDialect.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

#include "dialect/fsdp/CollectiveOpInterface.cpp.inc"

LogicalResult mlir::fsdp::detail::verifyCollective(Operation *op) {
  SmallVector<StringAttr> axes = cast<CollectiveOpInterface>(op).getAxes();
  if (axes.empty())
    return op->emitOpError() << "runs over no axes, expected at least one; use its operand as it is";
  return verifyAxes(op, axes, "runs over");
}

/// Fails unless `part` is one rank's part of `whole` along `dim`. A flat unit's shard (rank one)
/// may be longer.
static LogicalResult verifyPart(Operation *op, Type wholeType, Type partType, int64_t dim,
                                ArrayAttr over) {
  auto whole = cast<RankedTensorType>(wholeType);
  auto part = cast<RankedTensorType>(partType);
  if (dim < 0 || dim >= whole.getRank())
    return op->emitOpError() << "works along dimension " << dim << ", expected a dimension below "
                             << whole.getRank();
  int64_t ranks = getMesh(op).getSize(getAxisNames(over));
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = llvm::divideCeil(shape[dim], ranks);
  if (whole.getRank() == 1 && part.getRank() == 1)
    shape[0] = std::max(shape[0], part.getDimSize(0));
  RankedTensorType expected = RankedTensorType::get(shape, whole.getElementType());
  if (part != expected)
    return op->emitOpError() << "has " << part << " as the part of " << whole << " over " << ranks
                             << " ranks, expected " << expected;
  return success();
}

static int64_t bytesOf(Value value) {
  return BufferType::get(value.getContext(), cast<RankedTensorType>(value.getType()))
      .getSizeInBytes();
}

SmallVector<StringAttr> AllGatherOp::getAxes() { return getAxisNames(getOver()); }
int64_t AllGatherOp::getBytes() { return bytesOf(getResult()); }
LogicalResult AllGatherOp::verify() {
  return verifyPart(*this, getType(), getInput().getType(), getDim(), getOver());
}

SmallVector<StringAttr> ReduceScatterOp::getAxes() { return getAxisNames(getOver()); }
int64_t ReduceScatterOp::getBytes() { return bytesOf(getInput()); }
LogicalResult ReduceScatterOp::verify() {
  return verifyPart(*this, getInput().getType(), getType(), getDim(), getOver());
}

SmallVector<StringAttr> AllReduceOp::getAxes() { return getAxisNames(getOver()); }
int64_t AllReduceOp::getBytes() { return bytesOf(getInput()); }

SmallVector<StringAttr> AllSliceOp::getAxes() { return getAxisNames(getOver()); }
int64_t AllSliceOp::getBytes() { return 0; }
LogicalResult AllSliceOp::verify() {
  return verifyPart(*this, getInput().getType(), getType(), getDim(), getOver());
}
