//===- Gradients.cpp - from gradients to shards of sums -------------------===//

#include "dialect/fsdp/Precision.h"
#include "dialect/nn/Precision.h"
#include "passes/local/partition/StageSums.h"
#include "passes/local/partition/StepPartitioner.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::fsdp;

FailureOr<SmallVector<StepPartitioner::Reduction *>>
StepPartitioner::addReductions(Operation *user, ArrayRef<Attribute> params, ValueRange gradients,
                               bool complete) {
  llvm::MapVector<Storage *, SmallVector<Value>> byStorage;
  for (auto [param, gradient] : llvm::zip_equal(params, gradients)) {
    auto [storage, index] = layout.lookup(cast<FlatSymbolRefAttr>(param).getAttr());
    SmallVector<Value> &members = byStorage[storage];
    members.resize(storage->members.size());
    members[index] = gradient;
  }
  SmallVector<Reduction *> result;
  for (auto &[storage, members] : byStorage) {
    for (auto [member, gradient] : llvm::zip_equal(storage->members, members)) {
      ParamOp param = member.param;
      if (!gradient && complete)
        return user->emitOpError()
               << "updates unit '" << storage->unit << "' without its parameter '"
               << param.getSymName() << "'; update it in the same step or give it another unit";
    }
    Reduction *known = nullptr;
    for (auto &other : reductions)
      if (other->storage == storage && other->gradients == members)
        known = other.get();
    if (!known) {
      reductions.push_back(std::make_unique<Reduction>(Reduction{storage, members, {members}}));
      known = reductions.back().get();
      splitIntoParts(*known);
      for (auto [index, part] : llvm::enumerate(known->parts)) {
        Operation *last = nullptr;
        for (Value gradient : part)
          if (gradient && (!last || last->isBeforeInBlock(gradient.getDefiningOp())))
            last = gradient.getDefiningOp();
        completedBy[last].push_back({known, static_cast<unsigned>(index), user});
      }
    }
    result.push_back(known);
  }
  return result;
}

/// A parameter whose uses are far apart (a tied weight) has a gradient whose terms are computed far
/// apart. Each run of terms of one unit, with no gradient of another unit in between, is then
/// reduced separately, and the shards are added: no whole gradient is live from the first to the
/// last term. The runs are the same as those of gathers (see groupReads). Each reduces the whole
/// unit: with TiedGradients::once there are no runs. Each stage of a pipeline reduces its own terms
/// in any case.
void StepPartitioner::splitIntoParts(Reduction &reduction) {
  const bool isJoined = reduction.storage->placement.getKind() != StorageKind::flat ||
                        tiedGradients == TiedGradients::once;
  // Where two terms are in one run, they are added up before they are reduced.
  if (isJoined || !splitIntoParts(reduction, isJoined, /*byStage=*/false))
    splitIntoParts(reduction, isJoined, /*byStage=*/true);
}

/// With `byStage` the sum of the terms of a stage is one term. Returns false if two terms are in
/// one run.
bool StepPartitioner::splitIntoParts(Reduction &reduction, bool isJoined, bool byStage) {
  Storage *storage = reduction.storage;
  struct Term {
    Value value;
    size_t member;
  };
  SmallVector<Term> found;
  SmallVector<Operation *> allSums;
  for (auto [member, gradient] : llvm::enumerate(reduction.gradients)) {
    if (!gradient)
      continue;
    SmallVector<Value> terms;
    SmallVector<Operation *> sums;
    collectTerms(gradient, byStage, terms, sums);
    bool apart = llvm::all_of(terms, [&](Value term) { return term.getDefiningOp(); }) &&
                 // Uses of a sum other than additions and reductions keep it whole.
                 llvm::all_of(sums, [&](Operation *sum) {
                   return llvm::all_of(sum->getUsers(), [&](Operation *user) {
                     return isa<GlobalNormOp, UpdateOp>(user) || llvm::is_contained(sums, user);
                   });
                 });
    if (!apart) {
      terms.assign({gradient});
      sums.clear();
    }
    for (Value term : terms)
      found.push_back({term, member});
    allSums.append(sums);
  }
  if (allSums.empty())
    return true;
  llvm::sort(found, [](const Term &a, const Term &b) {
    Operation *first = a.value.getDefiningOp(), *second = b.value.getDefiningOp();
    return first == second ? a.member < b.member : first->isBeforeInBlock(second);
  });
  auto between = [&](Operation *begin, Operation *end) {
    for (Operation *op = begin->getNextNode(); op && op != end; op = op->getNextNode())
      for (Operation *user : op->getUsers())
        if (auto update = dyn_cast<UpdateOp>(user);
            update && layout.lookup(update.getParamAttr().getAttr()).first != storage)
          return true;
    return false;
  };
  SmallVector<SmallVector<Value>> parts;
  Operation *previous = nullptr;
  for (auto [value, member] : found) {
    Operation *op = value.getDefiningOp();
    const bool isNext = previous && getStructure(previous).stage != getStructure(op).stage;
    if (!previous || isNext || (!isJoined && op != previous && between(previous, op)))
      parts.emplace_back(storage->members.size());
    if (parts.back()[member])
      return false;
    parts.back()[member] = value;
    previous = op;
  }
  if (parts.size() > 1) {
    reduction.parts = std::move(parts);
    elided.insert(allSums.begin(), allSums.end());
  }
  return true;
}

