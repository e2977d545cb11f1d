//===- ContextParallel.cpp - sequences split over the axis context --------===//
//
// Only constraints: propagation splits what follows from them, and what an op takes otherwise is
// resharded, by all-to-alls where positions are to be whole and heads split.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "passes/Passes.h"
#include "passes/global/PositionClass.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_CONTEXTPARALLELPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The constraints of one step.
class StepSplitter {
public:
  StepSplitter(StepOp step, ArrayRef<StringAttr> axes)
      : step(step), mesh(getMesh(step)), axes(axes), positions(step), builder(step.getContext()) {}

  /// Whether the step has positions to split.
  bool hasPositions() const { return !positions.isEmpty(); }
  bool hasAttention() {
    return step.walk([](nn::AttentionOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }
  LogicalResult run();

private:
  int64_t getParts() const { return mesh.getSize(axes); }
  std::string spell(ArrayRef<StringAttr> names) const {
    return llvm::join(spellAxes(mesh, names), "+");
  }
  Value constrain(Value value, ArrayRef<std::pair<int64_t, ArrayRef<StringAttr>>> dims,
                  bool maySplitFurther = false);
  LogicalResult split(Value value, int64_t dim, bool maySplitFurther = false);
  LogicalResult splitAttention(nn::AttentionOp attention);
  void lookUpPositions(nn::RepeatOp repeat);
  Value getPositions(RankedTensorType type, int64_t start, Location loc);

  StepOp step;
  MeshAttr mesh;
  ArrayRef<StringAttr> axes; ///< `context`, or its parts
  PositionClass positions;
  OpBuilder builder;
  bool hasSaid = false;
};

struct ContextParallel : fsdp::impl::ContextParallelPassBase<ContextParallel> {
  using Base::Base;

  void runOnOperation() override;
};
} // namespace

/// `value` with dimensions split over the axes given for them, the others open. `maySplitFurther`:
/// these dimensions by axes after the given ones.
Value StepSplitter::constrain(Value value, ArrayRef<std::pair<int64_t, ArrayRef<StringAttr>>> dims,
                              bool maySplitFurther) {
  const int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  SmallVector<ArrayAttr> split(rank, getAxisArray(builder.getContext(), {}));
  SmallVector<bool> open(rank, true);
  for (auto [dim, own] : dims) {
    split[dim] = getAxisArray(builder.getContext(), own);
    open[dim] = maySplitFurther;
  }
  auto sharding =
      ShardingAttr::get(builder.getContext(),
                        FlatSymbolRefAttr::get(getMeshOp(step).getSymNameAttr()), split, open, {});
  builder.setInsertionPointAfterValue(value);
  StructureScope scope(builder, getStructure(value.getDefiningOp()));
  auto constraint =
      ConstraintOp::create(builder, value.getLoc(), value.getType(), value, sharding,
                           DenseI64ArrayAttr(), /*sequence_parallel=*/false, ArrayAttr());
  value.replaceAllUsesExcept(constraint, constraint);
  return constraint;
}

/// Splits `value` along `dim`, its positions.
LogicalResult StepSplitter::split(Value value, int64_t dim, bool maySplitFurther) {
  const int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  if (size % getParts() != 0)
    return value.getDefiningOp()->emitError()
           << "the mesh splits sequences over " << spell(axes) << "=" << getParts() << ", got "
           << size << " positions, expected a multiple of " << getParts()
           << "; use another length, or a mesh whose axis 'context' divides it";
  constrain(value, {{dim, axes}}, maySplitFurther);
  return success();
}

/// Whether `ranks` can share the heads of an attention: each has whole groups, or heads of one; as
/// many groups as heads are padded, as other sizes are.
static bool divides(const nn::AttentionLayout &sizes, int64_t ranks) {
  if (sizes.groups == sizes.heads)
    return ranks <= sizes.heads;
  return sizes.groups % ranks == 0 || (ranks % sizes.groups == 0 && sizes.heads % ranks == 0);
}

/// By heads, each rank those of all positions; what makes its operands and uses its result, by
/// positions.
LogicalResult StepSplitter::splitAttention(nn::AttentionOp attention) {
  const nn::AttentionLayout sizes = attention.getLayout();
  StringRef order = attention.getOrder();
  const int64_t positionDim = nn::attentionDim(order, 't');
  SmallVector<StringAttr> heads;
  // Weights split heads first.
  for (StringAttr axis : mesh.getAxisNames())
    if (axisOf(axis) == "tensor" && mesh.getAxisSize(axis) > 1)
      heads.push_back(axis);
  llvm::append_range(heads, axes);
  const int64_t parts = mesh.getSize(heads);
  if (!divides(sizes, parts)) {
    std::string fitting;
    for (int64_t size = 2; size * parts / getParts() <= sizes.heads; ++size)
      if (sizes.queries % size == 0 && divides(sizes, size * parts / getParts()))
        fitting += (fitting.empty() ? "" : ", ") + std::to_string(size);
    return attention.emitError() << "the mesh splits attention by heads over " << spell(heads)
                                 << "=" << parts << ", got " << sizes.heads << " heads in "
                                 << sizes.groups << " groups of keys and values; "
                                 << (fitting.empty()
                                         ? std::string("split the batch over these ranks instead")
                                         : "give the axis 'context' a size of " + fitting);
  }
  if (!hasSaid && step.getKind() == StepKind::train) {
    hasSaid = true;
    InFlightDiagnostic diag = attention.emitRemark()
                              << "attention over " << spell(axes) << "=" << getParts()
                              << ": all-to-all, from positions to heads and back ("
                              << llvm::divideCeil(sizes.heads, parts) << " of " << sizes.heads
                              << " heads on each rank";
    if (parts > sizes.groups)
      diag << ", the keys and values of a group on " << parts / sizes.groups;
    diag << ")";
  }
  // Rotations need positions as attention does: they follow it.
  for (Value input : attention.getTensors()) {
    while (auto rope = input.getDefiningOp<nn::RopeOp>())
      input = rope.getX();
    if (positions.contains(input, positionDim)) // what has been constrained is not among them
      constrain(input, {{positionDim, axes}})
          .getDefiningOp()
          ->setAttr(kTakenByHeadsAttrName, builder.getUnitAttr());
  }
  const std::string outOrder = nn::attentionOutOrder(order);
  const int64_t outPositions = nn::attentionDim(outOrder, 't'),
                outHeads = nn::attentionDim(outOrder, 'h');
  Value byHeads = constrain(attention.getOut(), {{outPositions, {}}, {outHeads, ArrayRef(heads)}});
  constrain(byHeads, {{outPositions, axes}});
  return success();
}

/// The numbers of positions from `start` on, as many as dimension 1 of `type` has, for each of its
/// samples.
Value StepSplitter::getPositions(RankedTensorType type, int64_t start, Location loc) {
  const int64_t count = type.getDimSize(1);
  auto counts = RankedTensorType::get({count}, builder.getF32Type());
  Value ones = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(counts, builder.getF32FloatAttr(1).getValue()));
  Value before = nn::ScanSumOp::create(builder, loc, counts, "t", "t", ones, /*exclusive=*/true,
                                       /*reverse=*/false);
  Value numbers = arith::FPToSIOp::create(builder, loc, counts.clone(builder.getI32Type()), before);
  if (start != 0) {
    auto number = cast<RankedTensorType>(numbers.getType());
    Value first = arith::ConstantOp::create(
        builder, loc, DenseElementsAttr::get(number, builder.getI32IntegerAttr(start).getValue()));
    numbers = arith::AddIOp::create(builder, loc, numbers, first);
  }
  // Each rank counts all and takes its own.
  numbers = constrain(numbers, {{0, {}}});
  return nn::RepeatOp::create(
      builder, loc, RankedTensorType::get({type.getDimSize(0), count}, builder.getI32Type()),
      "t -> b t", numbers);
}

