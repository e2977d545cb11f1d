//===- PipelineMicrobatches.cpp - microbatches in the order of a schedule -===//
//
// A rank of a pipeline whose microbatches followed one another would wait for the other ranks most
// of the time. Here all microbatches of a step become one segment, in which forward of one and
// backward of another alternate as the schedule says (passes/schedule/PipelineOrder.h).
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/Structure.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/local/stages/SegmentStages.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/sharding/MeshAxes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PIPELINEMICROBATCHESPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;
using Action = schedule::PipelineAction;

namespace {

/// The segment that a microbatch copies, or the one whose ops follow all microbatches.
struct Source {
  SegmentOp segment;
  SegmentStages stages;
  /// Ops of backward that no other stage and no cotangent of this one depends on.
  DenseSet<Operation *> ofWeights = {};
};

/// The step of one rank: a segment for each microbatch, and the ops after the last one.
struct Step {
  StringAttr name;
  std::vector<const Source *> microbatches;
  const Source *end;
  ArrayAttr next; ///< of the last segment
};

/// Writes the segment of a step.
class StepWriter {
public:
  /// `kept`: the storages that are gathered once a step.
  StepWriter(const Step &step, const DenseSet<StringAttr> &kept, OpBuilder &builder)
      : step(step), kept(kept), builder(builder), mappings(step.microbatches.size()) {}

  void write(ArrayRef<Action> actions) {
    for (const Action &action : actions)
      for (Operation *op : opsOf(action))
        if (isOf(op, action))
          clone(op, action.microbatch);
    const auto count = static_cast<int64_t>(step.microbatches.size());
    for (int64_t microbatch = 0; microbatch < count; ++microbatch)
      for (Operation *op : step.microbatches[microbatch]->stages.getUpdates())
        clone(op, microbatch);
    if (step.end == step.microbatches.back())
      return;
    // Values that do not depend on samples may be computed again by the stages, to be reported.
    const SegmentStages &end = step.end->stages;
    auto writePart = [&](StagePart part) {
      for (Operation *op : end.opsOf(part))
        clone(op, count);
    };
    for (int64_t stage = 0; stage < end.getNumStages(); ++stage)
      writePart({stage, /*backward=*/false});
    for (int64_t stage = end.getNumStages() - 1; stage >= 0; --stage)
      writePart({stage, /*backward=*/true});
    for (Operation *op : end.getUpdates())
      clone(op, count);
  }

private:
  const Source &sourceOf(const Action &action) const {
    return *step.microbatches[static_cast<size_t>(action.microbatch)];
  }
  ArrayRef<Operation *> opsOf(const Action &action) const {
    return sourceOf(action).stages.opsOf({action.stage, action.kind != Action::Kind::forward});
  }
  bool isOf(Operation *op, const Action &action) const {
    return sourceOf(action).ofWeights.contains(op) == (action.kind == Action::Kind::weightGradient);
  }

  /// Clones `op`, and before it the operands that may be computed anywhere; a tensor that is
  /// carried from one microbatch to the next becomes a value.
  void clone(Operation *op, int64_t microbatch) {
    IRMapping &mapping = static_cast<size_t>(microbatch) < mappings.size()
                             ? mappings[static_cast<size_t>(microbatch)]
                             : endMapping;
    if (isa<NextMicrobatchOp>(op))
      return;
    if (auto load = dyn_cast<CarryLoadOp>(op))
      if (Value value = carried.lookup(load.getCarriedAttr().getAttr())) {
        mapping.map(load.getResult(), value);
        return;
      }
    // One gather serves all microbatches of a stage.
    Value *gathered = nullptr;
    if (StringAttr storage = storageOf(op); storage && kept.contains(storage)) {
      gathered = &gathers[{storage, {getStructure(op).stage, op->getName().getAsOpaquePointer()}}];
      if (*gathered) {
        mapping.map(op->getResult(0), *gathered);
        return;
      }
    }
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        clone(operand.getDefiningOp(), microbatch);
    if (auto store = dyn_cast<CarryStoreOp>(op)) {
      carried[store.getCarriedAttr().getAttr()] = mapping.lookup(store.getOperand());
      return;
    }
    Operation *copy = builder.clone(*op, mapping);
    if (gathered)
      *gathered = copy->getResult(0);
    if (static_cast<size_t>(microbatch) == mappings.size())
      return;
    if (isa<InputOp, MicrobatchSamplesOp, DropoutOp>(copy) && copy->getAttr("microbatches"))
      copy->setAttr("microbatch", builder.getI64IntegerAttr(microbatch));
    if (const Structure structure = getStructure(op);
        mappings.size() > 1 && structure.direction != Direction::update && !isa<InputOp>(op) &&
        !copy->hasTrait<OpTrait::ConstantLike>()) {
      DictionaryAttr &attributes = ofMicrobatches[{op->getRawDictionaryAttrs(), microbatch}];
      if (attributes)
        return copy->setDiscardableAttrs(attributes);
      setStructure(copy, structure.of(microbatch));
      attributes = copy->getRawDictionaryAttrs();
    }
  }

