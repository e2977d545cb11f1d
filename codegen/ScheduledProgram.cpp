//===- ScheduledProgram.cpp -----------------------------------------------===//

#include "codegen/ScheduledProgram.h"

#include "codegen/Names.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/StepStateAccess.h"
#include "dialect/fsdp/TokenSource.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

Operation *mlir::fsdp::onlyOp(LaunchOp launch) {
  Operation *only = nullptr;
  for (Operation &op : launch.getBody().front().without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    if (only)
      return nullptr;
    only = &op;
  }
  return only;
}

int ScheduledProgram::events() const {
  int most = 0;
  for (const Timeline &timeline : timelines)
    most = std::max(most, timeline.events);
  return most;
}

ArenaSpan ScheduledProgram::spanOf(Value value) {
  auto type = cast<BufferType>(value.getType());
  if (auto subview = value.getDefiningOp<SubviewOp>()) {
    int64_t count = subview.getBuffer().getType().getTensor().getNumElements();
    int64_t whole = subview.getBuffer().getType().getSizeInBytes();
    int64_t elementBytes = count ? whole / count : 0;
    return {spanOf(subview.getBuffer()).offset +
                static_cast<int64_t>(subview.getOffset()) * elementBytes,
            type.getSizeInBytes(), type.getTensor()};
  }
  auto buffer = value.getDefiningOp<BufferOp>();
  return {static_cast<int64_t>(*buffer.getOffset()), type.getSizeInBytes(), type.getTensor()};
}

int64_t ScheduledProgram::alignmentOf(Value value) {
  return std::gcd(spanOf(value).offset, int64_t(256));
}

std::string ScheduledProgram::communicatorName(const CommunicatorKey &key) const {
  auto joined = [&](const CommunicatorKey &key) {
    std::string name;
    for (const std::string &axis : spellAxes(mesh, getAxisNames(key.over)))
      name += axis + "_";
    name += key.stream.getValue();
    if (std::abs(key.offset) > 1)
      name += "_by_" + std::to_string(std::abs(key.offset));
    return name + (key.inRing ? "_ring" : "");
  };
  std::string name = joined(key);
  // Axes 'a' and 'b' with stream 'c_d' join to the same name as axis 'a' with stream 'b_c_d'.
  int number = 1;
  for (const auto &[other, index] : communicators) {
    if (other == key)
      break;
    number += joined(other) == name;
  }
  return number == 1 ? name : name + "." + std::to_string(number);
}

int ScheduledProgram::communicatorOver(ArrayAttr axes) const {
  for (const auto &[key, index] : communicators)
    if (key.over == axes && key.offset == 0)
      return index;
  return -1;
}

//===----------------------------------------------------------------------===//
// Reading the module
//===----------------------------------------------------------------------===//

/// Numbers the completions that other streams wait for, in issue order, after the events of the
/// program. An event is awaited before the launch records it.
static LogicalResult readTimeline(const llvm::MapVector<Value, int> &programEvents,
                                  Timeline &timeline) {
  llvm::DenseSet<Operation *> awaited;
  auto onOtherStream = [](Operation *producer, LaunchOp launch) {
    return cast<LaunchOp>(producer).getStreamAttr() != launch.getStreamAttr();
  };
  Block &block = timeline.segment.getBody().front();
  timeline.actions.reserve(llvm::range_size(block.getOps<LaunchOp>()));
  for (Operation &op : block) {
    if (isa<BufferOp, SubviewOp>(op))
      continue;
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch)
      return op.emitOpError() << "is in a scheduled segment, expected buffers, subviews and "
                                 "launches; run fsdp-schedule";
    for (Value wait : launch.getWait())
      if (auto producer = wait.getDefiningOp<LaunchOp>();
          producer && onOtherStream(producer, launch))
        awaited.insert(producer);
    timeline.actions.push_back({launch, {}, {}});
  }
  timeline.events = static_cast<int>(programEvents.size());
  llvm::DenseMap<Operation *, int> events;
  events.reserve(awaited.size());
  for (Action &action : timeline.actions) {
    llvm::SmallSetVector<int, 4> waits;
    for (Value wait : action.launch.getWait()) {
      auto ofProgram = programEvents.find(wait);
      if (ofProgram != programEvents.end())
        waits.insert(ofProgram->second);
      else if (auto event = events.find(wait.getDefiningOp());
               event != events.end() && onOtherStream(event->first, action.launch))
        waits.insert(event->second);
    }
    llvm::append_range(action.waits, waits);
    for (Value record : action.launch.getRecords())
      action.records.push_back(programEvents.lookup(record));
    if (awaited.contains(action.launch)) {
      action.records.push_back(timeline.events++);
      timeline.recorders.push_back(action.launch);
      events[action.launch] = action.records.back();
    }
  }
  return success();
}

