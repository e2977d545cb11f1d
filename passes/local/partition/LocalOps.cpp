//===- LocalOps.cpp - computation on the parts of one rank ----------------===//

#include "dialect/nn/Precision.h"
#include "passes/local/partition/StepPartitioner.h"
#include "passes/sharding/MeshAxes.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Removes the axis of microbatches from `axes`; their number, or null where it is not among them.
IntegerAttr StepPartitioner::takeMicrobatches(SmallVectorImpl<StringAttr> &axes) const {
  auto axis = llvm::find(axes, kMicrobatchAxis);
  if (axis == axes.end())
    return IntegerAttr();
  axes.erase(axis);
  return builder.getI64IntegerAttr(mesh.getAxisSize(kMicrobatchAxis));
}

void StepPartitioner::verifyLoaded(Operation *op, ArrayRef<StringAttr> axes) {
  if (std::optional<AxisList> load = shardings.getLoadAxes();
      !load || ArrayRef<StringAttr>(*load) != axes)
    values.refuseMicrobatches(op->getOperand(0), op);
}

void StepPartitioner::convertInput(InputOp input) {
  ShardingAttr sharding = shardings.lookup(input.getResult());
  int64_t dim = input.getSampleDim();
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<StringAttr> axes = sharding.getAxes(dim);
  // An input that no axis splits is the whole batch on every rank.
  IntegerAttr batch =
      axes.empty() ? IntegerAttr() : builder.getI64IntegerAttr(type.getDimSize(dim));
  IntegerAttr microbatches = takeMicrobatches(axes);
  ArrayAttr over = batch ? values.axisArray(axes) : ArrayAttr();
  auto local = InputOp::create(builder, input.getLoc(), values.localType(input, sharding),
                               input.getNameAttr(), input.getSampleDimAttr(), batch, over,
                               microbatches, /*microbatch=*/IntegerAttr());
  for (NamedAttribute attribute : input->getDiscardableAttrs())
    if (attribute.getName() != FSDPDialect::shardingsAttrName)
      local->setDiscardableAttr(attribute.getName(), attribute.getValue());
  values.define(input, {local, sharding});
}

/// A carried tensor has one sharding in all steps, that of its loads, and is whole without loads.
void StepPartitioner::convertCarryLoad(CarryLoadOp load) {
  ShardingAttr sharding = shardings.lookup(load.getResult());
  RankedTensorType local = values.localType(load, sharding);
  auto module = step->getParentOfType<ModuleOp>();
  module.lookupSymbol<CarriedOp>(load.getCarriedAttr()).setType(local);
  values.define(load,
                {CarryLoadOp::create(builder, load.getLoc(), local, load.getCarried()), sharding});
}

void StepPartitioner::convertCarryStore(CarryStoreOp store) {
  ShardingAttr sharding;
  for (auto load : step.getBody().getOps<CarryLoadOp>())
    if (load.getCarriedAttr() == store.getCarriedAttr())
      sharding = shardings.lookup(load.getResult());
  LocalValue stored = sharding ? values.as(store.getValue(), sharding, store)
                               : values.whole(store.getValue(), store);
  auto module = step->getParentOfType<ModuleOp>();
  module.lookupSymbol<CarriedOp>(store.getCarriedAttr())
      .setType(cast<RankedTensorType>(stored.value.getType()));
  CarryStoreOp::create(builder, store.getLoc(), stored.value, store.getCarried());
}