  /// The storage whose parameters `op` gathers, or loads for that; null for other ops.
  static StringAttr storageOf(Operation *op) {
    if (auto load = dyn_cast<LoadOp>(op))
      return getStructure(op).direction == Direction::update ? StringAttr()
                                                             : load.getStorageAttr().getAttr();
    auto symbol =
        dyn_cast_or_null<FlatSymbolRefAttr>(op->getDiscardableAttr(FSDPDialect::gathersAttrName));
    return symbol ? symbol.getAttr() : StringAttr();
  }

  const Step &step;
  const DenseSet<StringAttr> &kept;
  OpBuilder &builder;
  /// By storage, stage and op.
  DenseMap<std::pair<StringAttr, std::pair<int64_t, const void *>>, Value> gathers;
  /// The discardable attributes of copies, by those of the op and the microbatch.
  DenseMap<std::pair<DictionaryAttr, int64_t>, DictionaryAttr> ofMicrobatches;
  std::vector<IRMapping> mappings; ///< of each microbatch
  IRMapping endMapping;
  DenseMap<StringAttr, Value> carried;
};

struct PipelineMicrobatches : fsdp::impl::PipelineMicrobatchesPassBase<PipelineMicrobatches> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult runOnProgram(ProgramOp program, const schedule::PipelineSchedule &kind,
                             StringAttr axis, int64_t ranks);

  DenseSet<StringAttr> kept; ///< storages that are gathered once a step
};

} // namespace

/// Sets the ops of backward of `stage` on which neither its sends nor other uses of its parameters
/// depend: gradients of weights, and their reductions. `early`: the carried tensors on which such
/// sends or uses depend in some segment, so that all segments add to them in time.
static void findWeightGradients(Source &source, int64_t stage, DenseSet<StringRef> &early) {
  ArrayRef<Operation *> ops = source.stages.opsOf({stage, /*backward=*/true});
  DenseSet<Operation *> cotangents;
  DenseSet<Value> parameters;
  auto needs = [&](Operation *op) {
    SmallVector<Operation *> left{op};
    while (!left.empty()) {
      Operation *next = left.pop_back_val();
      if (!next || !cotangents.insert(next).second)
        continue;
      if (auto load = dyn_cast<CarryLoadOp>(next))
        early.insert(load.getCarried());
      for (Value operand : next->getOperands())
        left.push_back(operand.getDefiningOp());
    }
  };
  const bool sends = llvm::any_of(ops, [](Operation *op) { return isa<SendOp>(op); });
  for (Operation *op : ops) {
    const bool isParameter = isa<LoadOp>(op) || op->hasAttr(FSDPDialect::gathersAttrName) ||
                             (isa<ViewOp>(op) && parameters.contains(op->getOperand(0)));
    auto store = dyn_cast<CarryStoreOp>(op);
    if (isParameter)
      parameters.insert(op->result_begin(), op->result_end());
    else if (isa<SendOp, ReceiveOp>(op) || (store && early.contains(store.getCarried())) ||
             (!sends && llvm::any_of(op->getOperands(),
                                     [&](Value value) { return parameters.contains(value); })))
      needs(op);
  }
  for (Operation *op : ops)
    if (cotangents.contains(op))
      source.ofWeights.erase(op);
    else
      source.ofWeights.insert(op);
}

