//===- Schedule.cpp - from local IR to launches on streams ----------------===//

#include "passes/Passes.h"
#include "passes/PhaseCheck.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/MemoryPlanner.h"
#include "passes/schedule/ProgramOrder.h"
#include "passes/schedule/Waits.h"
#include "passes/scheduled/GroupCasts.h"
#include "passes/scheduled/GroupCollectives.h"
#include "passes/scheduled/GroupUpdates.h"
#include "passes/scheduled/ScheduleProblem.h"
#include "passes/scheduled/SegmentPlan.h"

#include "mlir/IR/IRMapping.h"
#include <map>

namespace mlir::fsdp {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

static int getStreamIndex(StringRef stream) {
  return static_cast<int>(llvm::find(streams::all, stream) - streams::all);
}

/// The launches of `plan` as plain data, in the order of the computation and without waits.
static schedule::Segment getProblem(const SegmentPlan &plan) {
  DenseMap<Type, int64_t> sizes; // of elements
  auto access = [&](const BufferView &place) {
    auto [size, isNew] = sizes.try_emplace(place.type.getElementType());
    if (isNew)
      size->second = getElementBytes(place.type);
    const int64_t bytes = size->second, begin = place.offset * bytes;
    return schedule::Access{place.buffer, begin, begin + place.type.getNumElements() * bytes};
  };
  schedule::Segment segment;
  auto ofState = [](StepStateBytes bytes) { // the first of the buffers
    return schedule::Access{0, bytes.begin, bytes.end};
  };
  segment.launches.reserve(plan.launches.size());
  for (const PlannedLaunch &planned : plan.launches) {
    schedule::Launch &launch = segment.launches.emplace_back();
    launch.name = planned.name;
    launch.stream = getStreamIndex(planned.stream);
    launch.reads.reserve(planned.ins.size() + planned.state.reads.size());
    launch.writes.reserve(planned.outs.size() + planned.state.writes.size());
    for (const BufferView &place : planned.ins)
      launch.reads.push_back(access(place));
    for (const BufferView &place : planned.outs)
      launch.writes.push_back(access(place));
    for (StepStateBytes bytes : planned.state.reads)
      launch.reads.push_back(ofState(bytes));
    for (StepStateBytes bytes : planned.state.writes)
      launch.writes.push_back(ofState(bytes));
    // An update notes the first parameter whose gradient is not finite.
    if (isa<OptimizerStepOp>(planned.body.back()))
      for (StepStateBytes bytes : planned.state.writes)
        launch.minima.push_back(ofState(bytes));
  }
  return segment;
}

namespace {

/// Adds the messages of `plan` to `groups`, by direction and part, and the parts: those of one
/// direction, stage and microbatch.
void addMessages(const SegmentPlan &plan, schedule::IssueGroups &groups) {
  using Part = std::tuple<Direction, int64_t, int64_t>;
  auto partOf = [](const Structure &of) { return Part(of.direction, of.stage, of.microbatch); };
  std::map<Direction, std::pair<Part, std::vector<std::vector<int>>>> sends;
  std::optional<Part> computed;
  bool isPipeline = false;
  for (auto [index, launch] : llvm::enumerate(plan.launches)) {
    const Part part = partOf(launch.structure);
    const auto number = static_cast<int>(index);
    if (isa<ReceiveOp>(launch.body.back()))
      groups.receives.push_back(number);
    isPipeline |= launch.structure.stage > 0 || launch.structure.microbatch >= 0;
    if (launch.stream == streams::compute && computed != part) {
      computed = part;
      groups.partBegins.push_back(number);
    }
    if (!isa<SendOp>(launch.body.back()))
      continue;
    auto &[last, parts] = sends[launch.structure.direction];
    if (parts.empty() || last != part)
      parts.emplace_back();
    last = part;
    parts.back().push_back(number);
  }
  for (auto &[direction, sent] : sends)
    groups.sends.push_back(std::move(sent.second));
  if (!isPipeline)
    groups.partBegins.clear();
}

/// Inputs, deferred updates, the gathers and gradients of each unit, and messages.
schedule::IssueGroups getIssueGroups(const SegmentPlan &plan) {
  schedule::IssueGroups groups;
  groups.compute = getStreamIndex(streams::compute);
  addMessages(plan, groups);
  StringAttr gatheredUnit, reducedUnit;
  llvm::StringSet<> gatheredStorages;
  bool partial = false;
  DenseMap<int, bool> seen; // buffers that kernels write, and whether they are in a group
  for (auto [index, launch] : llvm::enumerate(plan.launches)) {
    int number = static_cast<int>(index);
    StringAttr unit = launch.structure.unit;
    if (launch.stream == streams::input)
      groups.early.push_back(number);
    if (launch.stream == streams::update)
      groups.updates.push_back(number);
    if (launch.stream == streams::compute)
      for (const BufferView &place : launch.outs)
        seen.try_emplace(place.buffer, false);
    if (launch.stream == streams::gather) {
      // Adjacent gathers of one unit form one group; a repeated storage is another use. The result
      // of a cast before a gather holds no storage.
      SmallVector<StringRef> storages;
      for (const BufferView &place : launch.ins)
        if (StringRef storage = plan.buffers[place.buffer].storage; !storage.empty())
          storages.push_back(storage);
      bool again = llvm::any_of(
          storages, [&](StringRef storage) { return gatheredStorages.contains(storage); });
      // Launches do not wait for a part that is gathered first and kept.
      if (groups.gathers.empty() || unit != gatheredUnit || again || partial) {
        groups.gathers.emplace_back();
        gatheredStorages.clear();
      }
      gatheredUnit = unit;
      partial = isa<AllGatherOp>(launch.body.back()) &&
                plan.buffers[launch.outs.front().buffer].storage.empty();
      for (StringRef storage : storages)
        gatheredStorages.insert(storage);
      groups.gathers.back().push_back(number);
      if (partial)
        groups.parts.push_back(number);
    }
    // Scalars (losses, norms) are too small to justify a wait; the result of a collective is a
    // shard.
    if (launch.stream != streams::reduce || launch.ins.front().type.getRank() == 0)
      continue;
    SmallVector<int> gradients; // of which no earlier launch is the reduction
    for (const BufferView &place : launch.ins)
      if (auto buffer = seen.find(place.buffer); buffer != seen.end() && !buffer->second) {
        buffer->second = true;
        gradients.push_back(place.buffer);
      }
    if (gradients.empty())
      continue;
    // A launch that reduces no gradient is a separate group.
    if (!launch.body.back()->getDiscardableAttr(FSDPDialect::reducesAttrName))
      unit = nullptr;
    if (groups.gradients.empty() || !unit || unit != reducedUnit)
      groups.gradients.emplace_back();
    reducedUnit = unit;
    llvm::append_range(groups.gradients.back(), gradients);
  }
  return groups;
}

BufferOp create(OpBuilder &builder, const PlannedBuffer &planned, UnitAttr persistent) {
  MLIRContext *context = builder.getContext();
  bool holds = !planned.storage.empty();
  return BufferOp::create(
      builder, planned.location, BufferType::get(context, planned.type),
      builder.getStringAttr(planned.name), persistent,
      planned.zeroed ? builder.getUnitAttr() : UnitAttr(),
      holds ? FlatSymbolRefAttr::get(context, planned.storage) : FlatSymbolRefAttr(),
      holds ? builder.getStringAttr(planned.what) : StringAttr(), IntegerAttr());
}

/// Writes a plan into its segment in place of the local IR.
class Emitter {
public:
  Emitter(SegmentOp segment, const SegmentPlan &plan, ArrayRef<Value> persistent)
      : block(segment.getBody().front()), plan(plan), persistent(persistent),
        builder(segment.getContext()) {}

