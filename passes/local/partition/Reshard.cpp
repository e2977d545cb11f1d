//===- Reshard.cpp - from one sharding to another -------------------------===//
//
// Sums that only need to be completed or scattered take one collective of each kind. The solver in
// passes/reshard/ handles all other changes, from the existing sharding of the value that needs the
// fewest bytes.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "mlir/IR/Matchers.h"
#include "passes/local/partition/LocalValues.h"
#include "passes/reshard/SubAxes.h"
#include "passes/sharding/MeshAxes.h"
#include "passes/sharding/StepShardings.h"

using namespace mlir;
using namespace mlir::fsdp;

static bool isSplat(Value value) {
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat));
}

void LocalValues::remark(Operation *consumer, Value global, Operation *collective) const {
  auto interface = cast<CollectiveOpInterface>(collective);
  if (interface.getBytes() == 0) // a slice, which moves nothing between ranks
    return;
  // A remark about training also applies to the evaluation.
  auto step = consumer->getParentOfType<StepOp>();
  if (step && step.getKind() == StepKind::evaluate &&
      llvm::any_of(step->getParentOfType<ModuleOp>().getOps<StepOp>(),
                   [](StepOp other) { return other.getKind() == StepKind::train; }))
    return;
  // An inserted move is reported as the op that needs it.
  if (auto move = dyn_cast<ReshardOp>(consumer); move && move.getLowerPriority())
    return;
  // Moves between positions and heads, and of inputs: the pass that split sequences has reported
  // them.
  Operation *made = global.getDefiningOp();
  if ((isa<AllToAllOp>(collective) || (made && made->hasAttr(kTakenByHeadsAttrName))) &&
      llvm::all_of(interface.getAxes(),
                   [](StringAttr axis) { return getAxisRole(axis).splitsSequence; }))
    return;
  if (isa<ReshardOp>(consumer))
    for (Operation *user : consumer->getUsers()) // the first one comes last
      consumer = user;
  const std::string name = nameOf(global);
  // A constraint, and the ops of one operation of a model, have the name of the value.
  const bool isNamedApart =
      consumer->getNumResults() == 0 || nameOf(consumer->getResult(0)) != name;
  InFlightDiagnostic diag = consumer->emitRemark();
  if (isNamedApart)
    diag << "'" << consumer->getName() << "' takes '" << name << "' in another sharding: ";
  else
    diag << "'" << name << "' changes its sharding: ";
  diag << collective->getName().stripDialect() << " over [";
  llvm::interleaveComma(spellAxes(mesh, interface.getAxes()), diag,
                        [&](const std::string &axis) { diag << '"' << axis << '"'; });
  diag << "] of " << interface.getBytes() << " bytes";
}

void LocalValues::refuseMicrobatches(Value global, Operation *consumer) {
  // A move that propagation has inserted is made for an op.
  if (isa<ReshardOp>(consumer) && !consumer->use_empty())
    consumer = *consumer->user_begin();
  if (!failed && matchPattern(global, m_Constant()))
    consumer->emitError()
        << "'" << consumer->getName() << "' takes an element for each sample from '"
        << nameOf(global)
        << "', which is the same in each microbatch; make it an input of the step, or train "
           "without gradient accumulation";
  else if (!failed)
    consumer->emitError()
        << "'" << consumer->getName() << "' needs all samples of '" << nameOf(global)
        << "' at once, but with gradient accumulation a step computes them in "
        << mesh.getAxisSize(kMicrobatchAxis)
        << " microbatches, one after another; put samples first where dimensions are merged "
           "and use a batch that ranks and microbatches divide, or train without accumulation";
  failed = true;
}

/// True, after a diagnostic, if `consumer` is the boundary of a manual region that takes the
/// samples of `global`, which are split as `from`, on other ranks.
bool LocalValues::refuseBoundary(Value global, ShardingAttr from, const DimAxes &wanted,
                                 Operation *consumer) {
  if (isa<ReshardOp>(consumer) && !consumer->use_empty())
    consumer = *consumer->user_begin();
  auto boundary = dyn_cast<ConstraintOp>(consumer);
  if (!boundary || !boundary.getManual())
    return false;
  const DimAxes split = dimAxesOf(from);
  const auto *dim = llvm::find_if(
      split, [](const AxisList &axes) { return llvm::is_contained(axes, kMicrobatchAxis); });
  if (dim == split.end())
    return false;
  auto spell = [&](ArrayRef<StringAttr> axes) {
    SmallVector<StringAttr> ranks =
        llvm::filter_to_vector(axes, [](StringAttr axis) { return axis != kMicrobatchAxis; });
    return ranks.empty() ? std::string("no axis") : llvm::join(spellAxes(mesh, ranks), "+");
  };
  if (!failed)
    boundary.emitError() << "a manual region over "
                         << llvm::join(spellAxes(mesh, getAxisNames(*boundary.getManual())), "+")
                         << " takes the samples of '" << nameOf(global) << "' split over "
                         << spell(wanted[dim - split.begin()]) << ", got them over " << spell(*dim)
                         << ": they would change ranks, but with gradient accumulation a step "
                            "computes them in "
                         << mesh.getAxisSize(kMicrobatchAxis)
                         << " microbatches, one after another; write a region over " << spell(*dim)
                         << " that splits samples in this order, or train without accumulation";
  failed = true;
  return true;
}