/// A table of positions that is added to each sample becomes a lookup of each position's row: a
/// rank's gradient is then a term of the sum over ranks, as those of other parameters are.
void StepSplitter::lookUpPositions(nn::RepeatOp repeat) {
  Value rows = repeat.getInput(), table = rows;
  int64_t start = 0;
  if (auto slice = rows.getDefiningOp<nn::SliceOp>(); slice && slice.getDim() == 0) {
    table = slice.getInput();
    start = slice.getStart();
  }
  auto type = dyn_cast<RankedTensorType>(table.getType());
  auto result = cast<RankedTensorType>(repeat.getType());
  nn::ShardingRule rule =
      cast<nn::ShardingRuleOpInterface>(repeat.getOperation()).getShardingRule();
  // Samples come first.
  if (!table.getDefiningOp<ReadOp>() || type.getRank() != 2 || result.getRank() != 3 ||
      rule.results[0][1] != rule.operands[0][0] || rule.results[0][2] != rule.operands[0][1] ||
      !positions.contains(repeat, 1) || result.getDimSize(1) >= int64_t(1) << 24)
    return;
  builder.setInsertionPoint(repeat);
  StructureScope scope(builder, getStructure(repeat));
  Value ids = getPositions(result, start, repeat.getLoc());
  builder.setInsertionPoint(repeat);
  Value each = nn::EmbeddingOp::create(builder, repeat.getLoc(), result, table, ids);
  repeat.replaceAllUsesWith(each);
  Operation *slice = rows.getDefiningOp();
  repeat.erase();
  if (rows.use_empty() && isa<nn::SliceOp>(slice))
    slice->erase();
}

