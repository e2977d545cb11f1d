//===- ShardingWarnings.cpp - shardings that cost more than they seem -----===//

#include "passes/global/ShardingWarnings.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/Structure.h"
#include "passes/sharding/MeshAxes.h"
#include "passes/sharding/OpSplit.h"

using namespace mlir;
using namespace mlir::fsdp;

/// "'tensor'", "'data' and 'tensor'", "no axis"
static std::string listAxes(MeshAttr mesh, ArrayRef<StringAttr> axes) {
  if (axes.empty())
    return "no axis";
  return llvm::join(llvm::map_range(spellAxes(mesh, axes),
                                    [](const std::string &axis) { return "'" + axis + "'"; }),
                    " and ");
}

/// The axes of `dim` that split something: axes of size 1 do not.
static SmallVector<StringAttr> getSplit(ShardingAttr sharding, int64_t dim, MeshAttr mesh) {
  return llvm::filter_to_vector(sharding.getAxes(dim),
                                [&](StringAttr axis) { return mesh.getAxisSize(axis) != 1; });
}

void mlir::fsdp::warnOfContradictions(StepOp step) {
  MeshAttr mesh = getMesh(step);
  DenseMap<Value, ConstraintOp> firsts;
  for (auto constraint : step.getBody().getOps<ConstraintOp>()) {
    // The shardings of backward follow from forward.
    if (getStructure(constraint).direction != Direction::forward)
      continue;
    auto [known, isNew] = firsts.try_emplace(constraint.getInput(), constraint);
    if (isNew)
      continue;
    ConstraintOp first = known->second;
    ShardingAttr here = constraint.getSharding(), there = first.getSharding();
    for (int64_t dim = 0; dim < here.getRank(); ++dim) {
      SmallVector<StringAttr> axes = getSplit(here, dim, mesh), others = getSplit(there, dim, mesh);
      if (here.getDimOpen()[dim] || there.getDimOpen()[dim] || axes == others)
        continue;
      InFlightDiagnostic diag =
          constraint.emitWarning()
          << "splits dimension " << dim << " of '" << nameOf(constraint.getInput()) << "' over "
          << listAxes(mesh, axes) << ", but another constraint splits it over "
          << listAxes(mesh, others) << ": the value is resharded between them; use one of them";
      diag.attachNote(first.getLoc()) << "the other constraint is here";
      break;
    }
  }
}

void mlir::fsdp::remarkIdleMarks(StepOp step) {
  MeshAttr mesh = getMesh(step);
  for (auto mark : step.getBody().getOps<ConstraintOp>()) {
    if (!mark.getSequenceParallel() || getStructure(mark).direction != Direction::forward)
      continue;
    int64_t dim = 0;
    while (mark.getSharding().getAxes(dim).empty())
      ++dim;
    ReshardOp first;
    const bool isIdle = llvm::all_of(mark->getUsers(), [&](Operation *user) {
      if (getStructure(user).direction != Direction::forward)
        return true;
      auto move = dyn_cast<ReshardOp>(user);
      first = move; // the first user comes last
      return move && getSplit(move.getSharding(), dim, mesh).empty();
    });
    if (!isIdle || !first || getSplit(mark.getSharding(), dim, mesh).empty())
      continue;
    std::string split;
    for (int64_t other = 0; other < first.getSharding().getRank(); ++other)
      for (StringAttr axis : getSplit(first.getSharding(), other, mesh))
        if (llvm::is_contained(mark.getSharding().getAxes(dim), axis))
          split = "dimension " + std::to_string(other) + " split over " + listAxes(mesh, axis);
    Operation *taker = nullptr;
    for (Operation *user : first->getUsers()) // the first one comes last
      taker = user;
    mark.emitRemark() << "--sequence-parallel splits no positions: '" << nameOf(taker->getResult(0))
                      << "' takes '" << nameOf(mark) << "' with "
                      << (split.empty() ? "all of them; mark the value that is added to"
                                        : split + "; leave that split out of --shard and the model")
                      << ", or give --sequence-parallel=off";
  }
}

/// All axes that split a dimension.
static SmallVector<StringAttr> getSplit(ShardingAttr sharding, MeshAttr mesh) {
  SmallVector<StringAttr> axes;
  for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
    llvm::append_range(axes, getSplit(sharding, dim, mesh));
  return axes;
}