LogicalResult PipelineMicrobatches::runOnProgram(ProgramOp program,
                                                 const schedule::PipelineSchedule &kind,
                                                 StringAttr axis, int64_t ranks) {
  const int64_t rank = cast<IntegerAttr>(program.getRole().get(axis)).getInt();
  CarriedStages carried;
  llvm::MapVector<StringAttr, std::unique_ptr<Source>> sources;
  int64_t numStages = 0;
  for (auto segment : program.getOps<SegmentOp>()) {
    for (Operation &op : segment.getBody().front())
      if (const int64_t stage = getStructure(&op).stage; stage >= ranks * kind.chunks)
        return op.emitOpError() << "has stage " << stage << ", expected stages below "
                                << ranks * kind.chunks << ": --pipeline-schedule=" << schedule
                                << " gives each of " << ranks << " ranks " << kind.chunks
                                << "; name the same schedule here as in 'fsdp-assign-stages'";
    FailureOr<SegmentStages> stages = SegmentStages::get(segment, carried);
    if (failed(stages))
      return failure();
    numStages = std::max(numStages, stages->getNumStages());
    sources[segment.getSymNameAttr()] =
        std::make_unique<Source>(Source{segment, std::move(*stages)});
  }
  if (kind.kind == schedule::PipelineSchedule::Kind::zeroBubble) {
    DenseSet<StringRef> early;
    size_t known = 0;
    do {
      known = early.size();
      for (auto &[name, source] : sources)
        for (int64_t stage = 0; stage < numStages; ++stage)
          findWeightGradients(*source, stage, early);
    } while (early.size() != known);
  }

  DenseMap<StringAttr, StringAttr> firsts; ///< from the first segment of a step to its name
  SmallVector<Step> steps;
  SmallVector<WalkOp> walks(program.getOps<WalkOp>());
  for (WalkOp walk : walks) {
    Step step{walk.getSymNameAttr(), {}, nullptr, {}};
    auto segments = walk.getSegments().getAsRange<FlatSymbolRefAttr>();
    firsts[(*segments.begin()).getAttr()] = walk.getSymNameAttr();
    for (auto [symbol, times] : llvm::zip_equal(segments, walk.getTimes())) {
      step.end = sources[symbol.getAttr()].get();
      step.microbatches.insert(step.microbatches.end(), times, step.end);
    }
    step.microbatches.pop_back();
    step.next = SegmentOp(step.end->segment).getNextAttr();
    steps.push_back(std::move(step));
  }
  if (walks.empty())
    for (auto &[name, source] : sources)
      steps.push_back({name, {source.get()}, source.get(), source->segment.getNextAttr()});

  OpBuilder builder(program.getContext());
  SmallVector<SegmentOp> written;
  for (const Step &step : steps) {
    const auto microbatches = static_cast<int64_t>(step.microbatches.size());
    if (kind.kind == schedule::PipelineSchedule::Kind::interleaved && microbatches % ranks != 0)
      return program.emitError() << "--pipeline-schedule=interleaved:" << kind.chunks << " got "
                                 << microbatches << " microbatches, expected a multiple of the "
                                 << ranks << " ranks along axis '" << axis.getValue()
                                 << "'; give --accumulate such a number";
    schedule::RankOrder order = schedule::orderPipeline(kind, ranks, microbatches)[rank];
    SegmentOp first = step.microbatches.front()->segment;
    if (first.getKind() != StepKind::train)
      llvm::erase_if(order,
                     [](const Action &action) { return action.kind != Action::Kind::forward; });
    builder.setInsertionPointToEnd(&program.getBody().front());
    SmallVector<Attribute> next =
        llvm::map_to_vector(step.next.getAsRange<FlatSymbolRefAttr>(), [&](FlatSymbolRefAttr name) {
          StringAttr known = firsts.lookup(name.getAttr());
          return Attribute(known ? FlatSymbolRefAttr::get(known) : name);
        });
    auto segment =
        SegmentOp::create(builder, first.getLoc(), step.name, first.getKind(), first.getAsync(),
                          first.getDrain(), builder.getArrayAttr(next));
    builder.createBlock(&segment.getBody());
    StepWriter(step, kept, builder).write(order);
    written.push_back(segment);
  }
  for (WalkOp walk : walks)
    walk.erase();
  for (auto &[name, source] : sources) {
    for (Operation &op : source->segment.getBody().front())
      op.dropAllUses();
    source->segment.erase();
  }
  return success();
}

void PipelineMicrobatches::runOnOperation() {
  ModuleOp module = getOperation();
  schedule::PipelineSchedule kind;
  if (std::string fault = schedule::parsePipelineSchedule(schedule, kind); !fault.empty()) {
    module.emitError() << "--pipeline-schedule: " << fault;
    return signalPassFailure();
  }
  StringAttr axis = findPipelineAxis(module);
  SmallVector<ProgramOp> programs(module.getOps<ProgramOp>());
  if (!axis || programs.size() < 2)
    return;
  const int64_t ranks = getMesh(module).getAxisSize(axis);
  SymbolTable symbols(module);
  kept.clear();
  for (auto storage : module.getOps<StorageOp>()) {
    auto first = cast<MemberAttr>(storage.getMembers()[0]);
    PlacementAttr placement =
        symbols.lookup<ParamOp>(first.getParam().getValue()).getPlacementAttr();
    if (placement && placement.getReshard() == Reshard::never)
      kept.insert(storage.getSymNameAttr());
  }
  for (ProgramOp program : programs)
    if (failed(runOnProgram(program, kind, axis, ranks)))
      return signalPassFailure();
  // Tensors carried from one microbatch to the next are values now.
  DenseSet<StringRef> used;
  module.walk([&](CarryLoadOp load) { used.insert(load.getCarried()); });
  module.walk([&](CarryStoreOp store) { used.insert(store.getCarried()); });
  for (CarriedOp carried : llvm::make_early_inc_range(module.getOps<CarriedOp>()))
    if (!used.contains(carried.getSymName()))
      carried.erase();
}
