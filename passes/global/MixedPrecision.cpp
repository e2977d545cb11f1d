//===- MixedPrecision.cpp - which values have 16 bits ---------------------===//
//
// Stored parameters stay f32; gathered parameters, and values computed from them, become bf16. A
// read has the type in which its parameter is gathered; for every other op the `PrecisionClass`
// determines the types (dialect/nn/KernelCall.h):
//
// - Products and attention work on bf16 and cast other operands; the bias of attention is f32, as
//   are the sums to which it is added.
// - Elementwise ops work in the widest type of their operands; a constant may have any type in
// which it is exact. So values computed from an f32 input stay f32.
// - Norms, lookups and ops that move elements keep the type of their operands.
// - Sums, statistics of rows and losses have the type of sums: f32 (dialect/nn, `getSumType`).
// - Every other op keeps its types, and its operands are widened again.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Structure.h"
#include "passes/LaunchNames.h"
#include "passes/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_MIXEDPRECISIONPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

static void setElement(Value value, Type element) {
  value.setType(cast<RankedTensorType>(value.getType()).clone(element));
}

/// The value of a constant whose elements are one number, or nothing.
static std::optional<APFloat> getSplat(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  if (!splat || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>();
}

static bool isExactIn(APFloat value, FloatType type) {
  bool lossy = false;
  value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
  return !lossy;
}

namespace {

/// Changes the types of one step.
class Narrowing {
public:
  explicit Narrowing(StepOp step)
      : builder(step.getContext()), f32(builder.getF32Type()), bf16(builder.getBF16Type()) {}

  void convert(Block &block);

private:
  void convert(Operation *op);
  void convertCheckpoint(CheckpointOp checkpoint);
  void convertElementwise(Operation *op);
  void computeWide(Operation *op);
  void keepTypes(Operation *op);
  void castOperand(OpOperand &operand, Type element);
  void castOperands(Operation *op, Type element);
  void narrowResult(Operation *op);
  bool isNarrowed(Value value) const { return narrowed.contains(value); }

  OpBuilder builder;
  FloatType f32, bf16;
  /// The values that were f32 and are bf16 now.
  DenseSet<Value> narrowed;
  DenseMap<std::pair<Value, Type>, Value> casts;
};

struct MixedPrecision : fsdp::impl::MixedPrecisionPassBase<MixedPrecision> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

void Narrowing::castOperand(OpOperand &operand, Type element) {
  Value value = operand.get();
  if (elementOf(value) == element)
    return;
  Value &cast = casts[{value, element}];
  if (!cast) {
    // A value from outside of a checkpoint is cast outside, once for all that need it.
    builder.setInsertionPoint(value.getParentBlock()->findAncestorOpInBlock(*operand.getOwner()));
    StructureScope scope(builder, getStructure(operand.getOwner()));
    Location location = value.getLoc();
    if (std::string name = getLocationName(location); !name.empty())
      location = NameLoc::get(builder.getStringAttr(name + ".cast"), location);
    auto type = mlir::cast<RankedTensorType>(value.getType()).clone(element);
    if (std::optional<APFloat> number = getSplat(value)) {
      bool lossy;
      number->convert(mlir::cast<FloatType>(element).getFloatSemantics(),
                      APFloat::rmNearestTiesToEven, &lossy);
      cast =
          arith::ConstantOp::create(builder, value.getLoc(), DenseElementsAttr::get(type, *number));
    } else if (element.getIntOrFloatBitWidth() > elementOf(value).getIntOrFloatBitWidth()) {
      cast = arith::ExtFOp::create(builder, location, type, value);
    } else {
      cast = arith::TruncFOp::create(builder, location, type, value);
    }
  }
  operand.set(cast);
}

/// Casts the operands that are f32 or that this pass made bf16.
void Narrowing::castOperands(Operation *op, Type element) {
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands())
    if (elementOf(operand.get()) == f32 || isNarrowed(operand.get()))
      castOperand(operand,
                  kernel && kernel.keepsSumType(operand.getOperandNumber()) ? f32 : element);
}

/// Makes the first result bf16; statistics and sums beside it stay f32.
void Narrowing::narrowResult(Operation *op) {
  Value result = op->getResult(0);
  if (elementOf(result) != f32)
    return;
  setElement(result, bf16);
  narrowed.insert(result);
}

void Narrowing::keepTypes(Operation *op) { castOperands(op, f32); }

/// Computes in f32 and rounds the result to bf16.
void Narrowing::computeWide(Operation *op) {
  castOperands(op, f32);
  Value result = op->getResult(0);
  if (elementOf(result) != f32)
    return;
  builder.setInsertionPointAfter(op);
  StructureScope scope(builder, getStructure(op));
  auto narrow = arith::TruncFOp::create(
      builder, op->getLoc(), cast<RankedTensorType>(result.getType()).clone(bf16), result);
  result.replaceAllUsesExcept(narrow, narrow);
  narrowed.insert(narrow.getResult());
}

void Narrowing::convertElementwise(Operation *op) {
  bool anyNarrow = false, anyWide = false, anyInexact = false, anyOther = false;
  for (Value operand : op->getOperands()) {
    if (!isa<FloatType>(elementOf(operand)))
      continue;
    std::optional<APFloat> number = getSplat(operand);
    if (isNarrowed(operand))
      anyNarrow = true;
    else if (elementOf(operand) != f32)
      anyOther = true;
    else if (!number)
      anyWide = true;
    else
      anyInexact |= !isExactIn(*number, bf16);
  }
  if (anyOther || anyWide || !anyNarrow)
    return keepTypes(op);
  if (anyInexact)
    return computeWide(op);
  castOperands(op, bf16);
  narrowResult(op);
}

void Narrowing::convert(Operation *op) {
  if (auto read = dyn_cast<ReadOp>(op))
    return narrowResult(read);
  if (isa<PrintOp, CheckOp>(op)) // looks at values as they are
    return;
  auto narrows = [&](Value operand) { return isNarrowed(operand); };
  // Integers, such as ids, keep their types.
  auto isSingle = [&](Value value) {
    return elementOf(value) == f32 || isNarrowed(value) || !isa<FloatType>(elementOf(value));
  };
  bool narrow = false;
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  switch (kernel ? kernel.getPrecisionClass() : nn::PrecisionClass::fixed) {
  case nn::PrecisionClass::fixed:
    break;
  case nn::PrecisionClass::any:
    return;
  case nn::PrecisionClass::narrow:
    narrow = elementOf(op->getResult(0)) == f32 && llvm::all_of(op->getOperands(), isSingle);
    break;
  case nn::PrecisionClass::first:
    narrow = isNarrowed(op->getOperand(0));
    break;
  case nn::PrecisionClass::common:
    narrow = llvm::all_of(op->getOperands(), narrows);
    break;
  case nn::PrecisionClass::elementwise:
    return convertElementwise(op);
  }
  if (!narrow)
    return keepTypes(op);
  castOperands(op, bf16);
  narrowResult(op);
}

/// Results have the types of the yielded values.
void Narrowing::convertCheckpoint(CheckpointOp checkpoint) {
  Block &body = checkpoint.getBody().front();
  convert(body);
  for (auto [result, yielded] :
       llvm::zip_equal(checkpoint.getResults(), body.getTerminator()->getOperands())) {
    result.setType(yielded.getType());
    if (isNarrowed(yielded))
      narrowed.insert(result);
  }
}

void Narrowing::convert(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto checkpoint = dyn_cast<CheckpointOp>(op))
      convertCheckpoint(checkpoint);
    else if (!isa<YieldOp>(op))
      convert(&op);
  }
}

