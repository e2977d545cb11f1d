//===- SplitStages.cpp - from one program to one for each rank of a pipeline -===//
//
// The analyses, one file each in stages/: SegmentStages (the stage of each op), StageTransfers (the
// values that pass from stage to stage), UpdateRoles (the ops behind microbatches, and their
// ranks). The programs are built here.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Structure.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/PhaseCheck.h"
#include "passes/local/stages/StageTransfers.h"
#include "passes/local/stages/UpdateRoles.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/sharding/MeshAxes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_SPLITSTAGESPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// The plan of one segment, the same for all ranks.
struct SegmentSplit {
  SegmentOp segment;
  SegmentStages stages;
  StageTransfers transfers;
  UpdateRoles updates;
  DenseMap<Value, int64_t> messages =
      DenseMap<Value, int64_t>(); ///< the number of each value that ranks send one another

  void numberMessages();
};

/// Numbers the messages in the order in which the segment computes them.
void SegmentSplit::numberMessages() {
  DenseSet<Value> sent;
  for (int64_t stage = 0; stage < transfers.getNumStages(); ++stage)
    for (bool backward : {false, true})
      sent.insert_range(transfers.outOf({stage, backward}));
  for (const UpdateRoles::Round &round : updates.getRounds())
    for (const Exchange &exchange : round.exchanges)
      if (!exchange.isScalar())
        sent.insert(exchange.value);
  segment.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (sent.contains(result))
        messages.try_emplace(result, static_cast<int64_t>(messages.size()));
  });
}

/// Writes the segment of one rank.
class RankSegment {
public:
  RankSegment(const SegmentSplit &plan, StringAttr axis, int64_t rank, int64_t ranks,
              OpBuilder &builder)
      : plan(plan), axis(axis), rank(rank), ranks(ranks), builder(builder) {}

  void build() {
    const int64_t count = plan.transfers.getNumStages();
    for (int64_t stage = rank; stage < count; stage += ranks)
      buildPart({stage, /*backward=*/false});
    for (int64_t stage = count - 1; stage >= 0; --stage)
      if (stage % ranks == rank)
        buildPart({stage, /*backward=*/true});
    for (const UpdateRoles::Round &round : plan.updates.getRounds()) {
      for (Operation *op : round.ops)
        if (plan.updates.computes(rank, op))
          clone(op);
      exchange(round.exchanges);
    }
  }

private:
  ArrayAttr over() const { return builder.getStrArrayAttr({axis.getValue()}); }

