//===- Optimizer.cpp - norms and updates of shards ------------------------===//

#include "dialect/nn/Precision.h"
#include "passes/local/partition/StepPartitioner.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Members of one storage are updated by one op, so their updates must have the same properties.
LogicalResult StepPartitioner::verifyUpdates() {
  DenseMap<Storage *, UpdateOp> firsts;
  llvm::SmallDenseSet<StringAttr> seen;
  for (UpdateOp update : step.getBody().front().getOps<UpdateOp>()) {
    if (!seen.insert(update.getParamAttr().getAttr()).second)
      return update.emitOpError() << "updates '" << update.getParam()
                                  << "' a second time; update a parameter once in a step";
    Storage *storage = layout.lookup(update.getParamAttr().getAttr()).first;
    UpdateOp &first = firsts[storage];
    if (!first) {
      first = update;
      continue;
    }
    if (first.getLr() == update.getLr() && first.getScale() == update.getScale() &&
        first.getOk() == update.getOk() && first.getOptimizer() == update.getOptimizer())
      continue;
    InFlightDiagnostic diag = update.emitOpError()
                              << "updates '" << update.getParam()
                              << "' with another rule, rate, scale or condition than '"
                              << first.getParam() << "', which shares unit '" << storage->unit
                              << "'; put them into different units";
    diag.attachNote(first.getLoc()) << "the other update is here";
    return diag;
  }
  return success();
}

/// The square root of the sum of squares: of each shard, then over the ranks that share a storage
/// or have other parts of its members.
void StepPartitioner::convertNorm(GlobalNormOp norm) {
  Location loc = norm.getLoc();
  auto f64 = RankedTensorType::get({}, builder.getF64Type());
  auto add = [&](Value sum, Value term) -> Value {
    return sum ? arith::AddFOp::create(builder, loc, sum, term).getResult() : term;
  };
  llvm::MapVector<ArrayAttr, std::pair<SmallVector<StringAttr>, Value>> byAxes;
  for (Reduction *reduction : normReductions.lookup(norm)) {
    SmallVector<StringAttr> axes(reduction->storage->getAxes());
    llvm::append_range(axes, reduction->storage->split);
    auto &[over, sum] = byAxes[values.axisArray(axes)];
    over = axes;
    sum = add(sum, SquareSumOp::create(builder, loc, reduction->shard));
  }
  Value total;
  for (const auto &[key, part] : byAxes)
    total = add(total, values.allReduce(part.second, ReduceKind::sum, part.first, loc));
  if (!total)
    total = nn::createSplat(builder, loc, f64, 0);
  Value root = math::SqrtOp::create(builder, loc, total);
  Value rounded = arith::TruncFOp::create(builder, loc, norm.getNorm().getType(), root);
  values.define(norm.getNorm(), {rounded, values.replicated(norm.getNorm())});
}

/// This rank's shard of the parameters: stored, or sliced from the copy.
Value StepPartitioner::loadShard(Storage *storage, Location loc) {
  StringRef name = storage->op.getSymName();
  if (storage->op.keepsShard())
    return LoadOp::create(builder, loc, storage->shard, name, StorageOp::parameter);
  Value copy = LoadOp::create(builder, loc, storage->getGathered(), name, StorageOp::copy);
  return AllSliceOp::create(builder, nameLoc(storage, "shard", loc), storage->shard, copy,
                            std::max<int64_t>(storage->placement.getDim(), 0),
                            values.axisArray(storage->getAxes()));
}

/// Replaces the copy that forward reads by the shards that all ranks have updated.
void StepPartitioner::storeCopy(Storage *storage, Value shard, Location loc) {
  if (shard.getType() != storage->getGatheredShard())
    shard = arith::TruncFOp::create(builder, nameLoc(storage, "cast", loc),
                                    storage->getGatheredShard(), shard);
  Value copy = AllGatherOp::create(builder, nameLoc(storage, "gather", loc), storage->getGathered(),
                                   shard, std::max<int64_t>(storage->placement.getDim(), 0),
                                   values.axisArray(storage->getAxes()));
  StoreOp::create(builder, loc, copy, storage->op.getSymName(), StorageOp::copy);
}

/// One update for all members of a storage, at the position of the first member's update.
void StepPartitioner::convertUpdate(UpdateOp update) {
  Storage *storage = layout.lookup(update.getParamAttr().getAttr()).first;
  if (!updated.insert(storage))
    return;
  Location loc = nameLoc(storage, "update", update.getLoc());
  StringRef name = storage->op.getSymName();
  auto load = [&](StringRef what) -> Value {
    return LoadOp::create(builder, loc, storage->shard, name, what);
  };
  auto scalar = [&](Value value) { return values.whole(value, update).value; };

  SmallVector<StringRef> names = update.getOptimizer().getStateNames();
  Value parameter = loadShard(storage, loc);
  SmallVector<Value> states = llvm::map_to_vector(names, load);
  SmallVector<Type> stateTypes(names.size(), storage->shard);
  auto result = OptimizerStepOp::create(
      builder, loc, storage->shard, TypeRange(stateTypes), update.getOptimizer(), name, parameter,
      updateReductions.lookup(storage)->shard, states, scalar(update.getLr()),
      scalar(update.getScale()), scalar(update.getOk()), /*deferred=*/false);
  if (storage->op.keepsShard())
    StoreOp::create(builder, loc, result.getNewParameter(), name, StorageOp::parameter);
  for (auto [state, value] : llvm::zip_equal(names, result.getNewStates()))
    StoreOp::create(builder, loc, value, name, state);
  if (storage->placement.hasCopy())
    storeCopy(storage, result.getNewParameter(), loc);
}
