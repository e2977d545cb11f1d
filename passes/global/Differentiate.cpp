//===- Differentiate.cpp - reverse mode of a training step ----------------===//
//
// Reverse mode in one sweep. Five things are particular to sharded training:
//
// - A value that is computed from parameters alone (a read, its casts, its broadcasts) is never
//   carried from forward into backward: the backward op that uses it gets a separate read, directly
//   before it. Otherwise the gathered parameter would live across the whole step.
// - The cotangent of a read has the type in which the placement of its parameter reduces gradients,
//   which may be wider than the type of the read: a product of 16-bit operands then yields f32
//   directly.
// - A gradient is marked where its last contribution completes, so that its reduction can start
//   while backward continues.
// - Values of forward that elementwise ops of backward use are recomputed if fewer bytes are kept
//   then (Recompute.h).
// - Backward recomputes values of a checkpoint that it needs and the checkpoint does not keep
//   (CheckpointRegions.h). This is the last step: it recomputes the values that would still be
//   stored.
//
// New ops are backward, in the unit of the op from which they are derived.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Manual.h"
#include "dialect/fsdp/Precision.h"
#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/nn/Precision.h"
#include "mlir/IR/IRMapping.h"
#include "passes/LaunchNames.h"
#include "passes/Passes.h"
#include "passes/global/CheckpointRegions.h"
#include "passes/global/ConcatGradients.h"
#include "passes/global/LossWeight.h"
#include "passes/global/ParameterValues.h"
#include "passes/global/Recompute.h"
#include "passes/sharding/OpSplit.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

namespace {

/// Differentiates the loss of one step with respect to the parameters that are not frozen.
class ReverseMode {
public:
  /// `ofSum`: of the sum of the loss instead of the loss, sum / weight.
  ReverseMode(StepOp step, LossOp loss, bool ofSum)
      : step(step), loss(loss), ofSum(ofSum), checkpoints(step),
        builder(OpBuilder::atBlockEnd(&step.getBody().front())) {}

  LogicalResult run();

private:
  void collectActive();
  void collectPath();
  LogicalResult verifyInfluence();
  Operation *beginAt(LossOp loss);
  LogicalResult differentiate(Operation *op);
  LogicalResult completeAt(Operation *op);
  void addCotangent(Value value, Value cotangent);
  Value asGradient(Value cotangent, Type element, Operation *last);
  void renewReads(Operation *backward);
  Value recompute(OpBuilder &at, Value value, IRMapping &renewed);
  bool isRecomputed(Value value);

  StepOp step;
  LossOp loss;
  bool ofSum;
  SymbolTableCollection symbols; ///< indexed: every gradient of every layer looks a parameter up
  CheckpointRegions checkpoints;
  OpBuilder builder;
  /// Float values that depend on a trainable parameter, with the first such parameter.
  DenseMap<Value, StringAttr> active;
  DenseSet<Value> parameterOnly; ///< see collectParameterValues
  /// The ops between the parameters and the loss, in program order.
  SmallVector<Operation *> path;
  /// For each trainable parameter, the first op on the path that uses a read of it: reverse mode
  /// visits it last.
  llvm::MapVector<StringAttr, Operation *> firstUse;
  /// The parameters of which an op is the first use.
  DenseMap<Operation *, SmallVector<StringAttr, 2>> begins;
  DenseMap<Value, Value> cotangents;
  llvm::MapVector<StringAttr, Value> gradients;
};

} // namespace

void ReverseMode::collectActive() {
  parameterOnly = collectParameterValues(step.getBody().front());
  auto module = step->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  for (Operation &op : step.getBody().front()) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      if (!symbols.lookup<ParamOp>(read.getParam()).getFrozen())
        active[read.getResult()] = read.getParamAttr().getAttr();
      continue;
    }
    StringAttr origin;
    for (Value operand : op.getOperands())
      if (!origin)
        origin = active.lookup(operand);
    for (Value result : op.getResults())
      if (origin && isFloat(result))
        active[result] = origin;
  }
}