  void emit(const schedule::Segment &ordered, ArrayRef<int> order) {
    SmallVector<Operation *> old = llvm::to_vector(llvm::make_pointer_range(block));
    builder.setInsertionPointToEnd(&block);
    buffers.assign(plan.buffers.size(), Value());
    llvm::copy(persistent, buffers.begin());
    for (int number : order)
      for (const SmallVector<BufferView> *places :
           {&plan.launches[number].ins, &plan.launches[number].outs})
        for (const BufferView &place : *places)
          declare(place.buffer);
    // A view has the name of its contents: a parameter, or its gradient.
    for (int number : order) {
      const PlannedLaunch &launch = plan.launches[number];
      for (auto [place, value] : llvm::zip_equal(launch.ins, launch.values))
        view(place, value.getLoc());
      for (auto [place, value] : llvm::zip_equal(launch.outs, launch.results))
        view(place, value.getLoc());
    }
    SmallVector<Value> done;
    for (auto [launch, number] : llvm::zip_equal(ordered.launches, order)) {
      SmallVector<Value> waits;
      for (int wait : launch.waits)
        waits.push_back(done[wait]);
      done.push_back(emit(plan.launches[number], waits));
    }
    // Erases ops that are in no launch now. Copies of inputs precede the inputs that they copy.
    llvm::erase_if(old, [&](Operation *op) { return op->getBlock() != &block; });
    for (Operation *op : old)
      op->dropAllReferences();
    for (Operation *op : old)
      op->erase();
  }

private:
  void declare(int buffer) {
    if (buffers[buffer])
      return;
    const PlannedBuffer &planned = plan.buffers[buffer];
    buffers[buffer] = create(builder, planned, UnitAttr());
  }

