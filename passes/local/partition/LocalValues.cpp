//===- LocalValues.cpp - reshard and mask what one rank holds -------------===//

#include "passes/local/partition/LocalValues.h"
#include "mlir/IR/Matchers.h"
#include "passes/MeshAxes.h"
#include "passes/global/StepShardings.h"

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
  return type.clone(sharding.getLocalShape(type.getShape(), mesh));
}

bool LocalValues::isUneven(Value global, ShardingAttr sharding, int64_t dim) const {
  return cast<RankedTensorType>(global.getType()).getDimSize(dim) %
             mesh.getSize(sharding.getAxes(dim)) !=
         0;
}

bool LocalValues::isUneven(Value global, ShardingAttr sharding) const {
  return llvm::any_of(llvm::seq<int64_t>(0, sharding.getRank()),
                      [&](int64_t dim) { return isUneven(global, sharding, dim); });
}

static DimAxes axesOf(ShardingAttr sharding) {
  DimAxes axes;
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    axes.push_back(sharding.getAxes(dim));
  return axes;
}

static bool isSplat(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat));
}

//===----------------------------------------------------------------------===//
// Resharding
//===----------------------------------------------------------------------===//

void LocalValues::define(Value global, LocalValue local) {
  assert(local.value.getType() == localType(global, local.sharding) && "local type mismatch");
  defined[global] = local;
  resharded[{global, local.sharding}] = local;
}