void ReverseMode::collectPath() {
  DenseSet<Value> influences{loss.getSum()};
  for (Operation &op : llvm::reverse(step.getBody().front())) {
    bool onPath = llvm::any_of(op.getResults(), [&](Value result) {
      return influences.contains(result) && active.contains(result);
    });
    if (!onPath || isa<ReadOp>(op))
      continue;
    path.push_back(&op);
    influences.insert(op.operand_begin(), op.operand_end());
  }
  std::reverse(path.begin(), path.end());

  auto noteUses = [&](Operation *op, ValueRange operands) {
    for (Value operand : operands)
      if (auto read = operand.getDefiningOp<ReadOp>(); read && active.contains(operand))
        if (firstUse.insert({read.getParamAttr().getAttr(), op}).second)
          begins[op].push_back(read.getParamAttr().getAttr());
  };
  for (Operation *op : path)
    noteUses(op, op->getOperands());
  noteUses(loss, loss.getSum());
}

LogicalResult ReverseMode::verifyInfluence() {
  if (StringAttr origin = active.lookup(loss.getWeight()))
    return loss.emitOpError("weight depends on the parameter '")
           << origin.getValue() << "'; the weight of a loss counts the elements of its sum and may "
           << "depend only on inputs";
  for (ParamOp param : step->getParentOfType<ModuleOp>().getOps<ParamOp>()) {
    if (param.getFrozen() || firstUse.contains(param.getSymNameAttr()))
      continue;
    InFlightDiagnostic diagnostic = param.emitOpError("parameter '")
                                    << param.getSymName()
                                    << "' does not influence the loss; mark it 'frozen' or use it";
    diagnostic.attachNote(loss.getLoc()) << "the loss of step '" << step.getSymName() << "'";
    return failure();
  }
  return success();
}

void ReverseMode::addCotangent(Value value, Value cotangent) {
  Value &sum = isa_and_present<ReadOp>(value.getDefiningOp())
                   ? gradients[value.getDefiningOp<ReadOp>().getParamAttr().getAttr()]
                   : cotangents[value];
  sum = sum ? arith::AddFOp::create(builder, cotangent.getLoc(), sum, cotangent).getResult()
            : cotangent;
}

bool ReverseMode::isRecomputed(Value value) { return parameterOnly.contains(value); }

/// Recomputes `value` from new reads at `at`; `renewed` holds all ops built there.
Value ReverseMode::recompute(OpBuilder &at, Value value, IRMapping &renewed) {
  if (!isRecomputed(value))
    return value;
  if (Value again = renewed.lookupOrNull(value))
    return again;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    renewed.map(operand, recompute(at, operand, renewed));
  setStructure(at.clone(*op, renewed), getStructure(op).in(Direction::backward));
  return renewed.lookup(value);
}

/// Creates separate reads for `backward` of the parameters that it uses.
void ReverseMode::renewReads(Operation *backward) {
  OpBuilder before(backward);
  IRMapping renewed;
  for (OpOperand &operand : backward->getOpOperands())
    operand.set(recompute(before, operand.get(), renewed));
}

/// `cotangent` with elements of `element`. Sums that were built after `last` may be computed in a
/// wider type directly.
Value ReverseMode::asGradient(Value cotangent, Type element, Operation *last) {
  auto type = cast<RankedTensorType>(cotangent.getType());
  if (type.getElementType() == element)
    return cotangent;
  Operation *op = cotangent.getDefiningOp();
  bool isNew = last->isBeforeInBlock(op) && op->use_empty();
  bool widens = type.getElementTypeBitWidth() < element.getIntOrFloatBitWidth();
  if (auto cast = dyn_cast<arith::TruncFOp>(op); cast && isNew) {
    Value wide = cast.getIn();
    if (getElementTypeOrSelf(wide.getType()) == element) {
      cast.erase();
      return wide;
    }
  }
  if (isa<nn::EinsumOp>(op) && isNew && widens) {
    cotangent.setType(type.clone(element));
    return cotangent;
  }
  if (widens)
    return arith::ExtFOp::create(builder, cotangent.getLoc(), type.clone(element), cotangent);
  return arith::TruncFOp::create(builder, cotangent.getLoc(), type.clone(element), cotangent);
}

