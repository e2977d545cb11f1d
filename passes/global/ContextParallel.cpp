//===- ContextParallel.cpp - sequences split over the axis context --------===//
//
// Only constraints: propagation splits what follows from them, and what an op takes otherwise is
// resharded, by all-to-alls where positions are to be whole and heads split. Attention that is to
// be split by positions is told so, and partitioning builds what its ranks do together.
//
// Ranks load inputs with all positions, so the split of an input is a slice. Operands that are
// computed from inputs alone and whose positions an op needs whole (the document ids of attention,
// the tokens of nn.positions_since) are computed from the whole inputs, without communication.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "passes/Passes.h"
#include "passes/global/PositionClass.h"
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
/// How the ranks of a sequence attend.
enum class AttentionKind { allToAll, gather, ring };
constexpr llvm::StringLiteral attentionKindNames[] = {"all-to-all", "gather", "ring"};

/// The constraints of one step.
class StepSplitter {
public:
  /// `wanted`: of all attention; none where each has the kind that fits it.
  StepSplitter(StepOp step, ArrayRef<StringAttr> axes, std::optional<AttentionKind> wanted)
      : step(step), mesh(getMesh(step)), axes(axes), wanted(wanted), positions(step),
        builder(step.getContext()) {}

  /// Whether the step has positions to split.
  bool hasPositions() const { return !positions.isEmpty(); }
  LogicalResult run();
  /// What attention there was.
  const std::set<AttentionKind> &getKinds() const { return kinds; }

private:
  int64_t getParts() const { return mesh.getSize(axes); }
  std::string spell(ArrayRef<StringAttr> names) const {
    return llvm::join(spellAxes(mesh, names), "+");
  }
  Value constrain(Value value, ArrayRef<std::pair<int64_t, ArrayRef<StringAttr>>> dims,
                  bool maySplitFurther = false);
  FailureOr<Value> split(Value value, int64_t dim, bool maySplitFurther = false);
  bool collectOps(Value value, Operation *user, DenseSet<Operation *> &ops,
                  DenseSet<Operation *> &users) const;
  DenseSet<Operation *> findUsersOfWhole();
  SmallVector<StringAttr> getHeadAxes() const;
  bool isOverPositions(nn::AttentionOp attention);
  std::string findFault(nn::AttentionOp attention, AttentionKind kind);
  FailureOr<AttentionKind> choose(nn::AttentionOp attention);
  void say(nn::AttentionOp attention, AttentionKind kind);
  LogicalResult splitByHeads(nn::AttentionOp attention);
  void splitByPositions(nn::AttentionOp attention, nn::KeyExchange exchange);
  void lookUpPositions(nn::RepeatOp repeat);
  Value getPositions(int64_t samples, int64_t count, int64_t start, Location loc);