LogicalResult StepPartitioner::collectReductions() {
  Block &body = step.getBody().front();
  SmallVector<UpdateOp> updates(body.getOps<UpdateOp>());
  SmallVector<Attribute> params;
  SmallVector<Value> gradients;
  for (UpdateOp update : updates) {
    params.push_back(update.getParamAttr());
    gradients.push_back(update.getGradient());
  }
  if (!updates.empty()) {
    auto found = addReductions(updates.front(), params, gradients, /*complete=*/true);
    if (failed(found))
      return failure();
    for (Reduction *reduction : *found)
      updateReductions[reduction->storage] = reduction;
  }
  for (GlobalNormOp norm : body.getOps<GlobalNormOp>()) {
    auto found = addReductions(norm, norm.getParams().getValue(), norm.getGradients(),
                               /*complete=*/false);
    if (failed(found))
      return failure();
    normReductions[norm] = *found;
  }
  return success();
}

ShardingAttr StepPartitioner::computeSharding(const Storage::Member &member) const {
  ParamOp param = member.param;
  ShardingAttr compute = param.getPlacementAttr().getCompute();
  return compute ? compute : values.sharding(DimAxes(param.getTensorType().getRank()));
}

std::optional<SmallVector<StringAttr>>
StepPartitioner::commonPartialAxes(Storage *storage, ArrayRef<Value> gradients) const {
  std::optional<ArrayRef<StringAttr>> common;
  for (auto [member, gradient] : llvm::zip_equal(storage->members, gradients)) {
    if (!gradient)
      continue; // Zero everywhere: partial over any axes.
    ShardingAttr sharding = values.produced(gradient).sharding;
    bool split = sharding.getDimAxes() != computeSharding(member).getDimAxes();
    if (split || (common && *common != sharding.getUnreduced()))
      return std::nullopt;
    common = sharding.getUnreduced();
  }
  return values.inMeshOrder(*common);
}

bool StepPartitioner::reducesEach(Storage *storage) const {
  return accumulateReduce == AccumulateReduce::automatic
             ? storage->placement.getGradient().getKind() != StorageKind::replicated
             : accumulateReduce == AccumulateReduce::each;
}

/// `sum` over microbatches where `partial` has their axis, which is removed: added up in the type
/// in which gradients are accumulated, and cast back to the communication type if it is to be sent.
Value StepPartitioner::accumulate(Value sum, SmallVectorImpl<StringAttr> &partial,
                                  Storage *storage) {
  if (!llvm::is_contained(partial, kMicrobatchAxis))
    return sum;
  auto narrow = cast<RankedTensorType>(sum.getType());
  RankedTensorType wide = narrow.clone(storage->getAccumulated());
  if (wide != narrow)
    sum = arith::ExtFOp::create(builder, nameLoc(storage, "widen", sum.getLoc()), wide, sum);
  sum = values.overMicrobatches(sum, ReduceKind::sum, partial);
  if (wide != narrow && !reducesEach(storage))
    sum = arith::TruncFOp::create(builder, nameLoc(storage, "narrow", sum.getLoc()), narrow, sum);
  return sum;
}

/// `local`, a part of `gradient`, with zeros in its padding, which the norm and the update read.
LocalValue StepPartitioner::withZeroPadding(Value gradient, LocalValue local) {
  for (int64_t dim = 0; dim < local.sharding.getRank(); ++dim)
    if (values.isUneven(gradient, local.sharding, dim))
      local = values.masked(gradient, local, dim, 0);
  return local;
}