void StepPartitioner::convertScalar(Operation *op) {
  Operation *local = op->clone();
  local->removeAttr(FSDPDialect::shardingsAttrName);
  for (OpOperand &operand : local->getOpOperands())
    operand.set(values.whole(operand.get(), op).value);
  builder.insert(local);
  for (auto [global, result] : llvm::zip_equal(op->getResults(), local->getResults()))
    values.define(global, {result, values.replicated(global)});
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

bool StepPartitioner::isUneven(Operation *op, const nn::ShardingRule &rule, const OpSplit &split,
                               int64_t factor) const {
  const int64_t size = rule.factors[factor].size, whole = padded.lookup(op, rule, factor);
  return whole != size || size % mesh.getSize(split.getAxes(factor)) != 0;
}

SmallVector<Padding, 4> StepPartitioner::paddingOf(Operation *op, const nn::ShardingRule &rule,
                                                   ArrayRef<LocalValue> operands,
                                                   const nn::TensorFactors &result) const {
  const nn::Linearity linearity = cast<nn::ShardingRuleOpInterface>(op).getLinearity();
  const bool isProduct = linearity == nn::Linearity::product;
  const bool isLinear =
      linearity == nn::Linearity::additive || linearity == nn::Linearity::rounding ||
      linearity == nn::Linearity::linearMap || linearity == nn::Linearity::homogeneous;
  SmallVector<Padding, 4> padding;
  for (const nn::DimFactors &factors : result) {
    // The padding along a factor is computed from the operands' padding along it, and from their
    // other elements along other factors.
    bool repeats = true, isFinite = true, anyZero = false, allZero = true;
    for (auto [local, tensor] : llvm::zip_equal(operands, rule.operands)) {
      bool runsOver = false;
      for (auto [dim, others] : llvm::enumerate(tensor)) {
        if (llvm::none_of(others,
                          [&](int64_t factor) { return llvm::is_contained(factors, factor); }))
          continue;
        runsOver = true;
        const Padding own = local.getPadding(dim);
        repeats &= own == Padding::repeats;
        isFinite &= own != Padding::unknown;
        anyZero |= own == Padding::zeros;
        allZero &= own == Padding::zeros;
      }
      allZero &= runsOver;
    }
    const bool isZero = isProduct ? anyZero && isFinite : isLinear && allZero && !operands.empty();
    padding.push_back(isZero ? Padding::zeros : repeats ? Padding::repeats : Padding::unknown);
  }
  return padding;
}

void StepPartitioner::maskPadding(Operation *op, const nn::ShardingRule &rule, const OpSplit &split,
                                  MutableArrayRef<LocalValue> operands) {
  for (auto [factor, info] : llvm::enumerate(rule.factors)) {
    bool reduced =
        info.kind == nn::FactorKind::sumReduction || info.kind == nn::FactorKind::maxReduction;
    if (!reduced || info.indexed || !isUneven(op, rule, split, factor))
      continue;
    // The dimensions of the factor: an uneven factor is the only one of its dimension.
    SmallVector<std::pair<unsigned, int64_t>> places;
    for (auto [index, tensor] : llvm::enumerate(rule.operands))
      for (auto [dim, factors] : llvm::enumerate(tensor))
        if (llvm::is_contained(factors, static_cast<int64_t>(factor)))
          places.push_back({index, dim});
    // A product is zero where one operand is, as long as the other is finite: padding that repeats
    // samples or is zero is, other padding is masked in every operand. Of the other operands, the
    // one that the rule names is masked, else one that is masked anyway, is computed here (the mask
    // is then part of its kernel) or is smaller.
    auto rank = [&](std::pair<unsigned, int64_t> place) {
      const LocalValue &local = operands[place.first];
      bool input = local.value.getDefiningOp<InputOp>() != nullptr;
      auto maker =
          dyn_cast_or_null<nn::KernelOpInterface>(op->getOperand(place.first).getDefiningOp());
      // The cotangent of the logits is the largest tensor of all, and cut by --loss-chunks.
      bool isLogits =
          maker && llvm::any_of(llvm::seq<unsigned>(0, maker->getNumOperands()),
                                [&](unsigned operand) { return maker.readsLogits(operand); });
      return std::tuple(
          local.getPadding(place.second) != Padding::unknown, isLogits,
          !values.hasMasked(local, place.second, getReductionIdentity(op, local.value)), input,
          cast<RankedTensorType>(local.value.getType()).getNumElements());
    };
    // Operands that are not factors of a product (the queries of an attention and the logarithms of
    // its sums) are either all finite or not: either none is masked besides the one that the rule
    // names, or all are.
    auto chosen = *llvm::min_element(places, [&](auto a, auto b) { return rank(a) < rank(b); });
    bool masksAll = false;
    for (auto place : places)
      if (static_cast<int64_t>(place.first) == rule.annihilator)
        chosen = place;
      else
        masksAll |= rule.annihilator >= 0 &&
                    operands[place.first].getPadding(place.second) == Padding::unknown;
    for (auto [index, dim] : places) {
      LocalValue &local = operands[index];
      if (masksAll || std::pair(index, dim) == chosen || local.getPadding(dim) == Padding::unknown)
        local =
            values.masked(op->getOperand(index), local, dim, getReductionIdentity(op, local.value));
    }
  }
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

/// Says which part of the whole tensor `op` has, so that its draws go by the global index.
void StepPartitioner::localizeDraws(DropoutOp global, DropoutOp op, RankedTensorType whole,
                                    ShardingAttr sharding) {
  SmallVector<Attribute> over;
  bool isSplit = false;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    SmallVector<StringAttr> axes = sharding.getAxes(dim);
    isSplit |= !axes.empty();
    if (IntegerAttr microbatches = takeMicrobatches(axes)) {
      verifyLoaded(global, axes);
      op.setMicrobatchesAttr(microbatches);
      op.setAlong(dim);
    }
    over.push_back(values.axisArray(axes));
  }
  if (!isSplit)
    return;
  op.setPartOf(whole.getShape());
  op.setOverAttr(ArrayAttr::get(op.getContext(), over));
}

/// Sets the part of the samples that `op` has. Its result needs no other mask.
void StepPartitioner::localizeSamples(MaskSamplesOp global, MaskSamplesOp op, int64_t size,
                                      ShardingAttr sharding) {
  int64_t dim = op.getDim();
  SmallVector<StringAttr> axes = sharding.getAxes(dim);
  if (takeMicrobatches(axes)) {
    // Within the rank's samples: the index of the microbatch is known only at run time.
    verifyLoaded(global, axes);
    int64_t batch = size / static_cast<int64_t>(op.getRows());
    op.getCountMutable().set(
        values.samplesOfMicrobatch(batch, axes, /*counted=*/true, op.getLoc()));
  } else if (!axes.empty()) {
    op.setShardOf(size);
    op.setOverAttr(values.axisArray(axes));
  }
  values.noteMasked(op.getResult(), dim, op.getFill().convertToDouble());
}

/// A mean over a split or padded dimension: the sum over all ranks, divided by the global count.
void StepPartitioner::convertSplitMean(nn::ReduceOp op, Operation *local, ArrayRef<StringAttr> axes,
                                       ArrayRef<Padding> padding) {
  cast<nn::ReduceOp>(local).setKind(nn::Reduction::sum);
  SmallVector<StringAttr> partial(axes);
  Value sum = values.overMicrobatches(local->getResult(0), ReduceKind::sum, partial);
  sum = values.allReduce(sum, ReduceKind::sum, values.inMeshOrder(partial), op.getLoc());
  double count = static_cast<double>(op.getInput().getType().getNumElements()) /
                 static_cast<double>(op.getType().getNumElements());
  Value divisor = nn::createSplat(builder, op.getLoc(), sum.getType(), count);
  Value mean = arith::DivFOp::create(builder, op.getLoc(), sum, divisor);
  const DimAxes dims = dimAxesOf(shardings.lookup(op.getResult()));
  values.define(op.getResult(), {mean, values.sharding(dims), SmallVector<Padding, 4>(padding)});
}

void StepPartitioner::convertCompute(Operation *op) {
  const nn::ShardingRule &rule = *shardings.getRule(op);
  const OpSplit &split = shardings.split(op);
  SmallVector<AxisList> carried = shardings.getCarried(op);
  SmallVector<LocalValue> operands;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    DimAxes axes = split.project(rule.operands[index]);
    // A scalar among tensors has no factors.
    axes.resize(cast<RankedTensorType>(operand.getType()).getRank());
    operands.push_back(values.as(operand, values.sharding(axes, carried[index]), op));
  }
  maskPadding(op, rule, split, operands);
  if (auto shared = dyn_cast<nn::SplitOpInterface>(op); shared && shared.getSplitRanks() != 0)
    for (auto [factor, info] : llvm::enumerate(rule.factors))
      if (info.kind == nn::FactorKind::combined)
        values.requireRanks(op, shared.getSplitRanks(), split.getAxes(factor));
  for (auto [factor, info] : llvm::enumerate(rule.factors))
    if ((info.indexed || info.kind == nn::FactorKind::combined) &&
        (mesh.getSize(split.getAxes(factor)) > 1 || padded.lookup(op, rule, factor) != info.size))
      return convertSplit(op, rule, factor, split, operands);

  Operation *local = op->clone();
  local->removeAttr(FSDPDialect::shardingsAttrName);
  for (auto [index, operand] : llvm::enumerate(operands))
    local->setOperand(index, operand.value);
  for (auto [global, result] : llvm::zip_equal(op->getResults(), local->getResults()))
    result.setType(values.localType(global, shardings.lookup(global)));
  SmallVector<int64_t> parts;
  for (size_t factor = 0; factor < rule.factors.size(); ++factor)
    parts.push_back(mesh.getSize(split.getAxes(factor)));
  cast<nn::ShardingRuleOpInterface>(local).setLocalSizes(rule, parts);
  if (auto dropout = dyn_cast<DropoutOp>(local))
    localizeDraws(cast<DropoutOp>(op), dropout, cast<RankedTensorType>(op->getResult(0).getType()),
                  shardings.lookup(op->getResult(0)));
  if (auto mask = dyn_cast<MaskSamplesOp>(local))
    localizeSamples(cast<MaskSamplesOp>(op), mask,
                    cast<RankedTensorType>(op->getResult(0).getType()).getDimSize(mask.getDim()),
                    shardings.lookup(op->getResult(0)));
  builder.insert(local);

  if (auto reduce = dyn_cast<nn::ReduceOp>(op); reduce && reduce.getKind() == nn::Reduction::mean)
    if (AxisList reduced = split.getReducedAxes(rule.results.front());
        !reduced.empty() || padded.pads(op, rule))
      return convertSplitMean(reduce, local, reduced,
                              paddingOf(op, rule, operands, rule.results.front()));
  for (auto [global, result, tensor] :
       llvm::zip_equal(op->getResults(), local->getResults(), rule.results))
    values.define(global,
                  {result, shardings.lookup(global), paddingOf(op, rule, operands, tensor)});
}