BufferOp mlir::fsdp::bufferOf(Value part) {
  while (auto subview = part.getDefiningOp<SubviewOp>())
    part = subview.getBuffer();
  return part.getDefiningOp<BufferOp>();
}

/// The number of rows or classes that the integers in `buffer`, or in a copy of it, index; 0 if
/// unknown.
static int64_t indexLimit(Value buffer) {
  for (Operation *user : buffer.getUsers()) {
    auto launch = dyn_cast<LaunchOp>(user);
    if (!launch)
      continue;
    bool copies = isa_and_nonnull<FlattenOp>(onlyOp(launch)) && launch.getIns().size() == 1 &&
                  launch.getIns().front() == buffer &&
                  bufferOf(launch.getOuts().front()).getResult() != buffer;
    if (copies)
      if (int64_t bound = indexLimit(bufferOf(launch.getOuts().front()).getResult()))
        return bound;
    for (auto kernel : launch.getBody().getOps<nn::KernelOpInterface>())
      for (OpOperand &operand : kernel->getOpOperands())
        if (int64_t bound = kernel.getIndexBound(operand.getOperandNumber())) {
          auto argument = dyn_cast<BlockArgument>(operand.get());
          if (argument && launch.getIns()[argument.getArgNumber()] == buffer)
            return bound;
        }
  }
  return 0;
}

static LogicalResult readInput(ScheduledProgram &program, LaunchOp launch, InputOp input) {
  InputEntry &entry = program.inputs[input.getNameAttr()];
  if (!entry.op)
    entry.op = input;
  auto loader = launch->getParentOfType<ProgramOp>();
  if (!entry.own && loader == program.program)
    entry.own = input;
  entry.roles.insert_range(program.roles.ofProgram.find(loader.getSymNameAttr())->second);
  if (entry.op.getType() != input.getType() ||
      entry.op.getGlobalBatchAttr() != input.getGlobalBatchAttr() ||
      entry.op.getSampleDim() != input.getSampleDim() ||
      entry.op.getOverAttr() != input.getOverAttr() ||
      entry.op->getDiscardableAttrDictionary() != input->getDiscardableAttrDictionary())
    return input.emitOpError() << "'" << input.getName() << "' has type " << input.getType()
                               << " here and " << entry.op.getType()
                               << " elsewhere, expected the same batch in every segment";
  const auto parts = input.getMicrobatches().value_or(1);
  if (const auto others = entry.op.getMicrobatches().value_or(1); parts != others)
    return input.emitOpError() << "'" << input.getName() << "' is loaded in " << parts
                               << " microbatches here and in " << others
                               << " elsewhere, expected the same number in every segment";
  for (StringRef source : {tokensAttrName, targetsAttrName})
    if (auto vocabulary = input->getAttrOfType<IntegerAttr>(source))
      entry.limit = vocabulary.getInt();
  if (!launch.getOuts().empty())
    entry.limit = std::max(entry.limit, indexLimit(launch.getOuts().front()));
  return success();
}

/// Numbers the communicator of `launch`, which has collectives.
static LogicalResult numberCommunicator(ScheduledProgram &program, LaunchOp launch) {
  const CommunicatorKey key = CommunicatorKey::of(launch);
  if (!program.communicators.insert({key, static_cast<int>(program.communicators.size())}).second ||
      key.offset == 0)
    return success();
  for (const auto &[other, index] : program.communicators)
    if (other.stream != key.stream && other.matchesApartFromStream(key))
      return launch.emitOpError()
             << "is on stream '" << key.stream.getValue() << "', but another one of the module "
             << (key.sends ? "sends to" : "receives from") << " the rank at offset " << key.offset
             << " on stream '" << other.stream.getValue()
             << "', expected one stream, as peers take these values in one order";
  return success();
}

