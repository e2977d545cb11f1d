//===- Manual.cpp - manual regions, in the terms of one rank --------------===//
//
// A value in local terms is a tensor of the size that one rank along the manual axes has, so that
// the other axes split it like any value. Where it enters, the part that a rank has of the whole
// value is this tensor; collectives of the model become those of the program.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Manual.h"
#include "dialect/nn/Precision.h"
#include "passes/local/partition/StepPartitioner.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

LocalValue StepPartitioner::takeOperand(Operation *op) {
  const DimAxes axes = shardings.split(op).project(shardings.getRule(op)->operands.front());
  return values.as(op->getOperand(0), values.sharding(axes, shardings.getCarried(op).front()), op);
}

void StepPartitioner::convertEnter(EnterManualOp enter) {
  LocalValue local = takeOperand(enter);
  Location loc = enter.getLoc();
  // A partial sum stays as it is. Of a complete one, the first of the ranks has the whole, the
  // others zeros.
  SmallVector<StringAttr> summed(enter.getSharding().getUnreduced());
  llvm::erase_if(summed, [&](StringAttr axis) {
    return llvm::is_contained(local.sharding.getUnreduced(), axis);
  });
  if (const int64_t ranks = mesh.getSize(summed); ranks > 1) {
    auto type = cast<RankedTensorType>(local.value.getType());
    Value index = values.shardOffset(ranks, ranks, summed, loc);
    auto number = [&](double value) {
      return nn::createSplat(builder, loc, RankedTensorType::get({}, type.getElementType()), value);
    };
    Value zero = nn::createSplat(builder, loc, index.getType(), 0);
    Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index, zero);
    Value factor = arith::SelectOp::create(builder, loc, isFirst, number(1), number(0));
    if (type.getRank() > 0) {
      std::string names = "->";
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        names += " d" + std::to_string(dim);
      factor = nn::RepeatOp::create(builder, loc, type, names, factor);
    }
    local.value = arith::MulFOp::create(builder, loc, local.value, factor);
  }
  values.define(enter, {local.value, shardings.lookup(enter.getResult()), local.padding});
}

void StepPartitioner::convertExit(ExitManualOp exit) {
  LocalValue local = takeOperand(exit);
  values.define(exit, {local.value, shardings.lookup(exit.getResult()), local.padding});
}

void StepPartitioner::convertManualCollective(Operation *op) {
  const nn::ShardingRule &rule = *shardings.getRule(op);
  LocalValue local = takeOperand(op);
  Value result = op->getResult(0);
  Location loc = op->getLoc();
  const ShardingAttr sharding = shardings.lookup(result);
  const RankedTensorType type = values.localType(result, sharding);
  const SmallVector<StringAttr> over = getManualCollectiveAxes(op);
  const SmallVector<Padding, 4> padding = paddingOf(op, rule, {local}, rule.results.front());
  ArrayAttr axes = values.axisArray(over);
  // Over one rank there is nothing to do, but that it may receive nothing.
  if (isa<PvaryOp>(op) || (mesh.getSize(over) == 1 && !isa<PpermuteOp>(op)))
    return values.define(result, {local.value, sharding, padding});
  Operation *made =
      llvm::TypeSwitch<Operation *, Operation *>(op)
          .Case([&](PsumOp) {
            return AllReduceOp::create(builder, loc, ReduceKind::sum, local.value, axes);
          })
          .Case([&](PmaxOp) {
            return AllReduceOp::create(builder, loc, ReduceKind::max, local.value, axes);
          })
          .Case([&](PgatherOp gather) {
            return AllGatherOp::create(builder, loc, type, local.value, gather.getDim(), axes);
          })
          .Case([&](PsumScatterOp scatter) {
            return ReduceScatterOp::create(builder, loc, type, local.value, scatter.getDim(), axes);
          })
          .Case([&](PswapOp swap) {
            return AllToAllOp::create(builder, loc, type, local.value, swap.getSplit(),
                                      swap.getConcat(), axes);
          })
          .Case([&](PpermuteOp permute) {
            return CollectivePermuteOp::create(builder, loc, local.value, permute.getFrom(), axes);
          });
  values.define(result, {made->getResult(0), sharding, padding});
}
