//===- ScheduleProblem.cpp - from scheduled IR to plain data --------------===//

#include "passes/scheduled/ScheduleProblem.h"
#include "dialect/fsdp/Deferred.h"
#include "passes/scheduled/InPlace.h"

#include "dialect/fsdp/Structure.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

int64_t mlir::fsdp::getElementBytes(RankedTensorType type) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  return BufferType::get(type.getContext(), scalar).getSizeInBytes();
}

BufferRange mlir::fsdp::resolveBuffer(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  int64_t begin = 0;
  while (auto subview = buffer.getDefiningOp<SubviewOp>()) {
    begin += static_cast<int64_t>(subview.getOffset()) * getElementBytes(type.getTensor());
    buffer = subview.getBuffer();
  }
  return {cast<BufferOp>(buffer.getDefiningOp()), begin, begin + type.getSizeInBytes()};
}

/// The storage of which all members, or their gradients, stand in `buffer`; null for other buffers.
static StorageOp wholeIn(BufferOp buffer, const SymbolTable &symbols) {
  FlatSymbolRefAttr symbol = buffer.getStorageAttr();
  if (!symbol || buffer.getWhat() == BufferOp::accumulator)
    return nullptr;
  auto storage = symbols.lookup<StorageOp>(symbol.getAttr());
  // Persistent are the parts of a rank, and copies.
  bool isPart = buffer.getPersistent() && storage.getKind() != StorageKind::replicated &&
                buffer.getWhat() != StorageOp::copy;
  return isPart ? StorageOp() : storage;
}

/// The byte ranges of the members of the flat storage that stands whole in `buffer`; empty for
/// other buffers.
static std::vector<std::pair<int64_t, int64_t>> getMembers(BufferOp buffer,
                                                           const SymbolTable &symbols) {
  StorageOp storage = wholeIn(buffer, symbols);
  RankedTensorType type = buffer.getType().getTensor();
  if (!storage || storage.getKind() == StorageKind::dimension || type.getRank() != 1)
    return {};
  int64_t bytes = getElementBytes(type);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (auto member : storage.getMembers().getAsRange<MemberAttr>()) {
    auto param = symbols.lookup<ParamOp>(member.getParam().getAttr());
    int64_t end = member.getOffset() + param.getComputeType().getNumElements();
    ranges.push_back({member.getOffset() * bytes, end * bytes});
  }
  return ranges;
}

/// True where `buffer` is written before the first segment: what storages declare and the step state, by the
/// driver, and what is zeroed.
static bool isFilled(BufferOp buffer) {
  if (isZeroed(buffer))
    return true;
  if (!buffer.getPersistent() || buffer.getStorage())
    return buffer.getWhat() != BufferOp::accumulator;
  return buffer.getType().getTensor() == getStepStateType(buffer.getContext());
}

namespace {

/// Builds one role.
class RoleBuilder {
public:
  RoleBuilder(ScheduleProblem &result, ProgramOp program, ArrayRef<ProgramOp> programs,
              const SymbolTable &symbols)
      : result(result), program(program), programs(programs), symbols(symbols) {}