void MixedPrecision::runOnOperation() {
  ModuleOp module = getOperation();
  Builder builder(&getContext());
  auto parse = [&](StringRef option, StringRef text) -> Type {
    if (text == "f32")
      return builder.getF32Type();
    if (text == "bf16")
      return builder.getBF16Type();
    module.emitError() << "option '" << option << "' got '" << text << "', expected f32 or bf16";
    return Type();
  };
  Type gather = parse("compute", compute), wire = parse("reduce", reduce);
  if (!gather || !wire)
    return signalPassFailure();
  bool narrows = gather.isBF16();
  if (!narrows && wire.isF32())
    return;
  for (StepOp step : module.getOps<StepOp>())
    for (Operation &op : step.getBody().front())
      if (isa<GradientOp, UpdateOp>(op)) {
        op.emitOpError("has no precision; run --fsdp-mixed-precision before --fsdp-differentiate");
        return signalPassFailure();
      }
  for (ParamOp param : module.getOps<ParamOp>()) {
    PlacementAttr placement = param.getPlacementAttr();
    if (!placement) {
      param.emitOpError(
          "has no placement to hold its precision; run --fsdp-shard-parameters first");
      return signalPassFailure();
    }
    if (!param.getTensorType().getElementType().isF32()) {
      param.emitOpError()
          << "of type " << param.getType()
          << " is trained in another precision than its own, expected element type f32";
      return signalPassFailure();
    }
    param.setPlacementAttr(placement.withPrecision(gather, wire));
  }
  if (!narrows)
    return;
  for (StepOp step : module.getOps<StepOp>()) {
    Narrowing(step).convert(step.getBody().front());
    // Constants that have been replaced by constants of another type.
    step.walk([](arith::ConstantOp constant) {
      if (constant->use_empty())
        constant.erase();
    });
  }
}
