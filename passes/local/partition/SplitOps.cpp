//===- SplitOps.cpp - ops that define their computation on a rank ---------===//

#include "dialect/nn/Precision.h"
#include "passes/local/partition/StepPartitioner.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The ranks that share factor `factor` of `op`.
class RankShards : public nn::FactorShards {
public:
  /// `size` instances, padded to `padded`, over `axes`; `isUneven` where some rank has padding.
  RankShards(OpBuilder &builder, LocalValues &values, Operation *op, ArrayRef<LocalValue> operands,
             int64_t size, int64_t padded, ArrayRef<StringAttr> axes, bool isUneven)
      : builder(builder), values(values), op(op), operands(operands), size(size), padded(padded),
        axes(axes), isUneven(isUneven), loc(op->getLoc()) {}

  Value renumber(Value indices) override {
    return values.shardIndices(indices, size, padded, axes, loc);
  }
  Value count() override { return values.shardSize(size, padded, axes, loc); }
  Value offset() override { return values.shardOffset(size, padded, axes, loc); }
  int64_t getSize() const override { return size; }
  bool isShared() const override { return !axes.empty(); }
  Value masked(Value value, int64_t dim, double fill) override;
  int64_t getRanks() const override { return getMesh(op).getSize(axes); }
  ArrayAttr getAxes() const override { return values.axisArray(axes); }
  Value gather(Value part, int64_t dim) override;
  Value scatterSum(Value value, int64_t dim) override;
  Value ofRankBefore(Value value, int64_t distance) override;
  Value allReduce(Value value, nn::Reduction kind) override;
  Value sumOfOthers(Value value, bool behind) override;

private:
  OpBuilder &builder;
  LocalValues &values;
  Operation *op;
  ArrayRef<LocalValue> operands;
  int64_t size, padded;
  ArrayRef<StringAttr> axes;
  bool isUneven;
  Location loc;
};

} // namespace

Value RankShards::masked(Value value, int64_t dim, double fill) {
  if (!isUneven)
    return value;
  // Shardings that an operand already has need no conversion.
  for (auto [global, local] : llvm::zip_equal(op->getOperands(), operands))
    if (local.value == value)
      return values.masked(global, local, dim, fill).value;
  return MaskPaddingOp::create(builder, loc, value, dim, size, values.axisArray(axes),
                               APFloat(fill));
}

Value RankShards::gather(Value part, int64_t dim) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] *= getRanks();
  return AllGatherOp::create(builder, loc, type.clone(shape), part, dim, getAxes());
}

Value RankShards::scatterSum(Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= getRanks();
  return ReduceScatterOp::create(builder, loc, type.clone(shape), value, dim, getAxes());
}

Value RankShards::ofRankBefore(Value value, int64_t distance) {
  const int64_t ranks = getRanks();
  SmallVector<int64_t> from;
  for (int64_t rank = 0; rank < ranks; ++rank)
    from.push_back((rank + ranks - distance) % ranks);
  return CollectivePermuteOp::create(builder, loc, value.getType(), value, from, getAxes());
}

Value RankShards::allReduce(Value value, nn::Reduction kind) {
  assert(kind != nn::Reduction::mean && "ranks may have different numbers of instances");
  if (!isShared())
    return value;
  return AllReduceOp::create(builder, loc,
                             kind == nn::Reduction::max ? ReduceKind::max : ReduceKind::sum, value,
                             values.axisArray(values.inMeshOrder(axes)));
}

// The values of all ranks are gathered, one row of each, and the rows of the others that count are
// added up.
Value RankShards::sumOfOthers(Value value, bool behind) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!isShared())
    return nn::createSplat(builder, loc, type, 0);
  SmallVector<int64_t> rowShape{1};
  llvm::append_range(rowShape, type.getShape());
  const int64_t ranks = getRanks();
  RankedTensorType row = type.clone(rowShape);
  rowShape.front() = ranks;
  RankedTensorType all = type.clone(rowShape);
  std::string names;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    names += " d" + std::to_string(dim);
  // A scalar has no names.
  const std::string toRow = StringRef(names + " -> 1" + names).ltrim().str();
  Value own = nn::RearrangeOp::create(builder, loc, row, toRow, value, DictionaryAttr());
  Value rows = AllGatherOp::create(builder, loc, all, own, 0, values.axisArray(axes));
  Value position = values.shardOffset(ranks, ranks, axes, loc);
  auto before = [&](Value of, Value count) {
    return MaskSamplesOp::create(builder, loc, of, count, /*dim=*/0, /*rows=*/1, IntegerAttr(),
                                 ArrayAttr(), APFloat(0.0));
  };
  if (behind) {
    Value one = nn::createSplat(builder, loc, position.getType(), 1);
    Value isBefore = before(nn::createSplat(builder, loc, all, 1),
                            arith::AddIOp::create(builder, loc, position, one));
    Value isBehind = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, isBefore,
                                           nn::createSplat(builder, loc, all, 0));
    rows = arith::SelectOp::create(builder, loc, isBehind, rows,
                                   nn::createSplat(builder, loc, all, 0));
  } else {
    rows = before(rows, position);
  }
  return nn::ReduceOp::create(builder, loc, type, nn::Reduction::sum, "r" + names + " ->" + names,
                              rows);
}

void StepPartitioner::convertSplit(Operation *op, const nn::ShardingRule &rule, int64_t factor,
                                   const OpSplit &split, ArrayRef<LocalValue> operands) {
  if (cast<nn::SplitOpInterface>(op).needsEvenParts() && isUneven(op, rule, split, factor))
    values.refuseUneven(op, rule.factors[factor].size, split.getAxes(factor));
  RankShards shards(builder, values, op, operands, rule.factors[factor].size,
                    padded.lookup(op, rule, factor), split.getAxes(factor),
                    isUneven(op, rule, split, factor));
  SmallVector<Type> types;
  for (Value global : op->getResults())
    types.push_back(values.localType(global, shardings.lookup(global)));
  SmallVector<Value> locals;
  for (const LocalValue &operand : operands)
    locals.push_back(operand.value);
  SmallVector<Value> results =
      cast<nn::SplitOpInterface>(op).buildSplit(builder, locals, types, shards);
  for (auto [global, result, tensor] : llvm::zip_equal(op->getResults(), results, rule.results)) {
    SmallVector<Padding, 4> padding = paddingOf(op, rule, operands, tensor);
    for (auto [dim, factors] : llvm::enumerate(tensor))
      if (llvm::is_contained(factors, factor))
        padding[dim] = Padding::zeros;
    values.define(global, {result, shardings.lookup(global), padding});
  }
}