  StepOp step;
  MeshAttr mesh;
  ArrayRef<StringAttr> axes; ///< `context`, or its parts
  std::optional<AttentionKind> wanted;
  PositionClass positions;
  OpBuilder builder;
  std::set<AttentionKind> kinds;
  /// Numbers of positions, by block, samples and positions.
  DenseMap<std::pair<Block *, std::pair<int64_t, int64_t>>, Value> numbersOf;
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

/// Splits `value` along `dim`, its positions; returns the split value, which all ops now use.
FailureOr<Value> StepSplitter::split(Value value, int64_t dim, bool maySplitFurther) {
  const int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  if (size % getParts() != 0)
    return value.getDefiningOp()->emitError()
           << "the mesh splits sequences over " << spell(axes) << "=" << getParts() << ", got "
           << size << " positions, expected a multiple of " << getParts()
           << "; use another length, or a mesh whose axis 'context' divides it";
  return constrain(value, {{dim, axes}}, maySplitFurther);
}

/// Whether `ranks` can share the heads of an attention: each has whole groups, or heads of one; as
/// many groups as heads are padded, as other sizes are.
static bool divides(const nn::AttentionLayout &sizes, int64_t ranks) {
  if (sizes.groups == sizes.heads)
    return ranks <= sizes.heads;
  return sizes.groups % ranks == 0 || (ranks % sizes.groups == 0 && sizes.heads % ranks == 0);
}

/// What to do where `others` ranks along `tensor` and those along `context` cannot share the heads.
static std::string findFittingSizes(const nn::AttentionLayout &sizes, int64_t others) {
  SmallVector<std::string> contexts, products;
  for (int64_t context = 2; context <= sizes.heads; ++context) {
    if (sizes.queries % context != 0)
      continue;
    if (divides(sizes, context * others))
      contexts.push_back(std::to_string(context));
    for (int64_t tensor = 1; others > 1 && tensor * context <= sizes.heads; ++tensor)
      if (divides(sizes, tensor * context))
        products.push_back(std::to_string(tensor) + "*" + std::to_string(context));
  }
  if (!contexts.empty())
    return "give the axis 'context' a size of " + llvm::join(contexts, ", ");
  if (!products.empty())
    return "give the axes 'tensor' and 'context' the sizes " + llvm::join(products, ", ");
  return "split the batch over these ranks instead";
}

/// The axes that split heads where attention has all positions: weights split heads first.
SmallVector<StringAttr> StepSplitter::getHeadAxes() const {
  SmallVector<StringAttr> heads;
  for (StringAttr axis : mesh.getAxisNames())
    if (axisOf(axis) == "tensor" && mesh.getAxisSize(axis) > 1)
      heads.push_back(axis);
  llvm::append_range(heads, axes);
  return heads;
}

/// Whether queries and keys have the positions of the step's sequences.
bool StepSplitter::isOverPositions(nn::AttentionOp attention) {
  const int64_t dim = nn::attentionDim(attention.getOrder(), 't');
  return llvm::all_of(attention.getTensors(),
                      [&](Value input) { return positions.contains(input, dim); });
}

/// Why attention cannot be of `kind`, which splits positions; empty where it can.
std::string StepSplitter::findFault(nn::AttentionOp attention, AttentionKind kind) {
  const nn::AttentionLayout sizes = attention.getLayout();
  if (!isOverPositions(attention) || sizes.queries != sizes.keys)
    return std::string("takes keys and values of another sequence than its queries, expected those "
                       "of one sequence; ") +
           (divides(sizes, mesh.getSize(getHeadAxes()))
                ? "use all-to-all"
                : "split the batch over these ranks instead");
  if (kind == AttentionKind::ring && (attention.getBias() || attention.getDocuments()))
    return std::string("has ") + (attention.getBias() ? "a bias" : "the ids of documents") +
           ", for which a rank needs all keys, expected causal masks, windows and caps alone; use "
           "gather or all-to-all";
  return "";
}

/// By heads where these divide, else in a ring, which keeps least of other ranks, or what is left.
FailureOr<AttentionKind> StepSplitter::choose(nn::AttentionOp attention) {
  if (wanted && *wanted != AttentionKind::allToAll)
    if (std::string fault = findFault(attention, *wanted); !fault.empty())
      return attention.emitError() << "--context-attention=" << attentionKindNames[int(*wanted)]
                                   << ": attention " << fault;
  if (wanted)
    return *wanted;
  const nn::AttentionLayout sizes = attention.getLayout();
  const int64_t parts = mesh.getSize(getHeadAxes());
  if (sizes.heads % parts == 0 && sizes.groups % parts == 0)
    return AttentionKind::allToAll;
  for (AttentionKind kind : {AttentionKind::ring, AttentionKind::gather})
    if (findFault(attention, kind).empty())
      return kind;
  return AttentionKind::allToAll;
}

/// Once for each kind of attention in training.
void StepSplitter::say(nn::AttentionOp attention, AttentionKind kind) {
  if (!kinds.insert(kind).second || step.getKind() != StepKind::train)
    return;
  const nn::AttentionLayout sizes = attention.getLayout();
  InFlightDiagnostic diag = attention.emitRemark()
                            << "attention over " << spell(axes) << "=" << getParts() << ": "
                            << attentionKindNames[int(kind)];
  if (kind == AttentionKind::allToAll) {
    const int64_t parts = mesh.getSize(getHeadAxes());
    diag << ", from positions to heads and back (" << llvm::divideCeil(sizes.heads, parts) << " of "
         << sizes.heads << " heads on each rank";
    if (parts > sizes.groups)
      diag << ", the keys and values of a group on " << parts / sizes.groups;
    diag << ")";
    return;
  }
  diag << (kind == AttentionKind::ring ? ", keys and values from rank to rank ("
                                       : ", keys and values of all ranks on each (")
       << sizes.queries / getParts() << " of " << sizes.queries << " queries on each rank)";
}

/// By heads, each rank those of all positions; what makes its operands and uses its result, by
/// positions.
LogicalResult StepSplitter::splitByHeads(nn::AttentionOp attention) {
  const nn::AttentionLayout sizes = attention.getLayout();
  StringRef order = attention.getOrder();
  const int64_t positionDim = nn::attentionDim(order, 't');
  const SmallVector<StringAttr> heads = getHeadAxes();
  const int64_t parts = mesh.getSize(heads);
  if (!divides(sizes, parts)) {
    const int64_t others = parts / getParts(); // ranks that split heads besides
    return attention.emitError() << "the mesh splits attention by heads over " << spell(heads)
                                 << "=" << parts << ", got " << sizes.heads << " heads in "
                                 << sizes.groups << " groups of keys and values"
                                 << (isOverPositions(attention)
                                         ? "; "
                                         : ", to keys of another sequence than the queries, which "
                                           "no other way splits; ")
                                 << findFittingSizes(sizes, others)
                                 << (findFault(attention, AttentionKind::ring).empty()
                                         ? ", or use --context-attention=ring"
                                     : findFault(attention, AttentionKind::gather).empty()
                                         ? ", or use --context-attention=gather"
                                         : "");
  }
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
  llvm::SmallSetVector<Value, 3> inputs;
  inputs.insert_range(attention.getTensors());
  for (Value input : inputs) {
    for (auto rope = input.getDefiningOp<nn::RopeOp>(); rope;
         rope = rope.getX().getDefiningOp<nn::RopeOp>()) {
      const RankedTensorType type = rope.getX().getType();
      const int64_t along = rope.getDim(), count = type.getDimSize(along);
      if (rope.getPositions() || along == 0 || !positions.contains(rope, along) ||
          count >= int64_t(1) << 24)
        continue;
      // Once for all rotations of a block, before them.
      Value &numbers = numbersOf[{rope->getBlock(), {type.getDimSize(0), count}}];
      if (!numbers) {
        builder.setInsertionPointToStart(rope->getBlock());
        numbers = getPositions(type.getDimSize(0), count, 0, rope.getLoc());
      }
      rope.getPositionsMutable().assign(numbers);
    }
    constrain(input, {{dim, axes}});
  }
  constrain(attention.getOut(),
            {{nn::attentionDim(nn::attentionOutOrder(attention.getOrder()), 't'), axes}});
}

/// The numbers of `count` positions from `start` on, for each sample.
Value StepSplitter::getPositions(int64_t samples, int64_t count, int64_t start, Location loc) {
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
  // Each rank counts all positions and selects its part.
  numbers = constrain(numbers, {{0, {}}});
  return nn::RepeatOp::create(builder, loc,
                              RankedTensorType::get({samples, count}, builder.getI32Type()),
                              "t -> b t", numbers);
}

/// A table of positions that is added to each sample becomes a lookup of each position's row: a
/// rank's gradient is then a term of the sum over ranks, as for other parameters.
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
  Value ids = getPositions(result.getDimSize(0), result.getDimSize(1), start, repeat.getLoc());
  builder.setInsertionPoint(repeat);
  Value each = nn::EmbeddingOp::create(builder, repeat.getLoc(), result, table, ids);
  repeat.replaceAllUsesWith(each);
  Operation *slice = rows.getDefiningOp();
  repeat.erase();
  if (rows.use_empty() && isa<nn::SliceOp>(slice))
    slice->erase();
}