LogicalResult StepSplitter::run() {
  SmallVector<nn::RepeatOp> repeats;
  step.walk([&](nn::RepeatOp repeat) { repeats.push_back(repeat); });
  for (nn::RepeatOp repeat : repeats)
    lookUpPositions(repeat);
  SmallVector<ConstraintOp> marks;
  step.walk([&](ConstraintOp constraint) {
    if (constraint.getSequenceParallel())
      marks.push_back(constraint);
  });
  for (ConstraintOp mark : marks) {
    const int64_t dim = positions.find(mark);
    SmallVector<StringAttr> own = mark.getSharding().getAxes(dim);
    if (failed(split(mark.getInput(), dim, /*maySplitFurther=*/true)))
      return failure();
    llvm::erase_if(own, [](StringAttr axis) { return splitsSequence(axis); });
    if (mesh.getSize(own) == 1) { // then the constraint before says all
      mark.getResult().replaceAllUsesWith(mark.getInput());
      mark.erase();
      continue;
    }
    SmallVector<ArrayAttr> dims(mark.getSharding().getDimAxes());
    SmallVector<StringAttr> all(axes);
    llvm::append_range(all, own);
    dims[dim] = getAxisArray(builder.getContext(), all);
    ShardingAttr before = mark.getSharding();
    mark.setShardingAttr(
        ShardingAttr::get(builder.getContext(), before.getMesh(), dims, before.getDimOpen(), {}));
  }
  SmallVector<InputOp> inputs(step.getBody().getOps<InputOp>());
  for (InputOp input : inputs)
    if (int64_t dim = positions.find(input);
        dim >= 0 && dim != static_cast<int64_t>(input.getSampleDim()) && failed(split(input, dim)))
      return failure();
  SmallVector<nn::AttentionOp> attentions;
  step.walk([&](nn::AttentionOp attention) { attentions.push_back(attention); });
  for (nn::AttentionOp attention : attentions)
    if (failed(splitAttention(attention)))
      return failure();
  return success();
}

void ContextParallel::runOnOperation() {
  ModuleOp module = getOperation();
  if (attention != "auto" && attention != "all-to-all") {
    module.emitError() << "--context-attention got '" << attention
                       << "', expected auto or all-to-all";
    return signalPassFailure();
  }
  MeshOp mesh = getMeshOp(module);
  if (!mesh)
    return;
  SmallVector<StringAttr> axes;
  for (StringAttr axis : mesh.getMesh().getAxisNames())
    if (splitsSequence(axis) && mesh.getMesh().getAxisSize(axis) > 1)
      axes.push_back(axis);
  if (axes.empty())
    return;
  bool hasPositions = false;
  for (StepOp step : module.getOps<StepOp>()) {
    if (step.getKind() != StepKind::train && step.getKind() != StepKind::evaluate)
      continue;
    StepSplitter splitter(step, axes);
    if (!splitter.hasPositions())
      continue; // whose ranks along the axis compute the same
    hasPositions = true;
    if (failed(splitter.run()))
      return signalPassFailure();
    if (splitter.hasAttention())
      module->setAttr(kContextAttentionAttrName, StringAttr::get(&getContext(), "all-to-all"));
  }
  if (hasPositions || module.getOps<StepOp>().empty())
    return;
  (*module.getOps<StepOp>().begin()).emitError()
      << "the mesh splits sequences over " << llvm::join(spellAxes(mesh.getMesh(), axes), "+")
      << "=" << mesh.getMesh().getSize(axes)
      << ", but the model has no tokens and marks no positions; write sequenceParallel(x) on its "
         "residual stream, or use another axis";
  signalPassFailure();
}
