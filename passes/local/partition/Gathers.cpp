//===- Gathers.cpp - from reads to gathers and views ----------------------===//

#include "passes/local/partition/StepPartitioner.h"

using namespace mlir;
using namespace mlir::fsdp;

/// What compute sees of a storage: one gather for a group of reads, at `read`, the first of them,
/// of the shard in the type of the gather. A replicated storage is loaded.
Value StepPartitioner::gather(Storage *storage, ReadOp read) {
  Value &whole = gathers[{storage, plan.getGroup(read)}];
  if (whole)
    return whole;
  StructureScope scope(builder, structureOf(storage, read));
  Location loc = nameLoc(storage, "gather", storage->op.getLoc());
  whole = LoadOp::create(builder, loc, storage->shard, storage->op.getSymName(), "parameter");
  scope.add(FSDPDialect::gathersAttrName, FlatSymbolRefAttr::get(storage->op.getSymNameAttr()));
  if (storage->isCast())
    whole = arith::TruncFOp::create(builder, nameLoc(storage, "cast", storage->op.getLoc()),
                                    storage->getGatheredShard(), whole);
  PlacementAttr placement = storage->placement;
  if (placement.getKind() != StorageKind::replicated)
    whole = AllGatherOp::create(builder, loc, storage->getGathered(), whole,
                                std::max<int64_t>(placement.getDim(), 0),
                                values.axisArray(placement.getAxes()));
  return whole;
}

LogicalResult StepPartitioner::materialize(ReadOp read) {
  auto [storage, index] = layout.lookup(read.getParamAttr().getAttr());
  if (updated.contains(storage))
    return read.emitOpError() << "of '" << read.getParam()
                              << "' is used after an update of its unit '" << storage->unit
                              << "'; use parameters before the updates of a step";
  Value whole = gather(storage, read);
  StructureScope scope(builder, structureOf(storage, read));
  if (storage->placement.getKind() != StorageKind::dimension)
    whole = ViewOp::create(builder, NameLoc::get(read.getParamAttr().getAttr(), read.getLoc()),
                           read.getType(), whole, storage->members[index].offset);
  values.define(read.getResult(), {whole, values.replicated(read.getResult())});
  return success();
}