void LocalValues::refuseReshard(Value global, const std::string &fault, Operation *consumer) {
  if (!failed)
    consumer->emitError() << "'" << consumer->getName() << "' takes '" << nameOf(global)
                          << "' in another sharding, but " << fault
                          << "; train on a mesh of fewer axes, or split the value alike in both "
                             "places";
  failed = true;
}

/// The axes of the mesh over which `global` may move: those that ranks have coordinates on, except
/// that of stages, of which one alone has the value, and, in local terms, the manual ones, along
/// which each rank has another value.
SmallVector<StringAttr> LocalValues::rankAxes(Value global) const {
  return llvm::filter_to_vector(mesh.getAxisNames(), [&](StringAttr axis) {
    return axis != kMicrobatchAxis && axis != stages &&
           !llvm::is_contained(manual.lookup(global), axis);
  });
}

/// The moves of a value of the type of `global` from `local` to the axes `wanted`; splits over
/// microbatches are kept.
// Parts of axes are axes of the mesh here, so that each axis is one atom of the problem.
static_assert(kMaxMeshAxes <= static_cast<size_t>(reshard::SubAxes::kMax));

reshard::Problem LocalValues::problemOf(Value global, const LocalValue &local,
                                        const DimAxes &wanted) const {
  reshard::Problem problem;
  SmallVector<StringAttr> axes = rankAxes(global);
  for (StringAttr axis : axes)
    problem.mesh.push_back({mesh.getAxisSize(axis)});
  auto toParts = [&](ArrayRef<StringAttr> names) {
    std::vector<reshard::AxisPart> parts;
    for (auto [index, axis] : llvm::enumerate(axes))
      if (llvm::is_contained(names, axis))
        parts.push_back({static_cast<int>(index), 1, mesh.getAxisSize(axis)});
    // In the order of the names.
    llvm::sort(parts, [&](const reshard::AxisPart &a, const reshard::AxisPart &b) {
      return llvm::find(names, axes[a.axis]) < llvm::find(names, axes[b.axis]);
    });
    return parts;
  };
  auto type = cast<RankedTensorType>(global.getType());
  auto held = cast<RankedTensorType>(local.value.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    SmallVector<StringAttr> from = local.sharding.getAxes(dim);
    problem.from.dims.push_back(toParts(from));
    problem.to.dims.push_back(toParts(wanted[dim]));
    int64_t size = padded.lookup(global)[dim];
    if (llvm::is_contained(from, kMicrobatchAxis)) { // one microbatch of each rank
      size = held.getDimSize(dim);
      for (const reshard::AxisPart &part : problem.from.dims.back())
        size *= part.size;
    }
    problem.shape.push_back(size);
  }
  problem.from.partial = toParts(local.sharding.getUnreduced());
  problem.elementBytes = std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
  return problem;
}

/// A permute of all ranks along the axes `all`, as one within groups over the axes along which
/// values move.
Operation *LocalValues::buildPermute(const reshard::Step &step, ArrayRef<StringAttr> all,
                                     RankedTensorType type, Value value, Location loc) {
  SmallVector<StringAttr> over;
  SmallVector<int64_t> sizes =
      llvm::map_to_vector(all, [&](StringAttr axis) { return mesh.getAxisSize(axis); });
  auto coordinate = [&](int64_t rank, size_t axis) {
    for (size_t minor = all.size(); --minor > axis;)
      rank /= sizes[minor];
    return rank % sizes[axis];
  };
  SmallVector<size_t> moved;
  for (size_t axis = 0; axis < all.size(); ++axis)
    for (auto [rank, source] : llvm::enumerate(step.sources))
      if (coordinate(rank, axis) != coordinate(source, axis)) {
        moved.push_back(axis);
        over.push_back(all[axis]);
        break;
      }
  auto indexOf = [&](int64_t rank) {
    int64_t index = 0;
    for (size_t axis : moved)
      index = index * sizes[axis] + coordinate(rank, axis);
    return index;
  };
  SmallVector<int64_t> from(mesh.getSize(over), -1);
  bool alike = true;
  for (auto [rank, source] : llvm::enumerate(step.sources)) {
    int64_t &known = from[indexOf(rank)];
    alike &= known < 0 || known == indexOf(source);
    known = indexOf(source);
  }
  if (!alike) { // groups differ: one of all ranks
    over.assign(all.begin(), all.end());
    from.assign(step.sources.begin(), step.sources.end());
  }
  return CollectivePermuteOp::create(builder, loc, type, value, from, axisArray(over));
}