  void build() {
    role.name = program.getSymName().str();
    role.arena = program.getArena() ? static_cast<int64_t>(*program.getArena()) : -1;
    result.programs.push_back(program);
    result.segments.emplace_back();
    result.buffers.emplace_back();
    result.launches.emplace_back();
    llvm::StringMap<int> segmentIndex;
    for (auto segment : program.getOps<SegmentOp>()) {
      segmentIndex[segment.getSymName()] = static_cast<int>(result.segments.back().size());
      result.segments.back().push_back(segment);
    }
    for (auto buffer : program.getOps<BufferOp>())
      addBuffer(buffer, -1);
    for (auto [index, event] : llvm::enumerate(program.getOps<EventOp>())) {
      eventIndex[event.getTimepoint()] = static_cast<int>(index);
      role.events.push_back(event.getName().str());
    }
    for (auto walk : program.getOps<WalkOp>()) {
      schedule::Walk &added = role.walks.emplace_back();
      added.name = walk.getSymName().str();
      for (auto segment : walk.getSegments().getAsRange<FlatSymbolRefAttr>())
        added.segments.push_back(segmentIndex.lookup(segment.getValue()));
      llvm::append_range(added.times, walk.getTimes());
    }
    for (auto [index, op] : llvm::enumerate(result.segments.back())) {
      schedule::Segment segment;
      segment.name = op.getSymName().str();
      segment.kind = stringifyStepKind(op.getKind()).str();
      segment.joined = !op.getAsync();
      for (auto next : op.getNext().getAsRange<FlatSymbolRefAttr>())
        segment.next.push_back(segmentIndex.lookup(next.getValue()));
      for (auto buffer : op.getOps<BufferOp>())
        addBuffer(buffer, buffer.getPersistent() ? -1 : static_cast<int>(index));
      launchIndex.clear();
      result.launches.back().emplace_back();
      for (auto launch : op.getOps<LaunchOp>()) {
        launchIndex[launch.getDone()] = static_cast<int>(segment.launches.size());
        segment.launches.push_back(translate(launch));
        result.launches.back().back().push_back(launch);
      }
      role.segments.push_back(std::move(segment));
    }
    result.problem.roles.push_back(std::move(role));
  }

private:
  void addBuffer(BufferOp op, int segment) {
    bufferIndex[op] = static_cast<int>(role.buffers.size());
    int64_t offset = op.getOffset() ? static_cast<int64_t>(*op.getOffset()) : -1;
    role.buffers.push_back({op.getName().str(), op.getType().getSizeInBytes(), segment, offset,
                            getMembers(op, symbols), isFilled(op)});
    result.buffers.back().push_back(op);
  }

  schedule::Access access(Value buffer) {
    BufferRange range = resolveBuffer(buffer);
    return {bufferIndex.lookup(range.op), range.begin, range.end};
  }

  schedule::Launch translate(LaunchOp op) {
    schedule::Launch launch;
    launch.name = op.getName().str();
    launch.stream = indexOf(role.streams, op.getStream());
    for (Value wait : op.getWait()) {
      if (wait.getDefiningOp<EventOp>())
        launch.awaits.push_back(eventIndex.lookup(wait));
      else
        launch.waits.push_back(launchIndex.lookup(wait));
    }
    for (Value event : op.getRecords())
      launch.records.push_back(eventIndex.lookup(event));
    for (Value buffer : op.getIns())
      launch.reads.push_back(access(buffer));
    for (Value buffer : op.getOuts())
      launch.writes.push_back(access(buffer));
    for (auto pair : getInPlacePairs(op))
      launch.inPlace.push_back(pair);
    if (Value state = op.getStepState()) {
      launch.reads.push_back(access(state));
      launch.step = op.getBody().getOps<AdvanceOp>().empty() ? schedule::StepUse::reads
                                                             : schedule::StepUse::advances;
      if (writesStepState(op)) {
        launch.inPlace.push_back({static_cast<int>(launch.reads.size()) - 1,
                                  static_cast<int>(launch.writes.size())});
        launch.writes.push_back(access(state));
      }
    }
    for (auto update : op.getBody().getOps<OptimizerStepOp>()) {
      launch.updates = update.getStorage().str();
      if (auto condition = dyn_cast<BlockArgument>(update.getOk()))
        launch.condition = static_cast<int>(condition.getArgNumber());
    }
    for (auto [index, value] : llvm::enumerate(op.getBody().front().getTerminator()->getOperands()))
      if (matchPattern(value, m_Zero()))
        launch.clears.push_back(static_cast<int>(index));
    for (auto collective : op.getBody().getOps<CollectiveOpInterface>())
      if (collective.meets())
        launch.collective = translate(op, collective);
    describe(op, launch);
    return launch;
  }

