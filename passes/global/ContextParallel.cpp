//===- ContextParallel.cpp - sequences split over the axis context --------===//
//
// Splits are only constraints: propagation derives the splits of other values from them, and
// operands that an op takes with another split are resharded, by all-to-alls where positions must
// be whole and heads split. Attention that is to be split by positions is marked, and partitioning
// builds the communication of its ranks.
//
// In zigzag order positions are permuted behind inputs, by chunks. Only ops that depend on their
// order take it into account: attention, rotations, tables of positions, and ops on whole inputs,
// whose results are permuted.
//
// Ranks load inputs with all positions, so the split of an input is a slice. Operands that are
// computed from inputs alone and whose positions an op needs whole (the document ids of attention,
// the tokens of nn.positions_since) are computed from the whole inputs, without communication.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/nn/Precision.h"
#include "dialect/nn/Zigzag.h"
#include "mlir/IR/Matchers.h"
#include "passes/Passes.h"
#include "passes/global/StepSplitter.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>
#include <set>

namespace mlir::fsdp {
#define GEN_PASS_DEF_CONTEXTPARALLELPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The index of `word` in `words`, or nothing where it is "auto"; an error if it is neither.
template <typename Word, size_t N>
FailureOr<std::optional<Word>> readWord(ModuleOp module, StringRef option, const std::string &word,
                                        const llvm::StringLiteral (&words)[N]) {
  if (word == "auto")
    return std::optional<Word>();
  if (const auto *known = llvm::find(words, word); known != std::end(words))
    return std::optional(Word(known - std::begin(words)));
  SmallVector<StringRef> all = {"auto"};
  llvm::append_range(all, words);
  return module.emitError() << option << " got '" << word << "', expected "
                            << llvm::join(ArrayRef(all).drop_back(), ", ") << " or " << all.back();
}

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

/// Splits `value` along `dim`, its positions; returns the split value, which all ops now use.
Value StepSplitter::split(Value value, int64_t dim, bool maySplitFurther) {
  const int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  const int64_t part = llvm::divideCeil(size, getParts()), padding = part * getParts() - size;
  if (padding != 0 && !saysPadding && step.getKind() == StepKind::train)
    value.getDefiningOp()->emitRemark()
        << size << " positions over " << spell(axes) << "=" << getParts() << ": " << part
        << " on each rank, of which the last " << padding
        << " are padding, which has no weight and is not a key; a multiple of " << getParts()
        << " has none";
  saysPadding |= padding != 0;
  return constrain(value, {{dim, axes}}, maySplitFurther);
}

/// Splits attention by heads, each rank with all positions; the ops that compute its operands and
/// use its result are split by positions.
LogicalResult StepSplitter::splitByHeads(nn::AttentionOp attention) {
  const nn::AttentionLayout sizes = attention.getLayout();
  StringRef order = attention.getOrder();
  const int64_t positionDim = nn::attentionDim(order, 't');
  const SmallVector<StringAttr> heads = getHeadAxes();
  const int64_t parts = mesh.getSize(heads);
  if (!dividesHeads(sizes, parts))
    return attention.emitError() << "the mesh splits attention by heads over " << spell(heads)
                                 << "=" << parts << ", got " << sizes.heads << " heads in "
                                 << sizes.groups << " groups of keys and values, expected "
                                 << describeSharedHeads(sizes, parts)
                                 << (isOverPositions(attention)
                                         ? "; "
                                         : "; keys of another sequence than the queries are split "
                                           "in no other way: ")
                                 << findFittingSizes(sizes)
                                 << (findFault(attention, AttentionKind::ring).empty()
                                         ? ", or use --context-attention=ring"
                                     : findFault(attention, AttentionKind::gather).empty()
                                         ? ", or use --context-attention=gather"
                                         : "");
  // Rotations need positions as attention does: they follow it.
  for (Value input : attention.getTensors()) {
    while (auto rope = input.getDefiningOp<nn::RopeOp>())
      input = rope.getX();
    if (positions.contains(input, positionDim)) // constrained values are not among them
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

/// By positions, its operands and its result: rotations turn by the numbers of positions then, not
/// by their index on a rank.
void StepSplitter::splitByPositions(nn::AttentionOp attention, nn::KeyExchange exchange) {
  const int64_t dim = nn::attentionDim(attention.getOrder(), 't');
  attention.setExchange(exchange);
  if (zigzag)
    attention.setZigzag(getParts());
  llvm::SmallSetVector<Value, 3> inputs;
  inputs.insert_range(attention.getTensors());
  for (Value input : inputs) {
    for (auto rope = input.getDefiningOp<nn::RopeOp>(); rope;
         rope = rope.getX().getDefiningOp<nn::RopeOp>())
      turnByNumbers(rope);
    constrain(input, {{dim, axes}});
  }
  // So that no split of ids by other ops keeps attention whole.
  if (attention.getDocuments()) {
    Value ids = attention.getInputs().back(), split = constrain(ids, {{1, axes}});
    split.replaceUsesWithIf(
        ids, [&](OpOperand &use) { return use.getOwner() != attention.getOperation(); });
  }
  constrain(attention.getOut(),
            {{nn::attentionDim(nn::attentionOutOrder(attention.getOrder()), 't'), axes}});
}

/// Gives a rotation over positions their numbers as an operand, if it can take them.
void StepSplitter::turnByNumbers(nn::RopeOp rope) {
  if (!takesNumbers(rope, positions))
    return;
  const RankedTensorType type = rope.getX().getType();
  const int64_t samples = type.getDimSize(0), count = type.getDimSize(rope.getDim());
  // Once for all rotations of a block, before them.
  Value &numbers = numbersOf[{rope->getBlock(), {samples, count}}];
  if (!numbers) {
    builder.setInsertionPointToStart(rope->getBlock());
    numbers = getPositions(samples, count, 0, rope.getLoc());
  }
  rope.getPositionsMutable().assign(numbers);
}

/// The numbers of `count` positions from `start` on, for each sample.
Value StepSplitter::getPositions(int64_t samples, int64_t count, int64_t start, Location loc) {
  auto counts = RankedTensorType::get({count}, builder.getF32Type());
  Value ones = nn::createSplat(builder, loc, counts, 1);
  Value before = nn::ScanSumOp::create(builder, loc, counts, "t", "t", ones, /*exclusive=*/true,
                                       /*reverse=*/false);
  Value numbers = arith::FPToSIOp::create(builder, loc, counts.clone(builder.getI32Type()), before);
  if (start != 0) {
    Value first = nn::createSplat(builder, loc, numbers.getType(), static_cast<double>(start));
    numbers = arith::AddIOp::create(builder, loc, numbers, first);
  }
  if (zigzag)
    numbers = permute(numbers, 0);
  // Each rank counts all positions and selects its part.
  numbers = constrain(numbers, {{0, {}}});
  return nn::RepeatOp::create(builder, loc,
                              RankedTensorType::get({samples, count}, builder.getI32Type()),
                              "t -> b t", numbers);
}

/// A table of positions that is added to each sample becomes a lookup of each position's row: a
/// rank's gradient is then a term of the sum over ranks, as for other parameters.
void StepSplitter::lookUpPositions(nn::RepeatOp repeat) {
  std::optional<PositionTable> found = findPositionTable(repeat, positions);
  if (!found)
    return;
  Value rows = repeat.getInput();
  auto result = cast<RankedTensorType>(repeat.getType());
  builder.setInsertionPoint(repeat);
  StructureScope scope(builder, getStructure(repeat));
  Value ids =
      getPositions(result.getDimSize(0), result.getDimSize(1), found->start, repeat.getLoc());
  builder.setInsertionPoint(repeat);
  auto each = nn::EmbeddingOp::create(builder, repeat.getLoc(), result, found->table, ids);
  lookups.insert(each);
  repeat.replaceAllUsesWith(each.getResult());
  Operation *slice = rows.getDefiningOp();
  repeat.erase();
  if (rows.use_empty() && isa<nn::SliceOp>(slice))
    slice->erase();
}

/// Ops that each rank computes from whole inputs get constants of their own, through which no split
/// reaches them.
void StepSplitter::splitConstantsOfWhole() {
  for (Operation *op : sequenceOrder.getWhole())
    for (OpOperand &operand : op->getOpOperands())
      if (Operation *constant = operand.get().getDefiningOp();
          constant->hasTrait<OpTrait::ConstantLike>() && !constant->hasOneUse()) {
        builder.setInsertionPoint(op);
        operand.set(builder.clone(*constant)->getResult(0));
      }
}

/// Dimension `dim` of `value`, which are all positions, in zigzag order.
Value StepSplitter::permute(Value value, int64_t dim) {
  const Location loc = value.getLoc();
  Value chunks = nn::splitChunks(builder, loc, value, dim, 2 * getParts());
  return nn::mergeChunks(builder, loc, nn::toZigzagChunks(builder, loc, chunks, getParts()), dim);
}

/// `value` with all its positions in zigzag order, for those of its uses that `takes` is true of.
Value StepSplitter::permuteUses(Value value, llvm::function_ref<bool(Operation *)> takes) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses())
    if (takes(use.getOwner()))
      uses.push_back(&use);
  builder.setInsertionPointAfterValue(value);
  StructureScope scope(builder, getStructure(value.getDefiningOp()));
  Value permuted = value;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim)
    if (positions.contains(value, dim) && !uses.empty())
      permuted = permute(permuted, dim);
  for (OpOperand *use : uses)
    use->set(permuted);
  return permuted;
}