/// Numbers the streams, communicators and inputs of a launch of any program of the module.
static LogicalResult numberLaunch(ScheduledProgram &program, LaunchOp launch) {
  program.streams.insert({launch.getStreamAttr(), static_cast<int>(program.streams.size())});
  if (!getCollectives(launch).empty() && failed(numberCommunicator(program, launch)))
    return failure();
  for (Operation &op : launch.getBody().front()) {
    if (auto input = dyn_cast<InputOp>(op))
      if (failed(readInput(program, launch, input)))
        return failure();
  }
  return success();
}

static LogicalResult numberLaunches(ScheduledProgram &program) {
  for (ProgramOp each : program.module.getOps<ProgramOp>())
    for (auto segment : each.getBody().front().getOps<SegmentOp>())
      for (auto launch : segment.getBody().front().getOps<LaunchOp>())
        if (failed(numberLaunch(program, launch)))
          return failure();
  return success();
}

/// Takes the streams, communicators and inputs that numberLaunches has found for another program of
/// the module.
static void takeNumbers(ScheduledProgram &program, const ScheduledProgram &first) {
  program.streams = first.streams;
  program.communicators = first.communicators;
  program.inputs = first.inputs;
  for (auto &[name, entry] : program.inputs)
    entry.own = nullptr;
  for (const Timeline &timeline : program.timelines)
    for (const Action &action : timeline.actions)
      for (auto input : LaunchOp(action.launch).getBody().getOps<InputOp>())
        if (InputEntry &entry = program.inputs[input.getNameAttr()]; !entry.own)
          entry.own = input;
}

static LogicalResult readLaunch(ScheduledProgram &program, Timeline &timeline, LaunchOp launch) {
  for (Operation &op : launch.getBody().front()) {
    if (isa<OutputOp, OutputSumOp>(op)) {
      bool evaluates = timeline.segment.getKind() == StepKind::evaluate;
      if (evaluates != isa<OutputSumOp>(op))
        return op.emitOpError() << "is in a segment that "
                                << (evaluates ? "evaluates, expected 'fsdp.output_sum'"
                                              : "trains, expected 'fsdp.output'");
      auto name = op.getAttrOfType<StringAttr>("name");
      if (llvm::is_contained(timeline.outputs, name))
        return op.emitOpError() << "'" << name.getValue()
                                << "' is written twice in a segment; give each its own name";
      timeline.outputs.push_back(name);
      if (auto output = dyn_cast<OutputOp>(op); output && output.getCheck())
        timeline.checks[*output.getCheck()] = name;
    }
    if (auto samples = dyn_cast<MicrobatchSamplesOp>(op))
      timeline.countsSamples |= samples.getCounted();
    timeline.countsSamples |= isa<SampleCountOp>(op);
  }
  if (!getStepStateAccess(launch).isNone() &&
      (!launch.getStepState() || launch.getStepState() != program.stepState))
    return launch.emitOpError() << "'" << launch.getFullName()
                                << "' needs the step state; name its buffer with 'step_state'";
  return success();
}

/// Numbers the outputs of the walk `added`; outputs of one name have one number, even if several
/// segments write them.
static LogicalResult numberOutputs(ScheduledProgram &program, ProgramWalk &added) {
  std::map<int64_t, StringAttr> checks;
  for (auto [index, times] : added.runs) {
    Timeline &timeline = program.timelines[index];
    SmallVector<int> slots;
    for (StringAttr name : timeline.outputs) {
      auto slot = llvm::find(added.outputs, name);
      slots.push_back(static_cast<int>(slot - added.outputs.begin()));
      if (slot == added.outputs.end())
        added.outputs.push_back(name);
    }
    if (!timeline.slots.empty() && timeline.slots != slots)
      return timeline.segment.emitOpError()
             << "'" << timeline.segment.getSymName()
             << "' writes outputs in several walks, whose other segments write different ones; "
                "give each walk a separate segment";
    timeline.slots = slots;
    added.countsSamples |= timeline.countsSamples;
    checks.insert(timeline.checks.begin(), timeline.checks.end());
  }
  for (auto [place, name] : checks)
    added.checks.push_back(
        static_cast<int>(llvm::find(added.outputs, name) - added.outputs.begin()));
  return success();
}