/// Builds the op of one step of a problem over the axes `all` on `value`.
Operation *LocalValues::buildStep(const reshard::Step &step, ArrayRef<StringAttr> all, Value value,
                                  Location loc) {
  SmallVector<StringAttr> over;
  for (const reshard::AxisPart &part : step.axes)
    over.push_back(all[part.axis]);
  auto type = cast<RankedTensorType>(value.getType()).clone(ArrayRef(step.after));
  switch (step.kind) {
  case reshard::Kind::slice:
    return AllSliceOp::create(builder, loc, type, value, step.dim, axisArray(over));
  case reshard::Kind::gather:
    return AllGatherOp::create(builder, loc, type, value, step.dim, axisArray(over));
  case reshard::Kind::reduceScatter:
    return ReduceScatterOp::create(builder, loc, type, value, step.dim, axisArray(over));
  case reshard::Kind::allReduce:
    return AllReduceOp::create(builder, loc, ReduceKind::sum, value, axisArray(inMeshOrder(over)));
  case reshard::Kind::allToAll:
    return AllToAllOp::create(builder, loc, type, value, step.split, step.dim, axisArray(over));
  case reshard::Kind::repartition:
    return AllToAllOp::create(builder, loc, type, value, step.dim, step.dim, axisArray(over));
  case reshard::Kind::permute:
    return buildPermute(step, all, type, value, loc);
  }
  llvm_unreachable("unknown kind of step");
}

/// The axes of a dimension that part it before microbatches do, and theirs.
static ArrayRef<StringAttr> uptoMicrobatches(ArrayRef<StringAttr> axes) {
  return axes.take_front(llvm::find(axes, kMicrobatchAxis) - axes.begin() + 1);
}

/// True if the path from `from` to `wanted` moves elements of several microbatches: other
/// dimensions are split over them, or ranks that exchange samples have parts of samples, or
/// padding, in one microbatch.
bool LocalValues::movesMicrobatches(Value global, ShardingAttr from, const DimAxes &wanted) const {
  for (auto [dim, to] : llvm::enumerate(wanted)) {
    SmallVector<StringAttr> has = from.getAxes(dim);
    const bool isSplit = llvm::is_contained(has, kMicrobatchAxis),
               staysSplit = llvm::is_contained(to, kMicrobatchAxis);
    if (has == to || (!isSplit && !staysSplit))
      continue;
    const int64_t size = padded.lookup(global)[dim];
    if (!isSplit || !staysSplit || size % mesh.getSize(has) != 0 || size % mesh.getSize(to) != 0)
      return true;
    if (!hasWholeSamples && uptoMicrobatches(has) != uptoMicrobatches(to))
      return true;
  }
  return false;
}

/// Completes partial sums if no other change is needed: scatters them into dimensions that are not
/// split yet, and all-reduces the rest. Fails for any other change of the sharding.
FailureOr<LocalValue> LocalValues::reduced(Value global, LocalValue local, const DimAxes &wanted) {
  DimAxes axes = dimAxesOf(local.sharding);
  SmallVector<StringAttr> partial(local.sharding.getUnreduced());
  SmallVector<int64_t> scattered;
  for (auto [dim, target] : llvm::enumerate(wanted)) {
    if (axes[dim] == target)
      continue;
    if (!axes[dim].empty() || !llvm::all_of(target, [&](StringAttr axis) {
          return axis != kMicrobatchAxis && llvm::is_contained(partial, axis);
        }))
      return failure();
    scattered.push_back(dim);
  }
  Location loc = global.getLoc();
  if (!scatterEach)
    local.value = overMicrobatches(local.value, ReduceKind::sum, partial);
  for (int64_t dim : scattered) {
    axes[dim] = wanted[dim];
    llvm::erase_if(partial, [&](StringAttr axis) { return llvm::is_contained(axes[dim], axis); });
    local.value = ReduceScatterOp::create(builder, loc, localType(global, sharding(axes, partial)),
                                          local.value, dim, axisArray(axes[dim]));
  }
  local.value = overMicrobatches(local.value, ReduceKind::sum, partial);
  local.value = allReduce(local.value, ReduceKind::sum, inMeshOrder(partial), loc);
  return local;
}