/// The sum over all ranks of the gradients as they are stored, of which a rank keeps a shard: those
/// of a flat storage joined, or the one of a storage along a dimension.
Value StepPartitioner::reduceStored(Reduction &reduction, ArrayRef<Value> gradients,
                                    Operation *user) {
  Storage *storage = reduction.storage;
  Value first = *llvm::find_if(gradients, [](Value gradient) { return bool(gradient); });
  Location loc = nameLoc(storage, "reduce", first.getLoc());
  SmallVector<StringAttr> axes(storage->getAxes());
  std::optional<SmallVector<StringAttr>> partial = commonPartialAxes(storage, gradients);
  auto covers = [&](ArrayRef<StringAttr> set) {
    return llvm::all_of(axes, [&](StringAttr axis) { return llvm::is_contained(set, axis); });
  };
  bool together = partial && covers(*partial);

  SmallVector<Value> locals;
  for (auto [member, gradient] : llvm::zip_equal(storage->members, gradients)) {
    ParamOp param = member.param;
    if (!gradient) {
      RankedTensorType type = getGradientType(param).clone(param.getComputeType().getShape());
      locals.push_back(nn::createSplat(builder, loc, type, 0));
      continue;
    }
    LocalValue local =
        together ? values.produced(gradient) : values.as(gradient, computeSharding(member), user);
    locals.push_back(withZeroPadding(gradient, local).value);
  }

  bool split = !axes.empty();
  int64_t ranks = mesh.getSize(axes);
  // One rank's gradients are the sum already, and its shard is all of it: it stays where it is.
  const bool scatters = split && together && ranks > 1;
  const bool along = storage->placement.getKind() == StorageKind::dimension;
  const int64_t dim = along ? storage->placement.getDim() : 0;
  Value sum;
  if (along) {
    sum = locals.front();
  } else {
    RankedTensorType whole = storage->getReduced();
    // Gradients that are whole already are padded to the size of all shards, to be sliced.
    if (split && !scatters)
      whole = whole.clone(storage->shard.getNumElements() * ranks);
    sum = FlattenOp::create(builder, loc, whole, locals);
  }
  ArrayAttr over = values.axisArray(axes);
  SmallVector<StringAttr> rest;
  if (together)
    rest = *partial;
  llvm::erase_if(rest, [&](StringAttr axis) { return llvm::is_contained(axes, axis); });
  bool each = reducesEach(storage);
  if (!each)
    sum = accumulate(sum, rest, storage);
  if (scatters) {
    sum = ReduceScatterOp::create(builder, loc, storage->getReducedShard(), sum, dim, over);
  } else if (split && !together) {
    if (ranks > 1)
      user->emitRemark()
          << "the gradients of unit '" << storage->unit
          << "' are not all partial sums over its axes: each is reduced whole, then split";
    sum = AllSliceOp::create(builder, loc, storage->getReducedShard(), sum, dim, over);
  }
  // A shard is accumulated before it is reduced over the axes of its replicas; replicated gradients
  // are accumulated after the reduction.
  if (each && !split && llvm::is_contained(rest, kMicrobatchAxis) && rest.size() > 1) {
    llvm::erase(rest, kMicrobatchAxis);
    sum = values.allReduce(sum, ReduceKind::sum, rest, loc);
    rest.assign({builder.getStringAttr(kMicrobatchAxis)});
  }
  if (each)
    sum = accumulate(sum, rest, storage);
  return values.allReduce(sum, ReduceKind::sum, rest, loc);
}

/// A storage that is split along a dimension takes its gradient in that sharding.
Value StepPartitioner::reduceAlongDimension(Reduction &reduction, Value gradient, Operation *user) {
  Storage *storage = reduction.storage;
  int64_t dim = storage->placement.getDim();
  DimAxes axes = dimAxesOf(computeSharding(storage->members.front()));
  const int64_t computed = mesh.getSize(axes[dim]);
  llvm::append_range(axes[dim], storage->getAxes());
  // Parts of uneven parts are not those of one split: 6 elements over 2 x 2 ranks are stored as
  // 2 + 1 and 2 + 1, and one split has 2 + 2 and 2 + 0.
  ParamOp param = storage->members.front().param;
  if (computed > 1 && param.getSplitShape()[dim] % mesh.getSize(axes[dim]) != 0)
    return reduceStored(reduction, gradient, user);
  ShardingAttr stored = values.sharding(axes);
  values.scatterEach = reducesEach(storage);
  LocalValue local = values.as(gradient, stored, user);
  values.scatterEach = false;
  return withZeroPadding(gradient, local).value;
}

/// Reduces the gradients of `part`, which `last` completes.
void StepPartitioner::reduce(Reduction &reduction, unsigned part, Operation *last,
                             Operation *user) {
  StructureScope scope(builder, structureOf(reduction.storage, last).in(Direction::backward));
  scope.add(FSDPDialect::reducesAttrName,
            FlatSymbolRefAttr::get(reduction.storage->op.getSymNameAttr()));
  bool dimension = reduction.storage->placement.getKind() == StorageKind::dimension;
  Value shard = dimension ? reduceAlongDimension(reduction, reduction.parts[part].front(), user)
                          : reduceStored(reduction, reduction.parts[part], user);
  // Norm and update compute in the type of the stored shard; so does the sum of the terms of a tied
  // weight.
  if (shard.getType() != reduction.storage->shard)
    shard = arith::ExtFOp::create(builder, nameLoc(reduction.storage, "widen", shard.getLoc()),
                                  reduction.storage->shard, shard);
  auto add = [&](Value &sum, Value term) {
    sum = sum ? arith::AddFOp::create(builder, term.getLoc(), sum, term).getResult() : term;
  };
  add(reduction.stages[getStructure(last).stage], shard);
  if (part + 1 == reduction.parts.size())
    for (const auto &[stage, sum] : reduction.stages)
      add(reduction.shard, sum);
}