static LogicalResult readWalks(ScheduledProgram &program) {
  llvm::StringMap<int> numbers;
  for (auto [number, timeline] : llvm::enumerate(program.timelines))
    numbers[timeline.segment.getSymName()] = static_cast<int>(number);
  for (auto walk : program.program.getBody().front().getOps<WalkOp>()) {
    ProgramWalk &added = program.walks.emplace_back();
    added.name = walk.getSymNameAttr();
    added.kind = walk.getKind();
    for (auto [segment, times] :
         llvm::zip_equal(walk.getSegments().getAsRange<FlatSymbolRefAttr>(), walk.getTimes()))
      added.runs.push_back({numbers.lookup(segment.getValue()), times});
  }
  if (program.walks.empty())
    for (auto [number, timeline] : llvm::enumerate(program.timelines))
      program.walks.push_back({timeline.segment.getSymNameAttr(),
                               timeline.segment.getKind(),
                               {{static_cast<int>(number), 1}},
                               {},
                               false,
                               {}});
  for (ProgramWalk &walk : program.walks)
    if (failed(numberOutputs(program, walk)))
      return failure();
  const auto drains = [&](const ProgramWalk &walk) {
    return program.timelines[walk.runs.front().first].segment.getDrain();
  };
  for (size_t i = 0; i < program.walks.size(); ++i)
    for (size_t j = i + 1; j < program.walks.size(); ++j)
      if (program.walks[i].kind == program.walks[j].kind &&
          drains(program.walks[i]) == drains(program.walks[j]))
        return program.program.emitOpError()
               << "has the walks '" << program.walks[i].name.getValue() << "' and '"
               << program.walks[j].name.getValue() << "', which both "
               << stringifyStepKind(program.walks[i].kind)
               << ", expected one; a step of the driver has one walk, remove the other";
  for (Timeline &timeline : program.timelines) // segments that no walk runs are emitted too
    for (size_t slot = timeline.slots.size(); slot < timeline.outputs.size(); ++slot)
      timeline.slots.push_back(static_cast<int>(slot));
  return success();
}

static LogicalResult checkOffsets(ProgramOp program) {
  auto check = [](Block &block) -> LogicalResult {
    for (auto buffer : block.getOps<BufferOp>())
      if (!buffer.getOffset())
        return buffer.emitOpError()
               << "'" << buffer.getName() << "' has no offset; run fsdp-plan-memory";
    return success();
  };
  if (failed(check(program.getBody().front())))
    return failure();
  for (auto segment : program.getBody().front().getOps<SegmentOp>())
    if (failed(check(segment.getBody().front())))
      return failure();
  if (!program.getArena())
    return program.emitOpError() << "has no arena size; run fsdp-plan-memory";
  return success();
}

static LogicalResult verifyScheduled(ModuleOp module) {
  if (Phase phase = getPhase(module); phase != Phase::scheduled)
    return module.emitError() << "got a module in the " << stringifyPhase(phase)
                              << " phase, expected the scheduled phase; run fsdp-schedule and "
                                 "fsdp-plan-memory";
  return success();
}

FailureOr<ScheduledProgram> ScheduledProgram::create(ModuleOp module) {
  if (failed(verifyScheduled(module)))
    return failure();
  auto programs = llvm::to_vector(module.getOps<ProgramOp>());
  if (programs.size() != 1)
    return module.emitError() << "got " << programs.size() << " programs, expected 1";
  return create(module, programs.front());
}

