//===- StepPartitioner.cpp - one step, from global to local ---------------===//

#include "passes/local/partition/StepPartitioner.h"
#include "dialect/fsdp/Manual.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

StepPartitioner::StepPartitioner(StepOp step, const StepShardings &shardings,
                                 const PaddedShapes &padded, const StorageLayout &layout,
                                 AccumulateReduce accumulateReduce, TiedGradients tiedGradients,
                                 OpBuilder &builder)
    : step(step), mesh(getMesh(step)), shardings(shardings), padded(padded), layout(layout),
      accumulateReduce(accumulateReduce), tiedGradients(tiedGradients), builder(builder),
      values(builder, step, FlatSymbolRefAttr::get(getMeshOp(step).getSymNameAttr()), padded) {
  values.hasWholeSamples = shardings.hasWholeSamples();
  groupReads();
}

Location StepPartitioner::nameLoc(Storage *storage, StringRef suffix, Location loc) const {
  std::string name = (storage->op.getSymName() + "." + suffix).str();
  return NameLoc::get(StringAttr::get(loc.getContext(), name), loc);
}

Structure StepPartitioner::structureOf(Storage *storage, Operation *op) const {
  return getStructure(op).in(StringAttr::get(op->getContext(), storage->unit));
}

LogicalResult StepPartitioner::convert(Operation *op) {
  // Parameters are gathered where they are first used.
  for (Value operand : op->getOperands())
    if (auto read = operand.getDefiningOp<ReadOp>())
      if (!values.isDefined(operand) && failed(materialize(read)))
        return failure();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ReadOp) { return success(); })
      .Case([&](InputOp input) {
        convertInput(input);
        return success();
      })
      .Case<ConstraintOp, ReshardOp>([&](auto move) {
        ShardingAttr sharding = shardings.lookup(move.getResult());
        values.define(move, values.as(move.getInput(), sharding, move));
        return success();
      })
      .Case([&](CarryLoadOp load) {
        convertCarryLoad(load);
        return success();
      })
      .Case([&](CarryStoreOp store) {
        convertCarryStore(store);
        return success();
      })
      .Case([&](EnterManualOp enter) {
        convertEnter(enter);
        return success();
      })
      .Case([&](ExitManualOp exit) {
        convertExit(exit);
        return success();
      })
      .Case<PsumOp, PmaxOp, PvaryOp, PgatherOp, PsumScatterOp, PswapOp, PpermuteOp>([&](auto) {
        convertManualCollective(op);
        return success();
      })
      .Case([&](AxisIndexOp index) {
        const SmallVector<StringAttr> axes = getAxisNames(index.getOver());
        const int64_t ranks = mesh.getSize(axes);
        values.define(index, {values.shardOffset(ranks, ranks, axes, index.getLoc()),
                              values.replicated(index)});
        return success();
      })
      .Case([&](GlobalNormOp norm) {
        convertNorm(norm);
        return success();
      })
      .Case([&](UpdateOp update) {
        convertUpdate(update);
        return success();
      })
      .Case([&](ManualOp region) {
        return region.emitOpError()
               << "must be lowered before --fsdp-partition; run --fsdp-inline-manual first";
      })
      .Case<LossOp, MetricOp, CheckpointOp>(
          [&](auto op) {
            return op.emitOpError()
                   << "must be lowered before --fsdp-partition; run --fsdp-differentiate first";
          })
      .Case([&](GradientOp gradient) {
        return gradient.emitOpError()
               << "must be lowered before --fsdp-partition; run --fsdp-apply-optimizer first";
      })
      .Case<nn::ShardingRuleOpInterface>([&](auto) {
        convertCompute(op);
        return success();
      })
      .Default([&](Operation *) {
        convertScalar(op);
        return success();
      });
}

LogicalResult StepPartitioner::run() {
  if (failed(verifyUpdates()) || failed(collectReductions()))
    return failure();
  for (Operation &op : step.getBody().front()) {
    // Ops that compute the operands of an op, or complete its result, have the structure of that
    // op.
    StructureScope scope(builder, getStructure(&op));
    if (!elided.contains(&op) && failed(convert(&op)))
      return failure();
    for (auto [reduction, part, user] : completedBy.lookup(&op)) {
      // A gradient may be a parameter itself.
      for (Value gradient : reduction->parts[part])
        if (auto read = gradient ? gradient.getDefiningOp<ReadOp>() : ReadOp())
          if (!values.isDefined(gradient) && failed(materialize(read)))
            return failure();
      reduce(*reduction, part, &op, user);
    }
    if (!values.succeeded())
      return failure();
  }
  return success();
}
