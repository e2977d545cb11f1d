//===- ScheduledMachine.cpp - streams interleaved adversarially -----------===//
//
// A launch begins and ends as two events. At its beginning it reads its operands and its outs
// become unreadable; at its end they hold the results. Between the two, other streams and ranks may
// do anything that the timepoints allow: the order is drawn from the seed, with some streams held
// back for as long as anything else can happen. Whoever touches what is in flight, or reads what
// was never written, is reported.
//
//===----------------------------------------------------------------------===//

#include "interpreter/Arena.h"
#include "interpreter/ShardedMachine.h"
#include "interpreter/Timeline.h"
#include <random>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

/// What one stream of one rank is doing.
struct StreamState {
  size_t next = 0; ///< position in the order of the stream
  bool inFlight = false;
  /// Begins, or ends, its launches only when nothing else can happen.
  bool lateToBegin = false, lateToEnd = false;
  /// Of the launch in flight: the operands read at its beginning; for a collective, the result
  /// once all ranks of the group have begun.
  SmallVector<Tensor> operands;
  Tensor result;
};

class ScheduledMachine : public ShardedMachine {
public:
  ScheduledMachine(ModuleOp module, const MachineOptions &options)
      : ShardedMachine(module, options), random(options.seed) {}

  LogicalResult compile();

protected:
  LogicalResult runRanks(size_t segment) override;
  const Tensor &shard(int64_t rank, StringRef storage, StringRef what) override;
  void setShard(int64_t rank, StringRef storage, StringRef what, const Tensor &value) override;

private:
  struct RankState {
    const Timeline *timeline = nullptr;
    std::vector<StreamState> streams;
    std::vector<bool> done; ///< by launch
  };

  const CompiledLaunch *nextOf(int64_t rank, size_t stream) const {
    const RankState &state = states[rank];
    const SmallVector<unsigned> &order = state.timeline->order[stream];
    size_t next = state.streams[stream].next;
    return next == order.size() ? nullptr : &state.timeline->launches[order[next]];
  }
  bool canBegin(int64_t rank, size_t stream) const;
  FailureOr<bool> canEnd(int64_t rank, size_t stream);
  LogicalResult begin(int64_t rank, size_t stream);
  LogicalResult end(int64_t rank, size_t stream);
  LogicalResult checkConflicts(int64_t rank, const CompiledLaunch &launch);
  LogicalResult reportNoProgress();
  std::optional<BufferRange> rangeOf(int64_t rank, StringRef storage, StringRef what) const;

  std::mt19937_64 random;
  SmallVector<std::string> streams;             // the names of all streams of all programs
  std::vector<ArenaLayout> layouts;             // by program
  std::vector<std::vector<Timeline>> timelines; // by program, then by segment
  std::vector<Arena> arenas;                    // by rank
  std::vector<RankState> states;                // by rank
  Tensor scratch;
};

} // namespace

LogicalResult ScheduledMachine::compile() {
  if (failed(collectPrograms()))
    return failure();
  for (ProgramOp program : programs) {
    FailureOr<ArenaLayout> layout = ArenaLayout::compute(program);
    if (failed(layout))
      return failure();
    layouts.push_back(std::move(*layout));
    timelines.emplace_back();
    for (const std::string &segment : segments) {
      auto op = program.lookupSymbol<SegmentOp>(segment);
      if (!op) {
        timelines.back().emplace_back();
        continue;
      }
      FailureOr<Timeline> timeline =
          Timeline::compile(op, layouts.back(), options.numerics, streams);
      if (failed(timeline))
        return failure();
      timelines.back().push_back(std::move(*timeline));
    }
  }
  for (std::vector<Timeline> &ofProgram : timelines)
    for (Timeline &timeline : ofProgram)
      timeline.order.resize(streams.size());
  for (size_t program : programOf)
    arenas.emplace_back(layouts[program].getSize());
  states.resize(ranks.size());
  return initialize();
}

//===----------------------------------------------------------------------===//
// Persistent buffers
//===----------------------------------------------------------------------===//

std::optional<BufferRange> ScheduledMachine::rangeOf(int64_t rank, StringRef storage,
                                               StringRef what) const {
  for (const BufferRange &place : layouts[programOf[rank]].getPersistent()) {
    BufferOp buffer = place.buffer;
    if (buffer.getStorage() == storage && buffer.getWhat() == what)
      return place;
  }
  return std::nullopt;
}

const Tensor &ScheduledMachine::shard(int64_t rank, StringRef storage, StringRef what) {
  scratch = Tensor();
  if (std::optional<BufferRange> place = rangeOf(rank, storage, what)) {
    std::optional<int64_t> unready;
    Tensor value = arenas[rank].read(place->begin, place->type, place->number, unready);
    if (!unready)
      scratch = value;
  }
  return scratch;
}