FailureOr<ScheduledProgram> ScheduledProgram::create(ModuleOp module, ProgramOp program,
                                                     const ScheduledProgram *first) {
  if (failed(verifyScheduled(module)))
    return failure();
  ScheduledProgram result(module);
  result.program = program;
  result.roles = RoleNumbers(module);
  result.storages = llvm::to_vector(module.getOps<StorageOp>());
  if (failed(checkOffsets(result.program)))
    return failure();
  for (auto buffer : result.program.getBody().front().getOps<BufferOp>())
    if (!buffer.getStorage() && buffer.getName() == "step_state")
      result.stepState = buffer;
    else if (buffer.getStorageAttr() && buffer.getWhat())
      result.shards.try_emplace({buffer.getStorageAttr().getAttr(), *buffer.getWhat()}, buffer);
  if (!result.stepState)
    return result.program.emitOpError()
           << "has no persistent buffer 'step_state'; run fsdp-schedule";
  for (StorageOp storage : result.storages) {
    if (!storage.isOwnedBy(program))
      continue;
    for (StringRef what : storage.getKept())
      if (!result.shardOf(storage, what))
        return storage.emitOpError()
               << "has no persistent buffer that holds its '" << what << "'; run fsdp-schedule";
  }
  llvm::MapVector<Value, int> programEvents;
  for (auto event : result.program.getBody().front().getOps<EventOp>()) {
    programEvents.insert({event.getTimepoint(), static_cast<int>(programEvents.size())});
    result.programEvents.push_back(event);
  }
  for (auto segment : result.program.getBody().front().getOps<SegmentOp>()) {
    Timeline &timeline = result.timelines.emplace_back();
    timeline.segment = segment;
    if (failed(readTimeline(programEvents, timeline)))
      return failure();
  }
  if (first)
    takeNumbers(result, *first);
  else if (failed(numberLaunches(result)))
    return failure();
  for (Timeline &timeline : result.timelines) {
    for (Action &action : timeline.actions)
      if (failed(readLaunch(result, timeline, action.launch)))
        return failure();
  }
  if (failed(readWalks(result)))
    return failure();
  // A storage's part is found by the rank over its axes, gathered or not.
  for (StorageOp storage : result.storages)
    if (storage.getKind() != StorageKind::replicated &&
        result.communicatorOver(storage.getAxes()) < 0)
      result.communicators.insert(
          {{StringAttr::get(module.getContext(), "storage"), storage.getAxes()},
           static_cast<int>(result.communicators.size())});
  // So are the parts of its members.
  for (StorageOp storage : result.storages)
    if (ArrayAttr axes = getAxisArray(module.getContext(), storage.getSplitAxes());
        !axes.empty() && result.communicatorOver(axes) < 0)
      result.communicators.insert({{StringAttr::get(module.getContext(), "storage"), axes},
                                   static_cast<int>(result.communicators.size())});
  result.modelNames.create(module, result.program, result.symbols);
  result.names.create(result);
  return result;
}

void ProgramNames::create(const ScheduledProgram &program) {
  // One scope for all kinds of names: an input "a b" and a stream "input a b" would both be
  // `kInputAB`.
  Names names;
  auto enumerator = [&](StringRef kind, StringRef text) {
    return names.unique(enumeratorFor((kind + " " + text).str()));
  };
  if (program.roles.areSeveral())
    names.unique(kRoleSpace);
  for (const Timeline &timeline : program.timelines)
    segments[timeline.segment] = names.unique(timeline.segment.getSymName());
  for (const auto &[stream, index] : program.streams)
    streams[stream] = enumerator("", stream);
  for (const auto &[key, index] : program.communicators)
    communicators[key] = enumerator("over", program.communicatorName(key));
  for (StringAttr axis : program.mesh.getAxisNames())
    axes[axis] = enumerator("axis", axis);
  for (StorageOp storage : program.storages)
    storages[storage.getSymNameAttr()] = enumerator("storage", storage.getSymName());
  for (const auto &[input, entry] : program.inputs)
    inputs[input] = enumerator("input", input);
  for (EventOp event : program.programEvents)
    events.push_back(enumerator("event", program.modelNames.of(event).whole()));
  if (!events.empty())
    firstOwnEvent = enumerator("program", "events");
  for (const ProgramWalk &walk : program.walks) {
    std::string name = identifierFor(walk.name.getValue());
    runTables[walk.name] = names.unique(name + "_runs");
    outputTables[walk.name] = names.unique(name + "_outputs");
    if (!walk.checks.empty())
      checkTables[walk.name] = names.unique(name + "_checks");
  }
  for (StorageOp storage : program.storages) {
    std::string name = identifierFor(storage.getSymName());
    memberTables[storage.getSymNameAttr()] = names.unique(name + "_members");
    stateTables[storage.getSymNameAttr()] = names.unique(name + "_states");
  }
  for (const Timeline &timeline : program.timelines) {
    Names inside = names; // declarations of a segment hide no name that it uses
    for (StringAttr output : timeline.outputs)
      outputs[{timeline.segment, output}] =
          inside.unique(enumeratorFor("output " + output.getValue().str()));
    std::vector<std::string> &own = ownEvents[timeline.segment];
    for (LaunchOp recorder : timeline.recorders)
      own.push_back(
          inside.unique(enumeratorFor("done " + program.modelNames.of(recorder).whole())));
  }
}