  /// What `op` is part of, and what it costs.
  static void describe(LaunchOp op, schedule::Launch &launch) {
    const Structure structure = getStructure(op);
    launch.unit = structure.unit ? structure.unit.str() : "";
    launch.direction = stringifyDirection(structure.direction).str();
    for (Operation &body : op.getBody().front().without_terminator()) {
      if (isa<arith::ConstantOp>(body))
        continue;
      launch.kind = body.getName().getStringRef().str();
      if (auto costs = dyn_cast<nn::CostOpInterface>(body))
        launch.cost.flops += costs.getCost().flops;
    }
    for (const schedule::Access &read : launch.reads)
      launch.cost.bytesRead += read.end - read.begin;
    for (const schedule::Access &write : launch.writes)
      launch.cost.bytesWritten += write.end - write.begin;
  }

  schedule::Collective translate(LaunchOp launch, CollectiveOpInterface op) {
    SmallVector<StringRef> axes;
    for (StringAttr axis : op.getAxes())
      axes.push_back(axis.getValue());
    std::string name = (launch.getStream() + " over [" + llvm::join(axes, ", ") + "]").str();
    // The roles that meet here differ only along these axes; others have ranks of their own.
    std::vector<int> members;
    for (auto [index, other] : llvm::enumerate(programs))
      if (coordinatesBeside(axes, other) == coordinatesBeside(axes, program))
        members.push_back(static_cast<int>(index));
    if (members.size() < programs.size())
      name += " of " + ProgramOp(programs[members.front()]).getSymName().str();
    auto &communicators = result.problem.communicators;
    auto found = llvm::find_if(communicators, [&](auto &other) { return other.name == name; });
    if (found == communicators.end())
      found = communicators.insert(communicators.end(), {name, members});
    auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    schedule::Collective collective{static_cast<int>(found - communicators.begin()),
                                    op->getName().stripDialect().str(), op.getBytes()};
    llvm::raw_string_ostream(collective.type) << operand.getElementType();
    collective.given = operand.getNumElements();
    collective.received = result.getNumElements();
    collective.arguments = op.getArguments();
    return collective;
  }

  /// The coordinates of the role of `program` on all axes but `axes`.
  static SmallVector<NamedAttribute> coordinatesBeside(ArrayRef<StringRef> axes,
                                                       ProgramOp program) {
    SmallVector<NamedAttribute> coordinates;
    for (NamedAttribute coordinate : program.getRole())
      if (!llvm::is_contained(axes, coordinate.getName().getValue()))
        coordinates.push_back(coordinate);
    return coordinates;
  }

  static bool writesStepState(LaunchOp launch) {
    return llvm::any_of(launch.getBody().getOps<MemoryEffectOpInterface>(), [](auto op) {
      SmallVector<MemoryEffects::EffectInstance> effects;
      op.getEffects(effects);
      return llvm::any_of(effects, [](const MemoryEffects::EffectInstance &effect) {
        return isa<MemoryEffects::Write>(effect.getEffect()) &&
               isa<StepStateResource>(effect.getResource());
      });
    });
  }

  static int indexOf(std::vector<std::string> &names, StringRef name) {
    auto found = llvm::find(names, name.str());
    if (found == names.end())
      found = names.insert(names.end(), name.str());
    return static_cast<int>(found - names.begin());
  }

  ScheduleProblem &result;
  ProgramOp program;
  ArrayRef<ProgramOp> programs; ///< of all roles
  const SymbolTable &symbols;   ///< of the module
  schedule::Role role;
  DenseMap<Operation *, int> bufferIndex;
  DenseMap<Value, int> launchIndex, eventIndex;
};

} // namespace

ScheduleProblem::ScheduleProblem(ModuleOp module) {
  auto programs = llvm::to_vector(module.getOps<ProgramOp>());
  SymbolTable symbols(module);
  for (ProgramOp program : programs)
    RoleBuilder(*this, program, programs, symbols).build();
}

Operation *ScheduleProblem::getOperation(const schedule::End &end) const {
  if (end.launch >= 0)
    return launches[end.role][end.segment][end.launch];
  if (end.buffer >= 0)
    return buffers[end.role][end.buffer];
  if (end.segment >= 0)
    return segments[end.role][end.segment];
  return programs[end.role];
}