  /// Clones `op`, and before it the operands that may be anywhere.
  Operation *clone(Operation *op) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand)) {
        assert(plan.stages.of(operand.getDefiningOp()).kind == StagePlace::anywhere &&
               "a value of another rank is received before it is used");
        clone(operand.getDefiningOp());
      }
    return builder.clone(*op, mapping);
  }

  /// An op may be computed by another stage than that of its structure, where its operands are.
  /// Passes that see the program of this rank alone, and kernels that join ops, keep it there.
  static void moveInto(StagePart part, Operation *op) {
    Structure of = getStructure(op);
    if (op->hasTrait<OpTrait::ConstantLike>() || of.stage == part.stage)
      return;
    of.stage = part.stage;
    setStructure(op, of);
  }

  IntegerAttr messageOf(Value value) const {
    return builder.getI64IntegerAttr(plan.messages.lookup(value));
  }
  void send(Value value, int64_t offset, bool inRing) {
    SendOp::create(builder, value.getLoc(), mapping.lookup(value), offset, inRing, over(),
                   messageOf(value));
  }
  void receive(Value value, int64_t offset, bool inRing) {
    mapping.map(value, ReceiveOp::create(builder, value.getLoc(), value.getType(), offset, inRing,
                                         over(), messageOf(value)));
  }

  /// Receives the values that the previous part in this direction sends, passes on those that later
  /// parts need, and computes the ops of `part`, sending their results as soon as they are
  /// computed.
  void buildPart(StagePart part) {
    const Structure structure{nullptr, part.backward ? Direction::backward : Direction::forward,
                              part.stage};
    auto scope = [&](Value value) {
      Structure of = structure;
      of.unit = getStructure(value.getDefiningOp()).unit;
      return of;
    };
    const int64_t next = part.backward ? -1 : 1; // stage, and rank
    // With several stages a rank, the stage after that of the last rank is the first rank's.
    const bool inRing = plan.transfers.getNumStages() > ranks;
    for (Value value : plan.transfers.into(part)) {
      StructureScope scoped(builder, scope(value));
      receive(value, -next, inRing);
    }
    llvm::SmallDenseSet<Value> sent;
    ArrayRef<Value> out = plan.transfers.outOf(part);
    auto sendOnce = [&](Value value) {
      if (!llvm::is_contained(out, value) || !sent.insert(value).second)
        return;
      StructureScope scoped(builder, scope(value));
      send(value, next, inRing);
    };
    for (Value value : out)
      if (mapping.contains(value))
        sendOnce(value);
    for (Operation *op : plan.stages.opsOf(part)) {
      moveInto(part, clone(op));
      for (Value result : op->getResults())
        sendOnce(result);
    }
  }

  /// Scalars of one type are one all-reduce, to which the rank that has a scalar adds it and others
  /// add nothing: exact, and the same bits everywhere. Tensors are sent.
  void exchange(ArrayRef<Exchange> exchanges) {
    StructureScope scope(builder, Structure().in(Direction::update));
    llvm::MapVector<Type, SmallVector<const Exchange *>> scalars;
    for (const Exchange &exchange : exchanges) {
      if (exchange.isScalar()) {
        scalars[exchange.value.getType()].push_back(&exchange);
        continue;
      }
      Value value = exchange.value;
      if (exchange.from == rank)
        for (unsigned to : exchange.to.set_bits())
          send(value, static_cast<int64_t>(to) - rank, /*inRing=*/false);
      if (exchange.to.test(static_cast<unsigned>(rank)))
        receive(value, exchange.from - rank, /*inRing=*/false);
    }
    for (auto &[type, members] : scalars) {
      SmallVector<Value> own;
      for (const Exchange *exchange : members) {
        Location loc = exchange->value.getLoc();
        own.push_back(exchange->from == rank
                          ? mapping.lookup(exchange->value)
                          : arith::ConstantOp::create(builder, loc,
                                                      cast<TypedAttr>(builder.getZeroAttr(type)))
                                .getResult());
      }
      Location loc = members.front()->value.getLoc();
      auto scalar = cast<RankedTensorType>(type);
      if (members.size() == 1) {
        mapping.map(
            members.front()->value,
            AllReduceOp::create(builder, loc, ReduceKind::sum, own.front(), over()).getResult());
        continue;
      }
      Value flat =
          FlattenOp::create(builder, loc, scalar.clone({static_cast<int64_t>(own.size())}), own);
      Value sum = AllReduceOp::create(builder, loc, ReduceKind::sum, flat, over());
      for (auto [index, exchange] : llvm::enumerate(members))
        mapping.map(exchange->value, ViewOp::create(builder, exchange->value.getLoc(), type, sum,
                                                    static_cast<int64_t>(index))
                                         .getResult());
    }
  }

  const SegmentSplit &plan;
  StringAttr axis;
  int64_t rank, ranks;
  OpBuilder &builder;
  IRMapping mapping; ///< from the values of the whole segment to those of this rank
};

struct SplitStages : fsdp::impl::SplitStagesPassBase<SplitStages> {
  using Base::Base;

  void runOnOperation() override;
};

} // namespace

/// The ranks that access each storage in a part of a microbatch.
static llvm::StringMap<RankSet> findOwners(ModuleOp module, ArrayRef<SegmentOp> segments,
                                           ArrayRef<SegmentStages> stages, int64_t ranks) {
  llvm::StringMap<RankSet> owners;
  for (auto storage : module.getOps<StorageOp>())
    owners[storage.getSymName()] = RankSet(static_cast<unsigned>(ranks));
  for (auto [segment, placed] : llvm::zip_equal(segments, stages))
    for (auto load : SegmentOp(segment).getOps<LoadOp>())
      if (const StagePlace place = placed.of(load); place.kind == StagePlace::part)
        owners[load.getStorage()].set(static_cast<unsigned>(place.of.stage % ranks));
  return owners;
}

/// Fails unless each op of `segment` has one of `count` stages, and an op of forward no earlier one
/// than its operands: values of forward pass to later stages.
static LogicalResult verifyStages(SegmentOp segment, int64_t count) {
  for (Operation &op : segment.getBody().front()) {
    const Structure structure = getStructure(&op);
    if (structure.stage >= count)
      return op.emitOpError() << "has stage " << structure.stage << ", expected stages below "
                              << count << ", as many as 'fsdp-assign-stages' has made";
    if (!structure.unit || structure.direction != Direction::forward)
      continue;
    for (Value operand : op.getOperands()) {
      const Structure made = getStructure(operand.getDefiningOp());
      if (made.direction != Direction::forward || made.stage <= structure.stage)
        continue;
      InFlightDiagnostic diagnostic =
          op.emitOpError() << "of forward has stage " << structure.stage << ", expected stage "
                           << made.stage << " or a later one, as an operand has stage "
                           << made.stage << "; number stages in the order of forward";
      diagnostic.attachNote(operand.getLoc()) << "the operand";
      return diagnostic;
    }
  }
  return success();
}

