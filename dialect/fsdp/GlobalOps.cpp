//===- GlobalOps.cpp - verification of ops of the global phase ------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/Names.h"
#include "dialect/fsdp/Precision.h"
#include "dialect/fsdp/TokenSource.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

RankedTensorType mlir::fsdp::getReadType(ParamOp param) {
  PlacementAttr placement = param.getPlacementAttr();
  return placement ? param.getTensorType().clone(placement.getGather()) : param.getTensorType();
}

RankedTensorType mlir::fsdp::getGradientType(ParamOp param) {
  PlacementAttr placement = param.getPlacementAttr();
  return placement ? param.getTensorType().clone(placement.getReduce()) : param.getTensorType();
}

/// Fails unless `symbol` names a parameter for which `typeOf` returns `type`; `what` is the verb of
/// the message.
static LogicalResult verifyParameter(SymbolTableCollection &symbols, Operation *op,
                                     FlatSymbolRefAttr symbol, Type type,
                                     RankedTensorType (*typeOf)(ParamOp), StringRef what) {
  auto param = symbols.lookupNearestSymbolFrom<ParamOp>(op, symbol);
  if (!param)
    return op->emitOpError() << "names '" << symbol.getValue() << "', which is not a parameter";
  RankedTensorType expected = typeOf(param);
  if (expected == type)
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "has type " << type << ", expected " << expected << ", the type ";
  if (expected != param.getType())
    diag << "in which the placement " << what << " ";
  else
    diag << "of ";
  diag << "parameter '" << symbol.getValue() << "'";
  diag.attachNote(param.getLoc()) << "the parameter is declared here";
  return diag;
}

LogicalResult InputOp::verify() {
  if (failed(verifyNames(*this)))
    return failure();
  if (getName() == reservedTensorName)
    return emitOpError() << "is called '" << reservedTensorName
                         << "', a name that is reserved in data files; choose another";
  auto type = cast<RankedTensorType>(getType());
  int64_t dim = getSampleDim();
  if (dim < 0 || dim >= type.getRank())
    return emitOpError() << "counts samples along dimension " << dim
                         << ", expected a dimension below " << type.getRank();
  if (type.getDimSize(dim) == 0)
    return emitOpError() << "holds 0 samples, expected at least 1";
  if (getGlobalBatch().has_value() != getOver().has_value())
    return emitOpError() << "needs both 'shard_of' and 'over', or neither";
  for (StringRef source : {tokensAttrName, targetsAttrName}) {
    Attribute attribute = (*this)->getDiscardableAttr(source);
    if (!attribute)
      continue;
    auto vocabulary = dyn_cast<IntegerAttr>(attribute);
    if (!vocabulary || vocabulary.getInt() < 1)
      return emitOpError() << "got '" << source << "' " << attribute
                           << ", expected the size of the vocabulary";
    if (type.getRank() != 2 || dim != 0 || !type.getElementType().isInteger())
      return emitOpError() << "takes tokens, got " << type << " with samples along dimension "
                           << dim << ", expected integers in samples by positions";
  }
  int64_t microbatches = static_cast<int64_t>(getMicrobatches().value_or(1));
  if (microbatches < 1 || (getMicrobatches() && !getOver()))
    return emitOpError() << "is one of " << microbatches
                         << " microbatches, expected at least 1, with 'shard_of'";
  // (C5)
  if (failed(fsdp::detail::verifyMicrobatch(*this, getMicrobatches(), getMicrobatch())))
    return failure();
  if (!getOver())
    return success();
  SmallVector<StringAttr> axes = getAxisNames(*getOver());
  if (failed(fsdp::detail::verifyAxes(*this, axes, "is split over")))
    return failure();
  int64_t batch = static_cast<int64_t>(*getGlobalBatch());
  if (batch < 1)
    return emitOpError() << "is part of a batch of " << batch << " samples, expected at least 1";
  int64_t ranks = getMesh(*this).getSize(axes);
  int64_t expected = llvm::divideCeil(llvm::divideCeil(batch, ranks), microbatches);
  if (type.getDimSize(dim) != expected) {
    InFlightDiagnostic diagnostic = emitOpError()
                                    << "holds " << type.getDimSize(dim) << " samples, expected "
                                    << expected << " (" << batch << " over " << ranks << " ranks";
    if (getMicrobatches())
      diagnostic << " and " << microbatches << " microbatches";
    return diagnostic << ")";
  }
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyParameter(symbols, *this, getParamAttr(), getType(), getReadType, "gathers");
}