/// Puts parameters and constants with a number for each position in zigzag order.
void StepSplitter::permuteSources() {
  SmallVector<Value> sources;
  step.walk([&](Operation *op) {
    DenseElementsAttr numbers;
    if (isa<ReadOp>(op) || (matchPattern(op, m_Constant(&numbers)) && !numbers.isSplat()))
      for (Value result : op->getResults())
        if (positions.find(result) >= 0)
          sources.push_back(result);
  });
  for (Value source : sources)
    permuteUses(source, [&](Operation *user) {
      return !sequenceOrder.isWhole(user) && !lookups.contains(user);
    });
}

LogicalResult StepSplitter::run() {
  // Chosen before there are constraints, whose results are of no class.
  WalkResult chosen = step.walk([&](nn::AttentionOp attention) {
    // Of a sequence that is not split: each rank computes it whole, or some of its heads.
    if (!hasPositionsOf(attention) &&
        !dividesHeads(attention.getLayout(), mesh.getSize(getHeadAxes())))
      return WalkResult::advance();
    FailureOr<AttentionKind> kind = choose(attention);
    if (failed(kind))
      return WalkResult::interrupt();
    attentions.push_back({attention, *kind});
    return WalkResult::advance();
  });
  if (chosen.wasInterrupted() || failed(chooseOrder()))
    return failure();
  SmallVector<nn::RepeatOp> repeats;
  step.walk([&](nn::RepeatOp repeat) { repeats.push_back(repeat); });
  for (nn::RepeatOp repeat : repeats)
    lookUpPositions(repeat);
  splitConstantsOfWhole();
  if (zigzag) {
    step.walk([&](nn::RopeOp rope) { turnByNumbers(rope); });
    for (Operation *op : sequenceOrder.getWhole())
      for (Value result : op->getResults())
        if (positions.find(result) >= 0)
          permuteUses(result, [&](Operation *user) { return !sequenceOrder.isWhole(user); });
    permuteSources();
  }
  SmallVector<ConstraintOp> marks;
  step.walk([&](ConstraintOp constraint) {
    if (constraint.getSequenceParallel())
      marks.push_back(constraint);
  });
  for (ConstraintOp mark : marks) {
    const int64_t dim = positions.find(mark);
    SmallVector<StringAttr> own = mark.getSharding().getAxes(dim);
    split(mark.getInput(), dim, /*maySplitFurther=*/true);
    llvm::erase_if(own, [](StringAttr axis) { return getAxisRole(axis).splitsSequence; });
    if (mesh.getSize(own) == 1) { // then the preceding constraint suffices
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
  for (InputOp input : inputs) {
    const int64_t dim = positions.find(input);
    if (dim < 0 || dim == static_cast<int64_t>(input.getSampleDim()))
      continue;
    auto takesParts = [&](Operation *user) { return !sequenceOrder.takesWhole(user); };
    Value part = split(zigzag ? permuteUses(input, takesParts) : Value(input.getResult()), dim);
    part.replaceUsesWithIf(input.getResult(),
                           [&](OpOperand &use) { return !takesParts(use.getOwner()); });
  }
  for (auto [attention, kind] : attentions) {
    if (kind == AttentionKind::allToAll && failed(splitByHeads(attention)))
      return failure();
    if (kind != AttentionKind::allToAll)
      splitByPositions(attention, kind == AttentionKind::gather ? nn::KeyExchange::gather
                                                                : nn::KeyExchange::ring);
    say(attention, kind);
  }
  return success();
}

void ContextParallel::runOnOperation() {
  ModuleOp module = getOperation();
  auto wanted =
      readWord<AttentionKind>(module, "--context-attention", attention, attentionKindNames);
  auto wantedOrder = readWord<PositionOrder>(module, "--context-order", order, positionOrderNames);
  if (failed(wanted) || failed(wantedOrder))
    return signalPassFailure();
  MeshOp mesh = getMeshOp(module);
  if (!mesh)
    return;
  SmallVector<StringAttr> axes;
  for (StringAttr axis : mesh.getMesh().getAxisNames())
    if (getAxisRole(axis).splitsSequence && mesh.getMesh().getAxisSize(axis) > 1)
      axes.push_back(axis);
  if (axes.empty())
    return;
  bool isUsed = false;
  module.walk([&](ExitManualOp region) { // uses the axis by itself
    isUsed |= llvm::any_of(getAxisNames(region.getOver()),
                           [](StringAttr axis) { return getAxisRole(axis).splitsSequence; });
  });
  std::set<AttentionKind> kinds;
  bool isZigzag = false;
  const bool trains = llvm::any_of(module.getOps<StepOp>(),
                                   [](StepOp step) { return step.getKind() == StepKind::train; });
  for (StepOp step : module.getOps<StepOp>()) {
    if (step.getKind() != StepKind::train && step.getKind() != StepKind::evaluate)
      continue;
    StepSplitter splitter(step, axes, *wanted, *wantedOrder);
    if (!splitter.hasPositions())
      continue; // whose ranks along the axis compute the same
    isUsed = true;
    if (failed(splitter.run()))
      return signalPassFailure();
    kinds.insert(splitter.getKinds().begin(), splitter.getKinds().end());
    // An evaluation may have another order; the reported order is that of training.
    if (step.getKind() == StepKind::train || !trains)
      isZigzag |= splitter.getOrder() == PositionOrder::zigzag;
  }
  if (!kinds.empty()) {
    auto names =
        llvm::map_range(kinds, [](AttentionKind kind) { return attentionKindNames[int(kind)]; });
    module->setAttr(kContextAttentionAttrName,
                    StringAttr::get(&getContext(), llvm::join(names, "+")));
    PositionOrder taken = isZigzag ? PositionOrder::zigzag : PositionOrder::contiguous;
    module->setAttr(kContextOrderAttrName,
                    StringAttr::get(&getContext(), positionOrderNames[int(taken)]));
  }
  if (isUsed || module.getOps<StepOp>().empty())
    return;
  (*module.getOps<StepOp>().begin()).emitError()
      << "the mesh splits sequences over " << llvm::join(spellAxes(mesh.getMesh(), axes), "+")
      << "=" << mesh.getMesh().getSize(axes)
      << ", but the model has no tokens and marks no positions; write sequenceParallel(x) on its "
         "residual stream, compute with the axis in a manual region, or use another axis";
  signalPassFailure();
}