/// Adds `user` to `users`, and to `ops` and `users` the ops that compute its operand `value`. False
/// if `value` depends on anything but inputs and constants.
bool StepSplitter::collectOps(Value value, Operation *user, DenseSet<Operation *> &ops,
                              DenseSet<Operation *> &users) const {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<InputOp>(op)) {
    users.insert(user);
    return true;
  }
  if (!op || !isa<nn::ShardingRuleOpInterface>(op) || op->getNumOperands() == 0)
    return op && op->hasTrait<OpTrait::ConstantLike>();
  ops.insert(op);
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return collectOps(operand, op, ops, users); });
}

/// The ops that use inputs to compute operands whose positions an op needs whole. The ops on the
/// way get constants of their own, through which no split reaches them.
DenseSet<Operation *> StepSplitter::findUsersOfWhole() {
  DenseSet<Operation *> all, users;
  step->walk([&](nn::ShardingRuleOpInterface op) {
    const nn::ShardingRule rule = op.getShardingRule();
    auto isWhole = [&](int64_t factor) {
      return rule.factors[factor].kind == nn::FactorKind::whole && rule.factors[factor].size > 1;
    };
    for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), rule.operands))
      for (auto [dim, own] : llvm::enumerate(factors))
        if (llvm::any_of(own, isWhole) && positions.contains(operand, dim))
          if (DenseSet<Operation *> ops, found; collectOps(operand, op, ops, found)) {
            all.insert_range(ops);
            users.insert_range(found);
          }
  });
  for (Operation *op : all)
    for (OpOperand &operand : op->getOpOperands())
      if (Operation *constant = operand.get().getDefiningOp();
          constant->hasTrait<OpTrait::ConstantLike>() && !constant->hasOneUse()) {
        builder.setInsertionPoint(op);
        operand.set(builder.clone(*constant)->getResult(0));
      }
  return users;
}