void LocalValues::remark(Operation *consumer, Value global, Operation *collective) const {
  auto interface = cast<CollectiveOpInterface>(collective);
  // An inserted move stands for the op that needs it.
  if (isa<ReshardOp>(consumer))
    for (Operation *user : consumer->getUsers()) // the first one comes last
      consumer = user;
  InFlightDiagnostic diag = consumer->emitRemark()
                            << "'" << consumer->getName() << "' takes '" << nameOf(global)
                            << "' in another sharding: " << collective->getName().stripDialect()
                            << " over [";
  llvm::interleaveComma(interface.getAxes(), diag);
  diag << "] of " << interface.getBytes() << " bytes";
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

Value LocalValues::samplesOfMicrobatch(int64_t batch, ArrayRef<StringAttr> axes, bool counted,
                                       Location loc) {
  SmallVector<StringAttr> ranks(axes);
  llvm::erase(ranks, kMicrobatchAxis);
  Value &count = microbatchSamples[{batch, counted}][axisArray(ranks)];
  if (!count)
    count = MicrobatchSamplesOp::create(
        builder, loc, RankedTensorType::get({}, builder.getI64Type()), batch, counted,
        axisArray(ranks), mesh.getAxisSize(kMicrobatchAxis));
  return count;
}

Value LocalValues::shardIndices(Value indices, int64_t size, ArrayRef<StringAttr> axes, Location loc) {
  Value &own = shardIndicesOf[size][{indices, axisArray(axes)}];
  if (!own)
    own = ShardIndicesOp::create(builder, loc, indices.getType(), indices, size, axisArray(axes));
  return own;
}

Value LocalValues::shardSize(int64_t size, ArrayRef<StringAttr> axes, Location loc) {
  Value &count = shardSizes[size][axisArray(axes)];
  if (!count)
    count = ShardSizeOp::create(builder, loc, RankedTensorType::get({}, builder.getI64Type()), size,
                                axisArray(axes));
  return count;
}

/// False, after a diagnostic, where `global` would have to move between microbatches.
bool LocalValues::moves(Value global, ArrayRef<StringAttr> axes, Operation *consumer) {
  if (!llvm::is_contained(axes, kMicrobatchAxis))
    return true;
  // A move that propagation has inserted is made for an op.
  if (isa<ReshardOp>(consumer) && !consumer->use_empty())
    consumer = *consumer->user_begin();
  if (!failed)
    consumer->emitError() << "'" << consumer->getName() << "' needs all samples of '"
                          << nameOf(global)
                          << "' at once, but with gradient accumulation a step computes them in "
                          << mesh.getAxisSize(kMicrobatchAxis)
                          << " microbatches, one after another; train without accumulation";
  failed = true;
  return false;
}

/// Reduces partial sums: straight into the wanted split where that is possible, else everywhere.
LocalValue LocalValues::reduced(Value global, LocalValue local, const DimAxes &wanted,
                                Operation *consumer) {
  Location loc = global.getLoc();
  DimAxes axes = axesOf(local.sharding);
  SmallVector<StringAttr> partial(local.sharding.getUnreduced());
  bool maximum = reducesByMaximum(global.getDefiningOp());
  const ReduceKind kind = maximum ? ReduceKind::max : ReduceKind::sum;
  if (!scatterEach || maximum)
    local.value = overMicrobatches(local.value, kind, partial);
  for (size_t dim = 0; dim < wanted.size(); ++dim) {
    const AxisList &target = wanted[dim];
    bool scatters =
        !maximum && axes[dim].empty() && !target.empty() &&
        llvm::all_of(target, [&](StringAttr axis) { return llvm::is_contained(partial, axis); });
    if (!scatters)
      continue;
    axes[dim] = target;
    llvm::erase_if(partial, [&](StringAttr axis) { return llvm::is_contained(target, axis); });
    ShardingAttr scattered = sharding(axes, partial);
    local.value = ReduceScatterOp::create(builder, loc, localType(global, scattered), local.value,
                                          dim, axisArray(target));
    local.sharding = scattered;
    local.padding = isUneven(global, scattered, dim) ? Padding::zeros : local.padding;
  }
  ShardingAttr complete = sharding(axes);
  if (LocalValue known = resharded.lookup({global, complete}); known.value)
    return known;
  local.value = overMicrobatches(local.value, kind, partial);
  if (!partial.empty())
    local.value =
        AllReduceOp::create(builder, loc, kind, local.value, axisArray(inMeshOrder(partial)));
  local.sharding = complete;
  resharded[{global, complete}] = local;
  return local;
}

/// True where splitting a dimension of `size` over `major` and each part over `minor` is splitting
/// it over both together.
static bool nests(MeshAttr mesh, int64_t size, ArrayRef<StringAttr> major,
                  ArrayRef<StringAttr> minor) {
  return major.empty() || size % (mesh.getSize(major) * mesh.getSize(minor)) == 0;
}

LocalValue LocalValues::gathered(Value global, LocalValue local, const DimAxes &wanted,
                                 Operation *consumer) {
  auto type = cast<RankedTensorType>(global.getType());
  DimAxes axes = axesOf(local.sharding);
  for (auto [dim, target] : llvm::enumerate(wanted)) {
    AxisList &current = axes[dim];
    if (current == target)
      continue; // as it is wanted, whether or not parts nest
    size_t common = 0;
    while (common < current.size() && common < target.size() && current[common] == target[common])
      ++common;
    ArrayRef<StringAttr> all(current);
    // The axes to keep: what both begin with, if parts nest in parts.
    size_t keep =
        nests(mesh, type.getDimSize(dim), all.take_front(common), all.drop_front(common)) &&
                nests(mesh, type.getDimSize(dim), all.take_front(common),
                      ArrayRef<StringAttr>(target).drop_front(common))
            ? common
            : 0;
    if (keep == current.size())
      continue;
    SmallVector<StringAttr> over(all.drop_front(keep));
    if (!moves(global, over, consumer))
      return local;
    current.resize(keep);
    ShardingAttr sharding = this->sharding(axes);
    Operation *gather = AllGatherOp::create(builder, global.getLoc(), localType(global, sharding),
                                            local.value, dim, axisArray(over));
    remark(consumer, global, gather);
    local.value = gather->getResult(0);
    local.sharding = sharding;
  }
  return local;
}

LocalValue LocalValues::sliced(Value global, LocalValue local, const DimAxes &wanted,
                               Operation *consumer) {
  DimAxes axes = axesOf(local.sharding);
  for (auto [dim, target] : llvm::enumerate(wanted)) {
    if (axes[dim] == target)
      continue;
    SmallVector<StringAttr> over(ArrayRef<StringAttr>(target).drop_front(axes[dim].size()));
    if (!moves(global, over, consumer))
      return local;
    axes[dim] = target;
    ShardingAttr sharding = this->sharding(axes);
    Operation *slice = AllSliceOp::create(builder, global.getLoc(), localType(global, sharding),
                                          local.value, dim, axisArray(over));
    remark(consumer, global, slice);
    local.value = slice->getResult(0);
    local.sharding = sharding;
    if (isUneven(global, sharding, dim))
      local.padding = Padding::zeros;
  }
  return local;
}

LocalValue LocalValues::as(Value global, ShardingAttr wanted, Operation *consumer) {
  if (LocalValue known = resharded.lookup({global, wanted}); known.value)
    return known;
  LocalValue local = produced(global);
  assert(local.value && "value used before it is defined");
  DimAxes axes = axesOf(wanted);
  if (isSplat(global)) {
    // Every part of a splat is a splat.
    RankedTensorType type = localType(global, wanted);
    auto splat =
        cast<DenseElementsAttr>(cast<arith::ConstantOp>(global.getDefiningOp()).getValue());
    local = {arith::ConstantOp::create(builder, global.getLoc(), splat.resizeSplat(type)), wanted,
             Padding::repeats};
  } else {
    assert(wanted.getUnreduced().empty() && "a value is not made partial");
    if (!local.sharding.getUnreduced().empty())
      local = reduced(global, local, axes, consumer);
    local = gathered(global, local, axes, consumer);
    if (!failed)
      local = sliced(global, local, axes, consumer);
    if (failed) { // the step is refused; what follows has a value of the right type
      RankedTensorType type = localType(global, wanted);
      local = {arith::ConstantOp::create(builder, global.getLoc(), builder.getZeroAttr(type)), wanted,
               Padding::unknown};
    }
  }
  resharded[{global, wanted}] = local;
  return local;
}

LocalValue LocalValues::whole(Value global, Operation *consumer) {
  return as(global, replicated(global), consumer);
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

bool LocalValues::hasMasked(LocalValue local, int64_t dim, double fill) const {
  return (fill == 0 ? zeroMasks : extremeMasks).contains({local.value, dim});
}

LocalValue LocalValues::masked(Value global, LocalValue local, int64_t dim, double fill) {
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
  return {mask, local.sharding, fill == 0 ? Padding::zeros : Padding::unknown};
}