LogicalResult ReverseMode::differentiate(Operation *op) {
  SmallVector<Value> resultCotangents;
  for (Value result : op->getResults())
    resultCotangents.push_back(cotangents.lookup(result));
  if (llvm::none_of(resultCotangents, [](Value value) { return bool(value); }))
    return success();

  SmallVector<bool> needed;
  StringAttr origin;
  for (Value operand : op->getOperands()) {
    StringAttr param = active.lookup(operand);
    needed.push_back(bool(param));
    if (!origin)
      origin = param;
  }
  auto differentiable = dyn_cast<nn::DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError("is between the parameter '")
           << origin.getValue()
           << "' and the loss but has no derivative; use other ops or mark the "
           << "parameter 'frozen'";

  Block &body = step.getBody().front();
  Operation *last = &body.back();
  nn::Cotangents operandCotangents =
      differentiable.buildCotangents(builder, resultCotangents, needed);
  if (failed(operandCotangents))
    return failure();
  std::string name = getLocationName(op->getLoc());
  for (Operation *built = last->getNextNode(); built; built = built->getNextNode()) {
    if (!name.empty())
      built->setLoc(NameLoc::get(builder.getStringAttr(name + ".grad"), op->getLoc()));
    renewReads(built);
  }
  for (auto [operand, cotangent] : llvm::zip_equal(op->getOperands(), *operandCotangents)) {
    if (!cotangent)
      continue;
    if (auto read = operand.getDefiningOp<ReadOp>()) {
      auto param = symbols.lookupNearestSymbolFrom<ParamOp>(step, read.getParamAttr());
      cotangent = asGradient(cotangent, getGradientType(param).getElementType(), last);
    }
    addCotangent(operand, cotangent);
  }
  return success();
}

/// Marks the gradients that are complete once reverse mode has passed `op`.
LogicalResult ReverseMode::completeAt(Operation *op) {
  for (StringAttr param : begins.lookup(op)) {
    Value gradient = gradients.lookup(param);
    if (!gradient) {
      auto declared = SymbolTable::lookupNearestSymbolFrom<ParamOp>(step, param);
      InFlightDiagnostic diagnostic =
          declared.emitOpError("parameter '")
          << param.getValue() << "' does not influence the loss; mark it 'frozen' or use it";
      diagnostic.attachNote(op->getLoc()) << "this op propagates no gradient";
      return diagnostic;
    }
    GradientOp::create(builder, gradient.getLoc(), FlatSymbolRefAttr::get(param), gradient,
                       ofSum ? loss.getWeight() : Value());
  }
  return success();
}

/// The loss is sum / weight, so the cotangent of the sum is 1 / weight; or 1, where gradients are
/// divided by the weight later. Returns the first op of backward, or null where a gradient is
/// missing.
Operation *ReverseMode::beginAt(LossOp loss) {
  StructureScope scope(builder, getStructure(loss).in(Direction::backward));
  Value one = nn::createSplat(builder, loss.getLoc(), loss.getSum().getType(), 1);
  Value seed = one;
  if (!ofSum) {
    seed = arith::DivFOp::create(builder, loss.getLoc(), one,
                                 buildDivisor(builder, loss.getLoc(), loss.getWeight()));
    for (Operation *op = one.getDefiningOp(); op; op = op->getNextNode())
      renewReads(op);
  }
  if (active.contains(loss.getSum()))
    addCotangent(loss.getSum(), seed);
  if (failed(completeAt(loss)))
    return nullptr;
  return one.getDefiningOp();
}

/// The sum over ranks of a value that leaves local terms is formed outside, where a gradient is
/// reduced with those of its unit and into its shard.
static void sumOutside(Operation *firstBackward) {
  for (Operation &op : llvm::make_early_inc_range(
           llvm::make_range(firstBackward->getIterator(), firstBackward->getBlock()->end()))) {
    auto exit = dyn_cast<ExitManualOp>(op);
    auto sum = exit ? exit.getInput().getDefiningOp<PsumOp>() : PsumOp();
    if (!sum || !sum->hasOneUse() || !llvm::all_of(sum.getOver(), [&](Attribute axis) {
          return llvm::is_contained(exit.getOver(), axis) &&
                 getBoundaryState(exit.getSharding(), cast<StringAttr>(axis)) ==
                     AxisState::invariant;
        }))
      continue;
    ShardingAttr sharding = exit.getSharding();
    SmallVector<StringAttr> summed(sharding.getUnreduced());
    llvm::append_range(summed, getAxisNames(sum.getOver()));
    exit.setShardingAttr(
        ShardingAttr::getCanonical(sharding.getMesh(), dimAxesOf(sharding), summed));
    exit.getInputMutable().set(sum.getInput());
    sum.erase();
  }
}