LogicalResult StepSplitter::run() {
  // Chosen before there are constraints, whose results are of no class.
  SmallVector<std::pair<nn::AttentionOp, AttentionKind>> attentions;
  WalkResult chosen = step.walk([&](nn::AttentionOp attention) {
    FailureOr<AttentionKind> kind = choose(attention);
    if (failed(kind))
      return WalkResult::interrupt();
    attentions.push_back({attention, *kind});
    return WalkResult::advance();
  });
  if (chosen.wasInterrupted())
    return failure();
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
  const DenseSet<Operation *> usersOfWhole = findUsersOfWhole();
  SmallVector<InputOp> inputs(step.getBody().getOps<InputOp>());
  for (InputOp input : inputs) {
    const int64_t dim = positions.find(input);
    if (dim < 0 || dim == static_cast<int64_t>(input.getSampleDim()))
      continue;
    FailureOr<Value> part = split(input, dim);
    if (failed(part))
      return failure();
    part->replaceUsesWithIf(input.getResult(),
                            [&](OpOperand &use) { return usersOfWhole.contains(use.getOwner()); });
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
  const auto *known = llvm::find(attentionKindNames, attention);
  if (attention != "auto" && known == std::end(attentionKindNames)) {
    module.emitError() << "--context-attention got '" << attention
                       << "', expected auto, all-to-all, gather or ring";
    return signalPassFailure();
  }
  std::optional<AttentionKind> wanted;
  if (attention != "auto")
    wanted = AttentionKind(known - std::begin(attentionKindNames));
  MeshOp mesh = getMeshOp(module);
  if (!mesh)
    return;
  SmallVector<StringAttr> axes;
  for (StringAttr axis : mesh.getMesh().getAxisNames())
    if (splitsSequence(axis) && mesh.getMesh().getAxisSize(axis) > 1)
      axes.push_back(axis);
  if (axes.empty())
    return;
  bool isUsed = false;
  module.walk([&](ExitManualOp region) { // uses the axis by itself
    isUsed |= llvm::any_of(getAxisNames(region.getOver()),
                           [](StringAttr axis) { return splitsSequence(axis); });
  });
  std::set<AttentionKind> kinds;
  for (StepOp step : module.getOps<StepOp>()) {
    if (step.getKind() != StepKind::train && step.getKind() != StepKind::evaluate)
      continue;
    StepSplitter splitter(step, axes, wanted);
    if (!splitter.hasPositions())
      continue; // whose ranks along the axis compute the same
    isUsed = true;
    if (failed(splitter.run()))
      return signalPassFailure();
    kinds.insert(splitter.getKinds().begin(), splitter.getKinds().end());
  }
  if (!kinds.empty()) {
    auto names =
        llvm::map_range(kinds, [](AttentionKind kind) { return attentionKindNames[int(kind)]; });
    module->setAttr(kContextAttentionAttrName,
                    StringAttr::get(&getContext(), llvm::join(names, "+")));
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