void ScheduledMachine::setShard(int64_t rank, StringRef storage, StringRef what,
                                const Tensor &value) {
  if (std::optional<BufferRange> place = rangeOf(rank, storage, what))
    arenas[rank].write(place->begin, value, place->number);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

bool ScheduledMachine::canBegin(int64_t rank, size_t stream) const {
  const StreamState &state = states[rank].streams[stream];
  const CompiledLaunch *launch = nextOf(rank, stream);
  return launch && !state.inFlight &&
         llvm::all_of(launch->waits, [&](unsigned wait) { return states[rank].done[wait]; });
}

/// Fails if `launch` touches what a launch in flight on the rank writes, or writes what one reads.
LogicalResult ScheduledMachine::checkConflicts(int64_t rank, const CompiledLaunch &launch) {
  for (size_t stream = 0; stream < states[rank].streams.size(); ++stream) {
    if (!states[rank].streams[stream].inFlight)
      continue;
    const CompiledLaunch &other = *nextOf(rank, stream);
    auto conflict = [&](ArrayRef<BufferRange> mine, ArrayRef<BufferRange> theirs) -> const BufferRange * {
      for (const BufferRange &place : mine)
        for (const BufferRange &taken : theirs)
          if (place.overlaps(taken))
            return &place;
      return nullptr;
    };
    const BufferRange *place = conflict(launch.outs, other.outs);
    if (!place)
      place = conflict(launch.outs, other.ins);
    if (!place)
      place = conflict(launch.ins, other.outs);
    if (!place && launch.stepState && other.stepState &&
        (launch.writesStepState || other.writesStepState))
      place = &*launch.stepState;
    if (!place)
      continue;
    LaunchOp op = launch.op, otherOp = other.op;
    BufferOp buffer = place->buffer;
    InFlightDiagnostic diagnostic = op.emitOpError()
                                    << "'" << op.getName() << "' races with '" << otherOp.getName()
                                    << "' on rank " << rank << ": both use bytes of buffer '"
                                    << buffer.getName() << "'; let the later one wait";
    diagnostic.attachNote(otherOp.getLoc()) << "'" << otherOp.getName() << "' is in flight here";
    return diagnostic;
  }
  return success();
}

LogicalResult ScheduledMachine::begin(int64_t rank, size_t stream) {
  const CompiledLaunch &launch = *nextOf(rank, stream);
  if (failed(checkConflicts(rank, launch)))
    return failure();
  StreamState &state = states[rank].streams[stream];
  state.inFlight = true;
  state.operands.clear();
  state.result = Tensor();
  for (const BufferRange &in : launch.ins) {
    std::optional<int64_t> unready;
    state.operands.push_back(arenas[rank].read(in.begin, in.type, in.number, unready));
    if (!unready)
      continue;
    LaunchOp op = launch.op;
    BufferOp buffer = in.buffer;
    return op.emitOpError() << "'" << op.getName() << "' on rank " << rank << " reads byte "
                            << *unready - in.begin << " of buffer '" << buffer.getName()
                            << "', which holds no value then: it was not written yet, or has been "
                               "overwritten";
  }
  for (const BufferRange &out : launch.outs)
    arenas[rank].poison(out.begin, out.end);
  return success();
}

/// A collective can end once all ranks of its group have begun it.
FailureOr<bool> ScheduledMachine::canEnd(int64_t rank, size_t stream) {
  StreamState &state = states[rank].streams[stream];
  if (!state.inFlight)
    return false;
  const CompiledLaunch &launch = *nextOf(rank, stream);
  if (!launch.collective || state.result)
    return true;

  SmallVector<StreamState *> members;
  SmallVector<Tensor> operands;
  for (int64_t member : groupOf(launch.collective, rank)) {
    const CompiledLaunch *otherLaunch = nextOf(member, stream);
    StreamState &otherState = states[member].streams[stream];
    // A rank whose result is there but who has not ended is still in the collective before.
    if (!otherLaunch || !otherState.inFlight || otherState.result || !otherLaunch->collective ||
        !sameAxes(launch.collective, otherLaunch->collective))
      return false;
    if (failed(checkSame(rank, launch.collective, member, otherLaunch->collective)))
      return failure();
    members.push_back(&otherState);
    operands.push_back(otherState.operands[0]);
  }
  SmallVector<Tensor> results(members.size());
  performCollective(launch.collective, operands, results, options.numerics);
  for (auto [member, result] : llvm::zip_equal(members, results))
    member->result = std::move(result);
  return true;
}

LogicalResult ScheduledMachine::end(int64_t rank, size_t stream) {
  RankState &rankState = states[rank];
  StreamState &state = rankState.streams[stream];
  const CompiledLaunch &launch = *nextOf(rank, stream);
  std::vector<Tensor> values(launch.body.numValues);
  llvm::copy(state.operands, values.begin());
  for (const Instruction &instruction : launch.body.instructions) {
    if (instruction.op == launch.collective)
      values[instruction.firstResult] = state.result;
    else if (failed(CompiledBlock::run(instruction, ranks[rank], values)))
      return failure();
  }
  for (auto [out, value] : llvm::zip_equal(launch.outs, launch.body.yielded))
    arenas[rank].write(out.begin, values[value], out.number);
  rankState.done[rankState.timeline->order[stream][state.next]] = true;
  state.inFlight = false;
  state.operands.clear();
  ++state.next;
  return success();
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

LogicalResult ScheduledMachine::reportNoProgress() {
  std::optional<InFlightDiagnostic> diagnostic;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (size_t stream = 0; stream < states[rank].streams.size(); ++stream) {
      const CompiledLaunch *launch = nextOf(rank, stream);
      if (!launch)
        continue;
      LaunchOp op = launch->op;
      if (!diagnostic)
        diagnostic.emplace(op.emitOpError() << "'" << op.getName() << "': no rank can go on");
      Diagnostic &note = diagnostic->attachNote(op.getLoc());
      note << "rank " << rank << ", stream '" << streams[stream] << "': '" << op.getName() << "' ";
      if (states[rank].streams[stream].inFlight) {
        note << "waits in '" << signatureOf(launch->collective) << "' for ranks [";
        llvm::interleaveComma(groupOf(launch->collective, rank), note);
        note << "]";
        continue;
      }
      note << "waits for";
      for (unsigned wait : launch->waits)
        if (!states[rank].done[wait]) {
          LaunchOp awaited = states[rank].timeline->launches[wait].op;
          note << " '" << awaited.getName() << "'";
        }
    }
  return *diagnostic;
}

LogicalResult ScheduledMachine::runRanks(size_t segment) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    RankState &state = states[rank];
    state.timeline = &timelines[programOf[rank]][segment];
    state.streams.assign(streams.size(), StreamState());
    state.done.assign(state.timeline->launches.size(), false);
    for (StreamState &stream : state.streams) {
      unsigned mood = random() % 4;
      stream.lateToBegin = mood == 1;
      stream.lateToEnd = mood >= 2;
    }
    // Only persistent buffers keep what they hold from segment to segment.
    const ArenaLayout &layout = layouts[programOf[rank]];
    SmallVector<BufferRange> persistent(layout.getPersistent());
    llvm::sort(persistent, [](const BufferRange &a, const BufferRange &b) { return a.begin < b.begin; });
    int64_t end = 0;
    for (const BufferRange &place : persistent) {
      arenas[rank].poison(end, std::max(end, place.begin));
      end = std::max(end, place.end);
    }
    arenas[rank].poison(end, arenas[rank].size());
  }

  size_t pairs = ranks.size() * streams.size();
  while (true) {
    // Looks around from a random place for something that can happen.
    std::optional<size_t> late, found;
    bool done = true;
    for (size_t i = 0, first = random() % std::max<size_t>(pairs, 1); i < pairs && !found; ++i) {
      size_t pair = (first + i) % pairs;
      int64_t rank = pair / streams.size();
      size_t stream = pair % streams.size();
      if (!nextOf(rank, stream))
        continue;
      done = false;
      FailureOr<bool> ends = canEnd(rank, stream);
      if (failed(ends))
        return failure();
      if (!*ends && !canBegin(rank, stream))
        continue;
      const StreamState &state = states[rank].streams[stream];
      if (*ends ? state.lateToEnd : state.lateToBegin)
        late = pair;
      else
        found = pair;
    }
    if (done)
      return success();
    if (!found && !late)
      return reportNoProgress();
    size_t pair = found ? *found : *late;
    int64_t rank = pair / streams.size();
    size_t stream = pair % streams.size();
    bool inFlight = states[rank].streams[stream].inFlight;
    if (failed(inFlight ? end(rank, stream) : begin(rank, stream)))
      return failure();
  }
}

FailureOr<std::unique_ptr<Machine>>
interpreter::detail::createScheduledMachine(ModuleOp module, const MachineOptions &options) {
  auto machine = std::make_unique<ScheduledMachine>(module, options);
  if (failed(machine->compile()))
    return failure();
  return std::unique_ptr<Machine>(std::move(machine));
}