LogicalResult ReverseMode::run() {
  collectActive();
  collectPath();
  if (failed(verifyInfluence()))
    return failure();

  Operation *first = beginAt(loss);
  if (!first)
    return failure();
  for (Operation *op : llvm::reverse(path)) {
    StructureScope scope(builder, getStructure(op).in(Direction::backward));
    checkpoints.beginBackward(op, builder);
    if (failed(differentiate(op)) || failed(completeAt(op)))
      return failure();
  }
  sumOutside(first);
  concatenateGradients(first);
  recomputeInBackward(first, parameterOnly, checkpoints.getKept());
  checkpoints.recompute(first, parameterOnly, [&](Operation *clone) { renewReads(clone); });
  return success();
}

/// Logs sum / weight, divided in double, under `name`; NaN for a report with weight 0. An
/// evaluation runs over many batches and outputs both.
static void buildOutput(StepOp step, OpBuilder &builder, Operation *measure, StringRef name,
                        Value sum, Value weight) {
  Location loc = measure->getLoc();
  if (step.getKind() == StepKind::evaluate) {
    OutputSumOp::create(builder, loc, name, sum, weight);
    return;
  }
  const Attribute report = measure->getDiscardableAttr(kReportAttrName);
  auto quotient = arith::DivFOp::create(builder, loc, sum,
                                        report ? weight : buildDivisor(builder, loc, weight));
  auto type = RankedTensorType::get({}, builder.getF32Type());
  auto narrow = arith::TruncFOp::create(builder, loc, type, quotient);
  auto metric = dyn_cast<MetricOp>(measure);
  auto output =
      OutputOp::create(builder, loc, name, narrow, metric ? metric.getCheckAttr() : IntegerAttr());
  if (report)
    for (Operation *op : {quotient.getOperation(), narrow.getOperation(), output.getOperation()})
      op->setDiscardableAttr(kReportAttrName, report);
}

/// Turns losses and metrics into outputs at the end of the step, after backward: their
/// sums become collectives, and nothing that backward needs may wait for those.
static void lowerMeasures(StepOp step) {
  Block &body = step.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  for (Operation &op : llvm::make_early_inc_range(body)) {
    StructureScope scope(builder, getStructure(&op));
    if (auto loss = dyn_cast<LossOp>(op))
      buildOutput(step, builder, loss, "loss", loss.getSum(), loss.getWeight());
    else if (auto metric = dyn_cast<MetricOp>(op))
      buildOutput(step, builder, metric, metric.getName(), metric.getSum(), metric.getWeight());
    else
      continue;
    op.erase();
  }
}

namespace {
struct Differentiate : fsdp::impl::DifferentiatePassBase<Differentiate> {
  using Base::Base;

  void runOnOperation() override {
    StepOp step = getOperation();
    WalkResult region = step.walk([](ManualOp op) {
      op.emitOpError("must be lowered before --fsdp-differentiate; run --fsdp-inline-manual "
                     "first");
      return WalkResult::interrupt();
    });
    if (region.wasInterrupted())
      return signalPassFailure();
    auto losses = step.getBody().front().getOps<LossOp>();
    if (step.getKind() == StepKind::train) {
      if (losses.empty()) {
        Block &body = step.getBody().front();
        if (body.getOps<GradientOp>().empty() && body.getOps<AdvanceOp>().empty())
          step.emitOpError("has no loss to differentiate; mark it with 'fsdp.loss'");
        else
          step.emitOpError("has gradients already; give it the IR of '--emit=model'");
        return signalPassFailure();
      }
      if (failed(ReverseMode(step, *losses.begin(), ofSum).run()))
        return signalPassFailure();
    }
    lowerMeasures(step);
  }
};
} // namespace