LocalValue LocalValues::as(Value global, ShardingAttr wanted, Operation *consumer) {
  if (LocalValue known = resharded.lookup({global, wanted}); known.value)
    return known;
  LocalValue local = produced(global);
  assert(local.value && "value used before it is defined");
  Location loc = global.getLoc();
  if (isSplat(global)) {
    // Every part of a splat is a splat.
    auto splat =
        cast<DenseElementsAttr>(cast<arith::ConstantOp>(global.getDefiningOp()).getValue());
    return remember(global, {arith::ConstantOp::create(
                                 builder, loc, splat.resizeSplat(localType(global, wanted))),
                             wanted});
  }
  assert(wanted.getUnreduced().empty() && "a value is not made partial");
  const DimAxes axes = dimAxesOf(wanted);
  // The step is rejected; later ops get a value of the right type.
  auto refused = [&] {
    RankedTensorType type = localType(global, wanted);
    return remember(global,
                    {arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)), wanted});
  };
  if (movesMicrobatches(global, local.sharding, axes)) {
    if (!refuseBoundary(global, local.sharding, axes, consumer))
      refuseMicrobatches(global, consumer);
    return refused();
  }
  SmallVector<StringAttr> partial(local.sharding.getUnreduced());
  const bool maximum = reducesByMaximum(global.getDefiningOp());
  if (maximum && !partial.empty()) {
    local.value = overMicrobatches(local.value, ReduceKind::max, partial);
    local.value = allReduce(local.value, ReduceKind::max, inMeshOrder(partial), loc);
    partial.clear();
    local.sharding = sharding(dimAxesOf(local.sharding));
    remember(global, local);
  }
  const bool hasSum = llvm::any_of(
      known[global], [](const LocalValue &other) { return other.sharding.getUnreduced().empty(); });
  auto finish = [&](const LocalValue &from, Value value) {
    LocalValue moved{value, wanted};
    for (int64_t dim = 0; dim < wanted.getRank(); ++dim) {
      Padding padding = from.getPadding(dim);
      // Collectives write zeros after the last element; existing padding may move like elements.
      if (from.sharding.getAxes(dim) != wanted.getAxes(dim))
        padding = !isUneven(global, wanted, dim) ? Padding::repeats
                  : !isUneven(global, from.sharding, dim) || padding == Padding::zeros
                      ? Padding::zeros
                      : Padding::unknown;
      moved.padding.push_back(padding);
    }
    return remember(global, moved);
  };
  if (!partial.empty() && !hasSum)
    if (FailureOr<LocalValue> sum = reduced(global, local, axes); mlir::succeeded(sum))
      return finish(local, sum->value);
  if (!scatterEach)
    local.value = overMicrobatches(local.value, ReduceKind::sum, partial);

  // The sharding with the shortest path: that of the defining op, unless another is nearer.
  reshard::Problem problem = problemOf(global, local, axes);
  if (std::string fault = reshard::validate(problem); !fault.empty()) {
    refuseReshard(global, fault, consumer);
    return refused();
  }
  const reshard::Plan *plan = &solver.solve(problem);
  for (const LocalValue &other : known[global]) {
    if (!other.sharding.getUnreduced().empty() || movesMicrobatches(global, other.sharding, axes))
      continue;
    const reshard::Plan &next = solver.solve(problemOf(global, other, axes));
    if (std::pair(next.bytes, next.steps.size()) < std::pair(plan->bytes, plan->steps.size())) {
      plan = &next;
      local = other;
      partial.clear();
    }
  }
  Value value = local.value;
  const SmallVector<StringAttr> movable = rankAxes(global);
  for (const reshard::Step &step : plan->steps) {
    Operation *op = buildStep(step, movable, value, loc);
    value = op->getResult(0);
    if (step.kind != reshard::Kind::reduceScatter && step.kind != reshard::Kind::allReduce)
      remark(consumer, global, op);
  }
  if (scatterEach)
    value = overMicrobatches(value, ReduceKind::sum, partial);
  return finish(local, value);
}

LocalValue LocalValues::whole(Value global, Operation *consumer) {
  return as(global, replicated(global), consumer);
}
