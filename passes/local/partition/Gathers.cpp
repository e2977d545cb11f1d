//===- Gathers.cpp - from reads to gathers and views ----------------------===//

#include "passes/local/partition/StepPartitioner.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Groups the reads of the step that share one gather. The position of a read is its first use. A
/// maximal run of reads of one unit, with no read of another sharded unit in between, is one group:
/// so a unit is gathered once in forward and once in backward for all its parameters, and the last
/// unit of forward is kept for the start of backward. Units whose placement never reshards are one
/// group. For replicated parameters a cast replaces the gather.
void StepPartitioner::groupReads() {
  unsigned group = 0;
  StringRef unit;
  for (Operation &op : step.getBody().front())
    for (Value operand : op.getOperands()) {
      auto read = operand.getDefiningOp<ReadOp>();
      if (!read || gatherGroups.contains(read))
        continue;
      Storage *storage = layout.lookup(read.getParamAttr().getAttr()).first;
      // Parameters that compute reads in their storage are not gathered and do not end a run.
      if (!storage->isMade()) {
        gatherGroups[read] = 0;
        continue;
      }
      if (group == 0 || storage->unit != unit) {
        ++group;
        unit = storage->unit;
      }
      gatherGroups[read] = storage->placement.getReshard() == Reshard::never ? 0 : group;
    }
}

/// The contents of a storage for compute. A tensor that compute reads as stored is loaded;
/// otherwise there is one gather (a cast, if one rank stores all of it in another type) for a group
/// of reads, at `read`, the first of them.
Value StepPartitioner::gather(Storage *storage, ReadOp read) {
  const int64_t stage = getStructure(read).stage;
  Value &whole = gathers[{storage, {gatherGroups.lookup(read), stage}}];
  if (whole)
    return whole;
  StructureScope scope(builder, structureOf(storage, read));
  Location loc = nameLoc(storage, "gather", storage->op.getLoc());
  if (storage->placement.hasCopy()) {
    whole = LoadOp::create(builder, loc, storage->getGathered(), storage->op.getSymName(),
                           StorageOp::copy);
    return whole;
  }
  PlacementAttr placement = storage->placement;
  Value &kept = keptParts[{storage, stage}];
  Value part = kept;
  if (!part)
    part = LoadOp::create(builder, loc, storage->shard, storage->op.getSymName(),
                          StorageOp::parameter);
  scope.add(FSDPDialect::gathersAttrName, FlatSymbolRefAttr::get(storage->op.getSymNameAttr()));
  if (!kept && storage->getGatheredShard() != storage->shard)
    part = arith::TruncFOp::create(builder, nameLoc(storage, "cast", storage->op.getLoc()),
                                   storage->getGatheredShard(), part);
  const int64_t dim = std::max<int64_t>(placement.getDim(), 0);
  auto gatherOver = [&](RankedTensorType type, Value from, ArrayRef<StringAttr> axes) -> Value {
    return AllGatherOp::create(builder, loc, type, from, dim, values.axisArray(axes));
  };
  ArrayRef<StringAttr> axes = placement.getAxes();
  const bool keeps = placement.getReshard() == Reshard::axes;
  const bool keepsWhole = keeps && mesh.getSize(placement.getReshardAxes()) == 1;
  if (keepsWhole && kept)
    return whole = kept;
  if (keeps && !keepsWhole) {
    // First over the axes that nothing stays split over, then over those that the part is kept
    // split over.
    ArrayRef<StringAttr> over = axes.drop_front(placement.getReshardAxes().size());
    axes = placement.getReshardAxes();
    RankedTensorType type = storage->getGatheredShard();
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] *= mesh.getSize(over);
    if (!kept)
      kept = part = gatherOver(type.clone(shape), part, over);
  }
  // A shard on one rank is whole: its readers skip the padding.
  const bool isWhole = placement.getKind() == StorageKind::replicated || mesh.getSize(axes) == 1;
  whole = isWhole ? part : gatherOver(storage->getGathered(), part, axes);
  if (keepsWhole)
    kept = whole;
  return whole;
}

LogicalResult StepPartitioner::materialize(ReadOp read) {
  auto [storage, index] = layout.lookup(read.getParamAttr().getAttr());
  if (updated.contains(storage))
    return read.emitOpError() << "of '" << read.getParam()
                              << "' is used after an update of its unit '" << storage->unit
                              << "'; use parameters before the updates of a step";
  Value whole = gather(storage, read);
  ShardingAttr sharding = shardings.lookup(read.getResult());
  StructureScope scope(builder, structureOf(storage, read));
  if (storage->placement.getKind() != StorageKind::dimension)
    whole = ViewOp::create(builder, NameLoc::get(read.getParamAttr().getAttr(), read.getLoc()),
                           values.localType(read.getResult(), sharding), whole,
                           storage->members[index].offset);
  values.define(read.getResult(),
                {whole, sharding, SmallVector<Padding, 4>(sharding.getRank(), Padding::zeros)});
  return success();
}