/// The numbers of ranks over which a dimension that `move` gathers for `user` could stay split, as
/// " (dimension 2 can be split over 2 or 6 ranks, got 3)", if only the number of ranks prevents it:
/// heads in groups that the ranks do not divide, for example. Otherwise "".
static std::string suggestRanks(ReshardOp move, Operation *user, ShardingAttr from, ShardingAttr to,
                                MeshAttr mesh) {
  auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(user);
  if (!ruled)
    return "";
  const nn::ShardingRule rule = ruled.getShardingRule();
  auto type = cast<RankedTensorType>(move.getInput().getType());
  for (OpOperand &use : move->getUses()) {
    if (use.getOwner() != user)
      continue;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      const int64_t parts = mesh.getSize(getSplit(from, dim, mesh));
      const nn::DimFactors &factors = rule.operands[use.getOperandNumber()][dim];
      auto admits = [&](int64_t ranks) {
        return OpSplit::admits(rule, {factors},
                               {{{ranks}, /*overMicrobatches=*/false, /*mayCut=*/true}});
      };
      if (parts == 1 || !getSplit(to, dim, mesh).empty() || factors.size() < 2 || admits(parts))
        continue;
      SmallVector<std::string> numbers;
      for (int64_t ranks = 2;
           ranks <= std::min(type.getDimSize(dim), 2 * parts) && numbers.size() < 4; ++ranks)
        if (admits(ranks))
          numbers.push_back(std::to_string(ranks));
      if (!numbers.empty())
        return " (dimension " + std::to_string(dim) + " can be split over " +
               llvm::join(numbers, " or ") + " ranks, got " + std::to_string(parts) + ")";
    }
  }
  return "";
}

/// The code to add to the model so that `value` is constrained to `spec`.
static std::string suggestConstraint(Value value, StringRef spec) {
  const bool isNamed = bool(value.getLoc()->findInstanceOf<NameLoc>());
  Operation *made = value.getDefiningOp();
  const bool isGradient = made && getStructure(made).direction == Direction::backward;
  const std::string name = isNamed && !isGradient ? nameOf(value) : "x";
  return "if intended, write constrain(" + name + ", \"" + spec.str() + "\") " +
         (isGradient ? "on the value x of this gradient"
          : isNamed  ? "at its definition"
                     : "on this result x");
}

/// The parameter that `value` is, or whose gradient it is, in another type or sharding;
/// `isConstrained` if a constraint of the user splits it on the way. Null if there is none.
static StringAttr findParameter(Value value, MeshAttr mesh, bool &isConstrained) {
  auto passes = [](Operation *op) {
    auto ruled = dyn_cast<nn::ShardingRuleOpInterface>(op);
    const bool isCast = ruled && ruled.getLinearity() == nn::Linearity::rounding;
    return isa<ConstraintOp, ReshardOp>(op) || isCast;
  };
  auto note = [&](Operation *op) {
    if (auto constraint = dyn_cast<ConstraintOp>(op))
      isConstrained |= !getSplit(constraint.getSharding(), mesh).empty();
  };
  Operation *made = value.getDefiningOp();
  for (; made && passes(made); made = made->getOperand(0).getDefiningOp())
    note(made);
  if (auto read = dyn_cast_or_null<ReadOp>(made))
    return read.getParamAttr().getAttr();
  for (Operation *user : value.getUsers()) {
    if (auto update = dyn_cast<UpdateOp>(user))
      return update.getParamAttr().getAttr();
    if (!passes(user))
      continue;
    note(user);
    if (StringAttr param = findParameter(user->getResult(0), mesh, isConstrained))
      return param;
  }
  return nullptr;
}

/// The remedy for a split of parameter `param` that the user chose and that `user` cannot keep.
static std::string suggestSplit(StringAttr param, Operation *user, const std::string &axes) {
  return "parameter '" + param.str() +
         "' has this split from the model, a constraint or --shard: keep " + axes +
         " off the other operands and the results of '" + user->getName().getStringRef().str() +
         "', or split the parameter along another dimension";
}