  Value view(const BufferView &place, Location location) {
    Value buffer = buffers[place.buffer];
    if (place.offset == 0 && place.type == plan.buffers[place.buffer].type)
      return buffer;
    Value &value = views[{{place.buffer, place.offset}, place.type}];
    if (!value)
      value =
          SubviewOp::create(builder, location, BufferType::get(builder.getContext(), place.type),
                            buffer, builder.getI64IntegerAttr(place.offset));
    return value;
  }

  Value emit(const PlannedLaunch &planned, ArrayRef<Value> waits) {
    SmallVector<Value> ins, outs;
    for (const BufferView &place : planned.ins)
      ins.push_back(view(place, planned.location));
    for (const BufferView &place : planned.outs)
      outs.push_back(view(place, planned.location));
    Value state = planned.state.isNone() ? Value() : persistent.front();
    StringAttr &stream = streamNames[planned.stream];
    if (!stream)
      stream = builder.getStringAttr(planned.stream);
    auto launch =
        LaunchOp::create(builder, planned.location, timepoint, builder.getStringAttr(planned.name),
                         stream, planned.structure.getAttr(builder.getContext()), waits,
                         /*records=*/ValueRange(), ins, outs, state);
    OpBuilder::InsertionGuard guard(builder);
    Block *body = builder.createBlock(&launch.getBody());
    IRMapping mapping;
    for (Value value : planned.values)
      mapping.map(value, body->addArgument(value.getType(), planned.location));
    for (Operation *op : planned.body) {
      if (isa<arith::ConstantOp>(op)) { // others may use it too
        removeStructure(builder.clone(*op, mapping));
        continue;
      }
      // A launch is the only one of its ops, whose other users are in launches of their own.
      op->moveBefore(body, body->end());
      for (OpOperand &operand : op->getOpOperands())
        operand.set(mapping.lookup(operand.get()));
      removeStructure(op);
    }
    SmallVector<Value> results;
    for (Value result : planned.results)
      results.push_back(mapping.lookupOrDefault(result));
    fsdp::YieldOp::create(builder, planned.location, results);
    return launch.getDone();
  }

  Block &block;
  const SegmentPlan &plan;
  ArrayRef<Value> persistent;
  OpBuilder builder;
  Type timepoint = TimepointType::get(builder.getContext());
  DenseMap<StringRef, StringAttr> streamNames;
  SmallVector<Value> buffers;
  DenseMap<std::pair<std::pair<int, int64_t>, Type>, Value> views;
};

struct Schedule : fsdp::impl::SchedulePassBase<Schedule> {
  using SchedulePassBase::SchedulePassBase;

  /// Set if another order is possible with a larger `prefetch`, if anyone asks.
  bool *isLimited = nullptr;