/// Warns about stages in which a training step computes nothing.
static void warnOfEmptyStages(ModuleOp module, ArrayRef<SegmentOp> segments,
                              ArrayRef<SegmentStages> stages, int64_t count) {
  for (int64_t stage = 0; stage < count; ++stage) {
    const bool isEmpty = llvm::all_of(llvm::zip_equal(segments, stages), [&](auto pair) {
      auto [segment, placed] = pair;
      return SegmentOp(segment).getKind() != StepKind::train ||
             (placed.opsOf({stage, /*backward=*/false}).empty() &&
              placed.opsOf({stage, /*backward=*/true}).empty());
    });
    if (isEmpty)
      module.emitWarning() << "stage " << stage << " of " << count
                           << " computes nothing in training: its rank passes values on; give it "
                              "another unit, or the mesh fewer ranks along the axis of the stages";
  }
}

void SplitStages::runOnOperation() {
  ModuleOp module = getOperation();
  StringAttr axis = findPipelineAxis(module);
  if (!axis)
    return;
  if (failed(requirePhase(module, Phase::local, "divides the local phase into stages")))
    return signalPassFailure();
  auto programs = module.getOps<ProgramOp>();
  if (!llvm::hasSingleElement(programs)) // of roles already
    return;
  ProgramOp whole = *programs.begin();
  const int64_t ranks = getMesh(module).getAxisSize(axis);
  SmallVector<SegmentOp> segments(whole.getOps<SegmentOp>());
  CarriedStages carried;
  SmallVector<SegmentStages, 0> stages;
  auto assigned = module->getAttrOfType<IntegerAttr>(kStagesAttrName);
  const int64_t numStages = assigned ? assigned.getInt() : 0;
  if (numStages < ranks || numStages > ranks * schedule::PipelineSchedule::kMaxChunks) {
    module.emitError() << "the module has " << numStages << " stages, expected " << ranks << " to "
                       << ranks * schedule::PipelineSchedule::kMaxChunks
                       << ", at least one for each rank along axis '" << axis.getValue()
                       << "'; run 'fsdp-assign-stages' before differentiation";
    return signalPassFailure();
  }
  for (SegmentOp segment : segments) {
    if (failed(verifyStages(segment, numStages)))
      return signalPassFailure();
    FailureOr<SegmentStages> found = SegmentStages::get(segment, carried);
    if (failed(found))
      return signalPassFailure();
    stages.push_back(std::move(*found));
  }
  warnOfEmptyStages(module, segments, stages, numStages);
  const llvm::StringMap<RankSet> owners = findOwners(module, segments, stages, ranks);
  SmallVector<std::unique_ptr<SegmentSplit>> plans;
  for (auto [segment, found] : llvm::zip_equal(segments, stages)) {
    StageTransfers transfers = StageTransfers::get(found, segment, ranks, numStages);
    UpdateRoles updates(found, ranks, carried, owners,
                        [&](Value value) { return transfers.holdersOf(value); });
    plans.push_back(std::make_unique<SegmentSplit>(
        SegmentSplit{segment, found, std::move(transfers), std::move(updates)}));
    plans.back()->numberMessages();
  }

  OpBuilder builder(whole);
  SymbolTable symbols(module);
  SmallVector<ProgramOp> roles;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    builder.setInsertionPoint(whole);
    auto role = ProgramOp::create(
        builder, whole.getLoc(), axis.str() + std::to_string(rank),
        builder.getDictionaryAttr(builder.getNamedAttr(axis, builder.getI64IntegerAttr(rank))),
        IntegerAttr());
    symbols.insert(role, builder.getInsertionPoint());
    roles.push_back(role);
    builder.createBlock(&role.getBody());
    for (auto walk : whole.getOps<WalkOp>())
      builder.clone(*walk);
    for (const std::unique_ptr<SegmentSplit> &plan : plans) {
      builder.setInsertionPointToEnd(&role.getBody().front());
      SegmentOp old = plan->segment;
      auto segment = SegmentOp::create(builder, old.getLoc(), old.getSymName(), old.getKind(),
                                       old.getAsync(), old.getDrain(), old.getNext());
      builder.createBlock(&segment.getBody());
      RankSegment(*plan, axis, rank, ranks, builder).build();
    }
  }
  for (auto storage : module.getOps<StorageOp>()) {
    const RankSet &owned = owners.find(storage.getSymName())->second;
    if (owned.none() || owned.all())
      continue;
    SmallVector<Attribute> names;
    for (unsigned rank : owned.set_bits())
      names.push_back(FlatSymbolRefAttr::get(roles[rank].getSymNameAttr()));
    storage.setRolesAttr(builder.getArrayAttr(names));
  }
  whole.erase();
  module->removeDiscardableAttr(kStagesAttrName);
}