void mlir::fsdp::warnOfReplication(const StepShardings &shardings, ArrayRef<ReshardOp> moves,
                                   ArrayRef<StringAttr> batchAxes,
                                   const DenseSet<StringAttr> &placed) {
  for (ReshardOp move : moves) {
    // The user requested constraints.
    if (move->use_empty() || move.getLowerPriority() ||
        llvm::any_of(move->getUsers(), llvm::IsaPred<ConstraintOp>))
      continue;
    Value value = move.getInput();
    if (value.getDefiningOp()->hasAttr(kTakenByHeadsAttrName))
      continue;
    ShardingAttr from = shardings.lookup(value), to = move.getSharding();
    auto type = cast<RankedTensorType>(value.getType());
    MeshAttr mesh = getMesh(move);
    SmallVector<StringAttr> gathered = getSplit(from, mesh), kept = getSplit(to, mesh);
    llvm::erase_if(gathered, [&](StringAttr axis) { return llvm::is_contained(kept, axis); });
    if (gathered.empty() || llvm::is_contained(gathered, kMicrobatchAxis))
      continue;
    llvm::erase(kept, kMicrobatchAxis);
    auto splitsBatch = [&](StringAttr axis) { return llvm::is_contained(batchAxes, axis); };
    // Warns if samples stay split while the rest is gathered, but not if the batch is gathered in
    // part.
    if (!kept.empty() && (!llvm::all_of(kept, splitsBatch) || llvm::any_of(gathered, splitsBatch)))
      continue;
    int64_t bytes = type.getElementTypeBitWidth() / 8, part = bytes;
    // Some of the elements that a rank has may move to others.
    for (auto [had, gets] : llvm::zip_equal(from.getLocalShape(type.getShape(), mesh),
                                            to.getLocalShape(type.getShape(), mesh))) {
      bytes *= gets;
      part *= std::min(had, gets);
    }
    if (bytes == part) // a dimension of one element, that one rank has and others would pad
      continue;
    std::string spec;
    for (int64_t dim = 0; dim < to.getRank(); ++dim) {
      SmallVector<StringAttr> axes = getSplit(to, dim, mesh);
      llvm::erase(axes, kMicrobatchAxis);
      spec += dim == 0 ? "" : ",";
      spec += axes.empty() ? "_" : llvm::join(spellAxes(mesh, axes), "+");
    }
    Operation *user = *move->user_begin();
    bool isConstrained = false;
    StringAttr param = findParameter(value, mesh, isConstrained);
    const bool isPlaced = param && (isConstrained || placed.contains(param));
    user->emitWarning() << "'" << user->getName() << "' needs all of '" << nameOf(value)
                        << (kept.empty() ? "' on every rank" : "' of a rank's samples")
                        << ", which gathers " << bytes - part << " bytes over "
                        << listAxes(mesh, gathered) << suggestRanks(move, user, from, to, mesh)
                        << "; "
                        << (isPlaced ? suggestSplit(param, user, listAxes(mesh, gathered))
                                     : suggestConstraint(value, spec));
  }
}

void mlir::fsdp::warnOfPadding(ModuleOp module) {
  ParamOp first;
  int64_t splitDim = 0, others = 0;
  for (ParamOp param : module.getOps<ParamOp>()) {
    PlacementAttr placement = param.getPlacementAttr();
    if (!placement || !placement.getCompute())
      continue;
    MeshAttr mesh = getMesh(param);
    for (int64_t dim = 0; dim < placement.getCompute().getRank(); ++dim) {
      int64_t size = param.getTensorType().getDimSize(dim);
      int64_t parts = mesh.getSize(placement.getCompute().getAxes(dim));
      // A few padded rows of a vocabulary need no warning.
      int64_t added = llvm::divideCeil(size, parts) * parts - size;
      if (added * 20 <= size)
        continue;
      others += bool(first);
      if (!first) {
        first = param;
        splitDim = dim;
      }
      break;
    }
  }
  if (!first)
    return;
  int64_t size = first.getTensorType().getDimSize(splitDim);
  int64_t parts = getMesh(first).getSize(first.getPlacementAttr().getCompute().getAxes(splitDim));
  InFlightDiagnostic diag = first.emitWarning()
                            << "dimension " << splitDim << " of '" << first.getSymName()
                            << "' has size " << size << " and is split in compute into " << parts
                            << " parts of " << llvm::divideCeil(size, parts)
                            << ", partly padding that is computed too";
  if (others > 0)
    diag << " (so are dimensions of " << others << " other parameters)";
  diag << "; a multiple of " << parts << " has none";
}