/// Fails where `weight` is a constant that nothing can be divided by, or that turns the sum around.
static LogicalResult verifyWeight(Operation *op, Value weight) {
  DenseElementsAttr constant;
  if (!matchPattern(weight, m_Constant(&constant)))
    return success();
  double value = constant.getSplatValue<APFloat>().convertToDouble();
  if (std::isfinite(value) && value > 0)
    return success();
  return op->emitOpError() << "has a weight of " << value << ", expected a finite number above 0";
}

LogicalResult MetricOp::verify() { return verifyWeight(*this, getWeight()); }

/// (C1) of ops that report a value of a training step.
static LogicalResult verifyTrains(Operation *op) {
  auto step = op->getParentOfType<StepOp>();
  if (!step || step.getKind() == StepKind::train)
    return success();
  return op->emitOpError() << "is in a step of kind '" << stringifyStepKind(step.getKind())
                           << "', expected 'train'; remove it there";
}

LogicalResult PrintOp::verify() { return verifyTrains(*this); }
LogicalResult CheckOp::verify() { return verifyTrains(*this); }

LogicalResult LossOp::verify() {
  if (failed(verifyWeight(*this, getWeight())))
    return failure();
  for (LossOp other : (*this)->getBlock()->getOps<LossOp>()) {
    if (other == *this)
      break;
    InFlightDiagnostic diag = emitOpError() << "appears twice in a step; add the losses first";
    diag.attachNote(other.getLoc()) << "the first loss is here";
    return diag;
  }
  return success();
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyParameter(symbols, *this, getParamAttr(), getValue().getType(), getGradientType,
                         "reduces");
}

LogicalResult GlobalNormOp::verify() {
  if (getParams().size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " gradients, expected "
                         << getParams().size() << " (one for each parameter)";
  DenseMap<StringAttr, ParamOp> declared;
  if (auto module = (*this)->getParentOfType<ModuleOp>())
    for (ParamOp param : module.getOps<ParamOp>())
      declared[param.getSymNameAttr()] = param;
  for (auto [symbol, gradient] :
       llvm::zip_equal(getParams().getAsRange<FlatSymbolRefAttr>(), getGradients())) {
    ParamOp param = declared.lookup(symbol.getAttr());
    if (!param)
      return emitOpError() << "names '" << symbol.getValue() << "', which is not a parameter";
    auto type = cast<RankedTensorType>(gradient.getType());
    if (type.getShape() != param.getTensorType().getShape())
      return emitOpError() << "has a gradient of " << type << " for parameter '"
                           << param.getSymName() << "' of " << param.getType();
  }
  return success();
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyParameter(symbols, *this, getParamAttr(), getGradient().getType(), getGradientType,
                         "reduces");
}

/// Fails unless `sharding` fits the result of `op`: rank, axes of the mesh, no partial sums.
static LogicalResult verifyRequested(Operation *op, ShardingAttr sharding) {
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  if (sharding.getRank() != rank)
    return op->emitOpError() << "has a sharding of " << sharding.getRank()
                             << " dimensions, expected " << rank;
  if (!sharding.getUnreduced().empty())
    return op->emitOpError() << "cannot request partial sums; leave 'unreduced' out";
  SmallVector<StringAttr> axes;
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    llvm::append_range(axes, sharding.getAxes(dim));
  return fsdp::detail::verifyParts(op, axes, "names");
}

LogicalResult ConstraintOp::verify() {
  if (failed(verifyRequested(*this, getSharding())))
    return failure();
  if (std::optional<ArrayAttr> manual = getManual()) {
    if (failed(fsdp::detail::verifyAxes(*this, getAxisNames(*manual), "is at the boundary over")))
      return failure();
    for (ArrayAttr axes : getSharding().getDimAxes())
      for (Attribute axis : axes)
        if (!llvm::is_contained(*manual, axis))
          return emitOpError() << "names axis " << axis << ", expected axes in 'manual', "
                               << *manual;
  }
  if (getSequenceParallel() &&
      llvm::count_if(getSharding().getDimAxes(), [](ArrayAttr axes) { return !axes.empty(); }) != 1)
    return emitOpError()
           << "has 'sequence_parallel', expected axes for one dimension, the positions";
  std::optional<ArrayRef<int64_t>> priorities = getPriorities();
  if (!priorities)
    return success();
  if (static_cast<int64_t>(priorities->size()) != getSharding().getRank())
    return emitOpError() << "has " << priorities->size() << " priorities, expected "
                         << getSharding().getRank() << " (one for each dimension)";
  for (auto [dim, priority] : llvm::enumerate(*priorities)) {
    if (priority < 0 || priority > kLastPriority)
      return emitOpError() << "has priority " << priority << " for dimension " << dim
                           << ", expected 0 to " << kLastPriority;
    if (priority > 0 && !getSharding().getDimOpen()[dim] && getSharding().getAxes(dim).empty())
      return emitOpError() << "has priority " << priority << " for dimension " << dim
                           << ", a closed dimension without axes; use 0";
  }
  if (llvm::all_of(*priorities, [](int64_t priority) { return priority == 0; }))
    return emitOpError() << "has priorities that are all 0; leave 'priorities' out";
  return success();
}

nn::ShardingRule ReshardOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }

LogicalResult ReshardOp::verify() {
  if (llvm::is_contained(getSharding().getDimOpen(), true))
    return emitOpError() << "has an open dimension; leave '?' out to close it";
  return verifyRequested(*this, getSharding());
}

nn::ShardingRule ConstraintOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }
nn::Linearity ConstraintOp::getLinearity() { return nn::Linearity::linearMap; }
nn::PrecisionClass ConstraintOp::getPrecisionClass() { return nn::PrecisionClass::first; }

nn::Cotangents ConstraintOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                             ArrayRef<bool> needed) {
  Value input;
  if (d[0] && needed[0])
    input = ConstraintOp::create(builder, getLoc(), getType(), d[0], getSharding(),
                                 getPrioritiesAttr(), getSequenceParallelAttr(), getManualAttr());
  return SmallVector<Value>{input};
}

/// Fails if `op` in the body of a checkpoint cannot be recomputed.
static LogicalResult verifyComputedAgain(Operation *op) {
  auto fail = [&](StringRef why) {
    return op->emitOpError() << why << " inside 'fsdp.checkpoint', whose body is computed twice; "
                             << "move it outside";
  };
  if (isa<CheckpointOp>(op))
    return fail("is nested");
  if (isa<InputOp>(op))
    return fail("reads a batch");
  if (isa<PrintOp, CheckOp>(op)) // of forward alone
    return success();
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(op);
  if (!effects)
    return fail("has unknown effects");
  bool writes = llvm::any_of(*effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Write, MemoryEffects::Free>(effect.getEffect());
  });
  return writes ? fail("writes") : success();
}

LogicalResult CheckpointOp::verify() {
  auto step = dyn_cast<StepOp>((*this)->getParentOp());
  if (step && step.getKind() != StepKind::train)
    return emitOpError() << "is in a step of kind '" << stringifyStepKind(step.getKind())
                         << "', which has no backward, expected 'train'; replace it by its body";
  Block &body = getBody().front();
  if (unsigned count = body.getNumArguments())
    return emitOpError() << "has a body with " << count << " arguments, expected none";
  for (Operation &op : body.without_terminator())
    if (failed(verifyComputedAgain(&op)))
      return failure();
  auto yield = cast<YieldOp>(body.getTerminator());
  if (yield.getValues().getTypes() != getResultTypes())
    return emitOpError() << "has results " << getResultTypes() << ", expected "
                         << yield.getValues().getTypes() << ", the types it yields";
  return success();
}
