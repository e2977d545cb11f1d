//===- LocalValues.cpp - the parts of one rank, and their padding ---------===//

#include "passes/local/partition/LocalValues.h"
#include "dialect/fsdp/AxisParts.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Shardings and types
//===----------------------------------------------------------------------===//

SmallVector<StringAttr> LocalValues::inMeshOrder(ArrayRef<StringAttr> axes) const {
  SmallVector<StringAttr> sorted(axes);
  llvm::sort(sorted, [&](StringAttr a, StringAttr b) {
    return mesh.getAxisIndex(a) < mesh.getAxisIndex(b);
  });
  return sorted;
}

ShardingAttr LocalValues::sharding(const DimAxes &axes, ArrayRef<StringAttr> unreduced) const {
  return ShardingAttr::getCanonical(meshName, axes, unreduced);
}

ShardingAttr LocalValues::replicated(Value global) const {
  return sharding(DimAxes(cast<RankedTensorType>(global.getType()).getRank()));
}

RankedTensorType LocalValues::localType(Value global, ShardingAttr sharding) const {
  auto type = cast<RankedTensorType>(global.getType());
  return type.clone(sharding.getLocalShape(padded.lookup(global), mesh));
}

bool LocalValues::isUneven(Value global, ShardingAttr sharding, int64_t dim) const {
  return padded.isPadded(global, dim) ||
         padded.lookup(global)[dim] % mesh.getSize(sharding.getAxes(dim)) != 0;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void LocalValues::define(Value global, LocalValue local) {
  assert(local.value.getType() == localType(global, local.sharding) && "local type mismatch");
  defined[global] = local;
  resharded[{global, local.sharding}] = local;
}

LocalValue LocalValues::remember(Value global, LocalValue local) {
  known[global].push_back(local);
  return resharded[{global, local.sharding}] = local;
}

Value LocalValues::overMicrobatches(Value local, ReduceKind kind,
                                    SmallVectorImpl<StringAttr> &partial) {
  auto axis = llvm::find(partial, kMicrobatchAxis);
  if (axis == partial.end())
    return local;
  ArrayAttr over = axisArray(*axis);
  partial.erase(axis);
  Value &sum = microbatchSums[local];
  if (!sum)
    sum = AllReduceOp::create(builder, local.getLoc(), kind, local, over);
  return sum;
}

Value LocalValues::allReduce(Value local, ReduceKind kind, ArrayRef<StringAttr> axes,
                             Location loc) {
  if (mesh.getSize(axes) == 1)
    return local;
  return AllReduceOp::create(builder, loc, kind, local, axisArray(axes));
}

Value LocalValues::samplesOfMicrobatch(int64_t batch, ArrayRef<StringAttr> axes, bool counted,
                                       Location loc) {
  SmallVector<StringAttr> ranks(axes);
  llvm::erase(ranks, kMicrobatchAxis);
  Value &count = microbatchSamples[{batch, counted}][axisArray(ranks)];
  if (!count)
    count = MicrobatchSamplesOp::create(
        builder, loc, RankedTensorType::get({}, builder.getI64Type()), batch, counted,
        axisArray(ranks), mesh.getAxisSize(kMicrobatchAxis), /*microbatch=*/IntegerAttr());
  return count;
}

IntegerAttr LocalValues::partAttr(int64_t size, int64_t padded, ArrayRef<StringAttr> axes) const {
  const int64_t ranks = mesh.getSize(axes), part = llvm::divideCeil(padded, ranks);
  return part == static_cast<int64_t>(llvm::divideCeil(size, ranks))
             ? IntegerAttr()
             : builder.getI64IntegerAttr(part);
}

Value LocalValues::shardIndices(Value indices, int64_t size, int64_t padded,
                                ArrayRef<StringAttr> axes, Location loc) {
  Value &own = shardIndicesOf[{size, padded}][{indices, axisArray(axes)}];
  if (!own)
    own = ShardIndicesOp::create(builder, loc, indices.getType(), indices,
                                 builder.getI64IntegerAttr(size), axisArray(axes),
                                 partAttr(size, padded, axes));
  return own;
}

void LocalValues::refuseUneven(Operation *op, int64_t size, ArrayRef<StringAttr> axes) {
  if (!failed)
    op->emitError() << "'" << op->getName() << "' is split over "
                    << llvm::join(spellAxes(mesh, axes), "+") << "=" << mesh.getSize(axes)
                    << ", got " << size << " positions, expected a multiple of "
                    << mesh.getSize(axes) << "; use another length, or another mesh";
  failed = true;
}

void LocalValues::requireRanks(Operation *op, int64_t ranks, ArrayRef<StringAttr> axes) {
  if (mesh.getSize(axes) == ranks)
    return;
  const std::string over = llvm::join(spellAxes(mesh, axes), "+");
  if (!failed)
    op->emitError() << "'" << op->getName() << "' is in the zigzag order of " << ranks
                    << " ranks, but is split over "
                    << (over.empty() ? "none" : over + "=" + std::to_string(mesh.getSize(axes)))
                    << ", expected axes of that size; use --context-order=contiguous, or another "
                       "mesh";
  failed = true;
}

Value LocalValues::shardSize(int64_t size, int64_t padded, ArrayRef<StringAttr> axes,
                             Location loc) {
  Value &count = shardSizes[{size, padded}][axisArray(axes)];
  if (!count)
    count = ShardSizeOp::create(builder, loc, RankedTensorType::get({}, builder.getI64Type()),
                                builder.getI64IntegerAttr(size), axisArray(axes),
                                partAttr(size, padded, axes));
  return count;
}

Value LocalValues::shardOffset(int64_t size, int64_t padded, ArrayRef<StringAttr> axes,
                               Location loc) {
  Value &offset = shardOffsets[{size, padded}][axisArray(axes)];
  if (!offset)
    offset = ShardOffsetOp::create(builder, loc, RankedTensorType::get({}, builder.getI64Type()),
                                   builder.getI64IntegerAttr(size), axisArray(axes),
                                   partAttr(size, padded, axes));
  return offset;
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

bool LocalValues::hasMasked(const LocalValue &local, int64_t dim, double fill) const {
  return (fill == 0 && local.getPadding(dim) == Padding::zeros) ||
         (fill == 0 ? zeroMasks : extremeMasks).contains({local.value, dim});
}

LocalValue LocalValues::masked(Value global, LocalValue local, int64_t dim, double fill) {
  if (fill == 0 && local.getPadding(dim) == Padding::zeros)
    return local;
  Value &mask = (fill == 0 ? zeroMasks : extremeMasks)[{local.value, dim}];
  SmallVector<StringAttr> axes = local.sharding.getAxes(dim);
  if (!mask && llvm::is_contained(axes, kMicrobatchAxis)) {
    int64_t size = cast<RankedTensorType>(global.getType()).getDimSize(dim);
    Value count = samplesOfMicrobatch(size, axes, /*counted=*/false, local.value.getLoc());
    mask = MaskSamplesOp::create(builder, local.value.getLoc(), local.value.getType(), local.value,
                                 count, dim, /*rows=*/1, IntegerAttr(), ArrayAttr(), APFloat(fill));
  }
  if (!mask)
    mask = MaskPaddingOp::create(builder, local.value.getLoc(), local.value, dim,
                                 cast<RankedTensorType>(global.getType()).getDimSize(dim),
                                 axisArray(local.sharding.getAxes(dim)), APFloat(fill));
  LocalValue result{mask, local.sharding, local.padding};
  if (result.padding.empty())
    result.padding.assign(local.sharding.getRank(), Padding::repeats);
  result.padding[dim] = fill == 0 ? Padding::zeros : Padding::unknown;
  return result;
}