  LogicalResult runOnProgram(ProgramOp program, const StagedInputs &staged,
                             const std::vector<PlannedBuffer> &planned, const SymbolTable &symbols,
                             bool &joinsCasts) {
    bool joined = false;
    SmallVector<Value> persistent;
    OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
    for (const PlannedBuffer &buffer : planned)
      persistent.push_back(create(builder, buffer, builder.getUnitAttr()));
    for (auto segment : program.getOps<SegmentOp>()) {
      FailureOr<SegmentPlan> plan = planSegment(segment, planned, staged, symbols);
      if (failed(plan))
        return failure();
      if (group)
        groupCollectives(*plan);
      groupUpdates(*plan);
      schedule::Segment problem = getProblem(*plan);
      std::vector<int> order =
          schedule::orderIssue(problem, getIssueGroups(*plan), prefetch.value, isLimited);
      if (std::optional<schedule::ReorderedAccess> reordered =
              schedule::findReordered(problem.launches, order))
        return segment.emitError()
               << "the compiler issues '" << problem.launches[reordered->later].name << "' before '"
               << problem.launches[reordered->earlier].name
               << "', which precedes it in the program and accesses the same bytes of '"
               << plan->buffers[reordered->buffer].name
               << "'; this is a fault of the compiler: report it with the model and its options";
      if (joinsCasts)
        joined |= groupCasts(*plan, planned.size(), problem, order);
      schedule::materializeWaits(problem);
      schedule::elideImpliedWaits(problem);
      Emitter(segment, *plan, persistent).emit(problem, order);
    }
    joinsCasts = joined;
    return success();
  }

  /// Schedules `module`. `joinsCasts`: with casts of several units in one launch where possible;
  /// afterwards, whether there is such a launch.
  LogicalResult scheduleModule(ModuleOp module, bool &joinsCasts) {
    SymbolTable symbols(module);
    // The buffers that a role keeps depend on the accesses of others: they are planned before the
    // first role is rewritten.
    SmallVector<std::tuple<ProgramOp, StagedInputs, std::vector<PlannedBuffer>>> kept;
    for (auto program : module.getOps<ProgramOp>()) {
      StagedInputs staged = findStagedInputs(program);
      std::vector<PlannedBuffer> planned = planPersistent(program, staged);
      kept.emplace_back(program, std::move(staged), std::move(planned));
    }
    bool joined = false;
    for (const auto &[program, staged, planned] : kept) {
      bool joins = joinsCasts;
      if (failed(runOnProgram(program, staged, planned, symbols, joins)))
        return failure();
      joined |= joins;
    }
    joinsCasts = joined;
    // Carried tensors are buffers from here on.
    for (CarriedOp carried : llvm::make_early_inc_range(module.getOps<CarriedOp>()))
      carried.erase();
    setPhase(module, Phase::scheduled);
    return success();
  }

  /// True if a program of `module` needs a larger arena than that of `other`.
  static bool needsMore(ModuleOp module, ModuleOp other) {
    const ScheduleProblem one(module), two(other);
    return llvm::any_of(llvm::zip_equal(one.problem.roles, two.problem.roles), [](auto roles) {
      return schedule::planMemory(std::get<0>(roles)).arena >
             schedule::planMemory(std::get<1>(roles)).arena;
    });
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, Phase::local, "schedules the local phase")) ||
        failed(verifyPhase(module, Phase::local)))
      return signalPassFailure();
    bool joinsCasts = group && hasLoneCasts(module), apart = false;
    OwningOpRef<ModuleOp> other = joinsCasts ? module.clone() : nullptr;
    if (failed(scheduleModule(module, joinsCasts)))
      return signalPassFailure();
    if (!joinsCasts)
      return;
    // A launch less is not worth memory: where blocks fit less well, casts stay apart.
    if (failed(scheduleModule(*other, apart)))
      return signalPassFailure();
    if (needsMore(module, *other))
      module.getBodyRegion().takeBody(other->getBodyRegion());
  }
};

} // namespace

std::unique_ptr<Pass> mlir::fsdp::createSchedulePass(SchedulePassOptions options, bool &isLimited) {
  auto pass = std::make_unique<Schedule>(std::move(options));
  pass->isLimited = &isLimited;
  return pass;
}
