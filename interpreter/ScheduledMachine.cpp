//===- ScheduledMachine.cpp - streams interleaved adversarially -----------===//
//
// The host of each rank issues segments; a launch begins and ends as two events. At its beginning
// it reads its operands and its outs become unreadable; at its end they hold the results. Between
// the two, other streams and ranks may do anything that the timepoints allow: the order is drawn
// from the seed, with some streams held back for as long as any other event is possible. Accesses
// to bytes in flight, and reads of bytes that were never written, are reported.
//
// A host waits at the end of a segment that is joined, and at the end of a walk, or of the last one
// of `runAhead`, for launches that write outputs. All other launches may still be in flight while
// the launches of later segments and walks run.
//
//===----------------------------------------------------------------------===//

#include "interpreter/Arena.h"
#include "interpreter/ShardedMachine.h"
#include "interpreter/Timeline.h"
#include <deque>
#include <random>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

/// One run of a segment on one rank.
struct SegmentRun {
  const Timeline *timeline;
  uint64_t number; ///< from 0, of all runs of the rank
  BatchPosition batch;
  const DataSet *data;
  std::shared_ptr<Outputs> outputs; ///< of the rank in the walk
};

/// The outputs of a walk, by rank. Its launches fill them.
using WalkOutputs = std::vector<std::shared_ptr<Outputs>>;

/// A launch that the host has issued.
struct Issued {
  const CompiledLaunch *launch;
  SegmentRun run;
  SmallVector<std::shared_ptr<Issued>> waits; ///< until it begins
  bool inFlight = false, done = false;
  /// While in flight: the step state and the operands as they were at the beginning; for
  /// collectives, whether all ranks of the group have begun, and then the results.
  StepState stepState;
  SmallVector<Tensor> operands;
  bool met = false;
  SmallVector<Tensor> results;

  /// The collective, or the first of the group; null for other launches.
  Operation *collective() const {
    return launch->collectives.empty() ? nullptr : launch->collectives.front();
  }

  /// Buffers of a segment are unwritten in each of its runs: their contents belong to one run.
  uint64_t ownerOf(const BufferRange &range) const {
    return range.persistent ? range.number : (run.number + 1) << 32 | range.number;
  }
};

/// The next transition of the first launch of a stream: it can begin when all launches are done
/// that it waits for, and end unless it waits for other ranks.
enum class Next : uint8_t { nothing, begin, end };

/// One stream of one rank.
struct StreamState {
  std::deque<std::shared_ptr<Issued>> queue; ///< not done; the first may be in flight
  /// Begins, or ends, its launches only when nothing else can happen.
  bool lateToBegin = false, lateToEnd = false;
};

class ScheduledMachine : public ShardedMachine {
public:
  using ShardedMachine::ShardedMachine;

  LogicalResult compile() override;
  FailureOr<std::vector<Outputs>> runAhead(ArrayRef<StringRef> walks, const DataSet &data) override;

protected:
  void clear() override;
  LogicalResult runRanks(ArrayRef<SmallVector<size_t>> runs) override;
  LogicalResult drain() override;
  const Tensor &shard(int64_t rank, StringRef storage, StringRef what) override;
  void setShard(int64_t rank, StringRef storage, StringRef what, const Tensor &value) override;

private:
  struct RankState {
    std::vector<StreamState> streams;
    std::vector<std::shared_ptr<Issued>> events; ///< the launch that recorded each last, or null
    std::deque<SegmentRun> toIssue;
    /// The segment issued last, where the host waits for its end.
    const Timeline *joining = nullptr;
    size_t unfinished = 0;     ///< launches that are issued and not done
    size_t outputsMissing = 0; ///< of the walk, launches that write outputs
    uint64_t segmentsRun = 0;

    bool isIdle() const { return unfinished == 0 && toIssue.empty(); }
    /// The host has all outputs before it starts the next walk.
    bool isThrough() const {
      return toIssue.empty() && outputsMissing == 0 && (!joining || unfinished == 0);
    }
  };

  Issued *nextOf(int64_t rank, size_t stream) const {
    const auto &queue = states[rank].streams[stream].queue;
    return queue.empty() ? nullptr : queue.front().get();
  }
  /// Notes the next transition of the first launch of a stream, or of all streams of a rank: called
  /// after every change that affects it.
  void update(int64_t rank, size_t stream);
  void update(int64_t rank);
  LogicalResult meet(int64_t rank, size_t stream);
  LogicalResult meetPeer(int64_t rank, size_t stream);
  LogicalResult begin(int64_t rank, size_t stream);
  LogicalResult end(int64_t rank, size_t stream);
  LogicalResult checkConflicts(int64_t rank, const Issued &issued);
  void issue(int64_t rank);
  WalkOutputs issueWalk(ArrayRef<SmallVector<size_t>> runs);
  LogicalResult runUntilThrough();
  LogicalResult runUntil(llvm::function_ref<bool(const RankState &)> through);
  LogicalResult reportNoProgress();
  std::optional<BufferRange> rangeOf(int64_t rank, StringRef storage, StringRef what) const;

  std::mt19937_64 random;
  SmallVector<std::string> streams;             // the names of all streams of all programs
  std::vector<ArenaLayout> layouts;             // by program
  std::vector<std::vector<Timeline>> timelines; // by program, then by segment
  std::vector<Arena> arenas;                    // by rank
  std::vector<RankState> states;                // by rank
  std::vector<Next> next;                       // by rank, then by stream
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
  return success();
}

void ScheduledMachine::clear() {
  ShardedMachine::clear();
  random.seed(options.seed);
  arenas.clear();
  states.clear();
  next.assign(programOf.size() * streams.size(), Next::nothing);
  for (size_t program : programOf) {
    arenas.emplace_back(layouts[program].getSize());
    RankState &state = states.emplace_back();
    state.streams.resize(streams.size());
    state.events.resize(layouts[program].getNumEvents());
    for (const BufferRange &place : layouts[program].getPersistent())
      if (BufferOp(place.buffer).getZeroed())
        arenas.back().write(place.begin, Tensor(place.type), place.number);
  }
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

void ScheduledMachine::update(int64_t rank, size_t stream) {
  const Issued *issued = nextOf(rank, stream);
  Next &result = next[rank * streams.size() + stream];
  result = Next::nothing;
  if (!issued)
    return;
  if (issued->inFlight)
    result = issued->met || !issued->collective() ? Next::end : Next::nothing;
  else if (llvm::all_of(issued->waits, [](const auto &wait) { return wait->done; }))
    result = Next::begin;
}

void ScheduledMachine::update(int64_t rank) {
  for (size_t stream = 0; stream < streams.size(); ++stream)
    update(rank, stream);
}

/// Describes the run of `other` if it is not that of `issued`.
static std::string describeRun(const Issued &other, const Issued &issued) {
  if (other.run.number == issued.run.number)
    return "";
  SegmentOp segment = other.run.timeline->segment;
  return (other.run.timeline == issued.run.timeline ? ", in another run of segment '"
                                                    : ", in segment '") +
         segment.getSymName().str() + "'";
}

/// Fails if `issued` accesses bytes that a launch in flight on the rank writes, or writes bytes
/// that one reads.
LogicalResult ScheduledMachine::checkConflicts(int64_t rank, const Issued &issued) {
  const CompiledLaunch &launch = *issued.launch;
  for (size_t stream = 0; stream < streams.size(); ++stream) {
    const Issued *inFlight = nextOf(rank, stream);
    if (!inFlight || !inFlight->inFlight)
      continue;
    const CompiledLaunch &other = *inFlight->launch;
    auto conflict = [&](ArrayRef<BufferRange> mine,
                        ArrayRef<BufferRange> theirs) -> const BufferRange * {
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
        launch.stateAccess.conflictsWith(other.stateAccess))
      place = &*launch.stepState;
    if (!place)
      continue;
    LaunchOp op = launch.op, otherOp = other.op;
    BufferOp buffer = place->buffer;
    InFlightDiagnostic diagnostic =
        op.emitOpError() << "'" << op.getFullName() << "' races with '" << otherOp.getFullName()
                         << "' on rank " << rank << ": both use bytes of buffer '"
                         << buffer.getName() << "'; let the later one wait";
    diagnostic.attachNote(otherOp.getLoc())
        << "'" << otherOp.getFullName() << "' is in flight here" << describeRun(*inFlight, issued);
    return diagnostic;
  }
  return success();
}

LogicalResult ScheduledMachine::begin(int64_t rank, size_t stream) {
  Issued &issued = *nextOf(rank, stream);
  const CompiledLaunch &launch = *issued.launch;
  if (failed(checkConflicts(rank, issued)))
    return failure();
  issued.inFlight = true;
  issued.waits.clear();
  issued.stepState = ranks[rank].stepState;
  for (const BufferRange &in : launch.ins) {
    std::optional<int64_t> unready;
    issued.operands.push_back(arenas[rank].read(in.begin, in.type, issued.ownerOf(in), unready));
    if (!unready)
      continue;
    LaunchOp op = launch.op;
    BufferOp buffer = in.buffer;
    return op.emitOpError()
           << "'" << op.getFullName() << "' on rank " << rank << " reads byte "
           << *unready - in.begin << " of buffer '" << buffer.getName()
           << "', which holds no value at that point: it was not written, or was overwritten";
  }
  for (const BufferRange &out : launch.outs)
    arenas[rank].poison(out.begin, out.end);
  update(rank, stream);
  return issued.collective() ? meet(rank, stream) : success();
}

/// Performs the transfer that `rank` has begun if the other rank has begun its side of it, or if
/// there is no other rank.
LogicalResult ScheduledMachine::meetPeer(int64_t rank, size_t stream) {
  Issued &issued = *nextOf(rank, stream);
  auto op = cast<CollectiveOpInterface>(issued.collective());
  std::optional<int64_t> peer = peerOf(op, rank);
  if (!peer) {
    issued.met = true;
    update(rank, stream);
    if (Value received = op.getRecvValue())
      issued.results = {Tensor(cast<RankedTensorType>(received.getType()))};
    return success();
  }
  Issued *other = nullptr;
  size_t theirStream = 0;
  for (; theirStream < streams.size(); ++theirStream) {
    other = nextOf(*peer, theirStream);
    if (other && other->inFlight && !other->met && other->collective() &&
        isCounterpart(op, other->collective()))
      break;
  }
  if (theirStream == streams.size())
    return success();
  Operation *theirs = other->collective();
  const bool sends = op.getSendValue() != nullptr;
  if (failed(sends ? checkTransfer(rank, op, *peer, theirs)
                   : checkTransfer(*peer, theirs, rank, op)))
    return failure();
  issued.met = other->met = true;
  update(rank, stream);
  update(*peer, theirStream);
  Issued &sender = sends ? issued : *other, &receiver = sends ? *other : issued;
  receiver.results = {sender.operands[0]};
  return success();
}

/// Performs the collectives of the launch that `rank` has begun on `stream` if all ranks of their
/// group have begun it: called for each of them, so that the last one finds the others there.
LogicalResult ScheduledMachine::meet(int64_t rank, size_t stream) {
  Issued *issued = nextOf(rank, stream);
  Operation *collective = issued->collective();
  if (isTransfer(collective))
    return meetPeer(rank, stream);

  SmallVector<Issued *> members;
  ArrayRef<int64_t> group = groupOf(collective, rank);
  for (int64_t member : group) {
    Issued *other = nextOf(member, stream);
    // A rank with a result that has not ended is still in the previous collective.
    if (!other || !other->inFlight || other->met || !other->collective() ||
        !mayMeet(collective, other->collective()))
      return success();
    members.push_back(other);
    if (failed(checkSame(group.front(), members.front()->launch->collectives, member,
                         other->launch->collectives)))
      return failure();
  }
  for (auto [number, op] : llvm::enumerate(issued->launch->collectives)) {
    SmallVector<Tensor> operands, results(members.size());
    for (Issued *member : members)
      operands.push_back(member->operands[number]);
    performCollective(op, operands, results, options.numerics);
    for (auto [member, result] : llvm::zip_equal(members, results))
      member->results.push_back(std::move(result));
  }
  for (auto [member, other] : llvm::zip_equal(members, group)) {
    member->met = true;
    update(other, stream);
  }
  return success();
}

LogicalResult ScheduledMachine::end(int64_t rank, size_t stream) {
  RankState &state = states[rank];
  std::shared_ptr<Issued> issued = state.streams[stream].queue.front();
  const CompiledLaunch &launch = *issued->launch;
  RankContext &context = ranks[rank];
  context.data = issued->run.data;
  context.batch = issued->run.batch;
  context.outputs.swap(*issued->run.outputs);
  StepState latest = std::exchange(context.stepState, issued->stepState);
  std::vector<Tensor> values(launch.body.numValues);
  llvm::copy(issued->operands, values.begin());
  for (const Instruction &instruction : launch.body.instructions) {
    if (const auto *at = llvm::find(launch.collectives, instruction.op);
        at != launch.collectives.end()) {
      if (instruction.numResults)
        values[instruction.firstResult] = issued->results[at - launch.collectives.begin()];
      continue;
    }
    if (failed(CompiledBlock::run(instruction, context, values)))
      return failure();
  }
  context.outputs.swap(*issued->run.outputs);
  if (!launch.stateAccess.writesState())
    context.stepState = latest;
  for (auto [out, value] : llvm::zip_equal(launch.outs, launch.body.yielded)) {
    arenas[rank].write(out.begin, values[value], issued->ownerOf(out));
    if (options.observe) {
      BufferOp buffer = out.buffer;
      options.observe(rank, buffer, 0, values[value]);
    }
  }
  issued->done = true;
  issued->operands.clear();
  issued->results.clear();
  state.streams[stream].queue.pop_front();
  state.outputsMissing -= launch.leavesOutputs;
  if (--state.unfinished == 0)
    issue(rank);
  update(rank);
  return success();
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Issues the launches that the host of `rank` can issue before it has to wait.
void ScheduledMachine::issue(int64_t rank) {
  RankState &state = states[rank];
  while (!state.toIssue.empty() && !(state.joining && state.unfinished)) {
    SegmentRun run = state.toIssue.front();
    state.toIssue.pop_front();
    state.joining = run.timeline->joined ? run.timeline : nullptr;
    std::vector<std::shared_ptr<Issued>> ofSegment;
    for (const CompiledLaunch &launch : run.timeline->launches) {
      auto issued = std::make_shared<Issued>();
      issued->launch = &launch;
      issued->run = run;
      for (unsigned wait : launch.waits)
        issued->waits.push_back(ofSegment[wait]);
      for (unsigned event : launch.awaits)
        if (state.events[event])
          issued->waits.push_back(state.events[event]);
      for (unsigned event : launch.records)
        state.events[event] = issued;
      state.streams[launch.stream].queue.push_back(issued);
      ++state.unfinished;
      ofSegment.push_back(std::move(issued));
    }
  }
}

LogicalResult ScheduledMachine::reportNoProgress() {
  std::optional<InFlightDiagnostic> diagnostic;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankState &state = states[rank];
    for (size_t stream = 0; stream < streams.size(); ++stream) {
      const Issued *issued = nextOf(rank, stream);
      if (!issued)
        continue;
      LaunchOp op = issued->launch->op;
      if (!diagnostic)
        diagnostic.emplace(op.emitOpError()
                           << "'" << op.getFullName() << "': no rank can continue");
      Diagnostic &note = diagnostic->attachNote(op.getLoc());
      note << "rank " << rank << ", stream '" << streams[stream] << "': '" << op.getFullName()
           << "' ";
      if (issued->inFlight) {
        Operation *collective = issued->collective();
        note << "waits in '" << signatureOf(collective) << "' for "
             << describeWait(collective, rank);
        continue;
      }
      note << "waits for";
      for (const std::shared_ptr<Issued> &wait : issued->waits)
        if (!wait->done) {
          LaunchOp awaited = wait->launch->op;
          note << " '" << awaited.getName() << "'" << describeRun(*wait, *issued);
        }
    }
    if (state.toIssue.empty())
      continue;
    SegmentOp joined = state.joining->segment, following = state.toIssue.front().timeline->segment;
    diagnostic->attachNote(joined.getLoc())
        << "rank " << rank << ": segment '" << following.getSymName()
        << "' is issued once all of segment '" << joined.getSymName() << "' is done";
  }
  return *diagnostic;
}

/// Issues a walk of every rank's program.
WalkOutputs ScheduledMachine::issueWalk(ArrayRef<SmallVector<size_t>> runs) {
  WalkOutputs outputs;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    RankState &state = states[rank];
    for (StreamState &stream : state.streams) {
      unsigned mood = random() % 4;
      stream.lateToBegin = mood == 1;
      stream.lateToEnd = mood >= 2;
    }
    BatchPosition batch = ranks[rank].batch;
    outputs.push_back(std::make_shared<Outputs>());
    for (size_t segment : runs[programOf[rank]]) {
      const Timeline &timeline = timelines[programOf[rank]][segment];
      state.toIssue.push_back(
          {&timeline, state.segmentsRun++, batch, ranks[rank].data, outputs.back()});
      batch.part += timeline.loadsInputs;
      state.outputsMissing += llvm::count_if(
          timeline.launches, [](const CompiledLaunch &launch) { return launch.leavesOutputs; });
    }
    issue(rank);
    update(rank);
  }
  return outputs;
}

LogicalResult ScheduledMachine::runRanks(ArrayRef<SmallVector<size_t>> runs) {
  const WalkOutputs outputs = issueWalk(runs);
  if (failed(runUntilThrough()))
    return failure();
  for (auto [context, ofRank] : llvm::zip_equal(ranks, outputs))
    context.outputs = *ofRank;
  return success();
}

FailureOr<std::vector<Outputs>> ScheduledMachine::runAhead(ArrayRef<StringRef> walks,
                                                           const DataSet &data) {
  std::vector<WalkOutputs> outputs;
  for (StringRef walk : walks) {
    FailureOr<ArrayRef<SmallVector<size_t>>> runs = enter(walk, data);
    if (failed(runs))
      return failure();
    outputs.push_back(issueWalk(*runs));
  }
  if (failed(runUntilThrough()))
    return failure();
  std::vector<Outputs> all;
  for (const WalkOutputs &ofWalk : outputs) {
    for (auto [context, ofRank] : llvm::zip_equal(ranks, ofWalk))
      context.outputs = *ofRank;
    FailureOr<Outputs> joined = joinOutputs();
    if (failed(joined))
      return failure();
    all.push_back(std::move(*joined));
  }
  return all;
}

LogicalResult ScheduledMachine::runUntilThrough() {
  return runUntil([](const RankState &state) { return state.isThrough(); });
}

LogicalResult ScheduledMachine::drain() {
  return runUntil([](const RankState &state) { return state.isIdle(); });
}

LogicalResult ScheduledMachine::runUntil(llvm::function_ref<bool(const RankState &)> through) {
  size_t pairs = ranks.size() * streams.size();
  while (!llvm::all_of(states, through)) {
    // Looks around from a random place for something that can happen.
    std::optional<size_t> late, found;
    for (size_t i = 0, first = random() % pairs; i < pairs && !found; ++i) {
      size_t pair = first + i < pairs ? first + i : first + i - pairs;
      if (next[pair] == Next::nothing)
        continue;
      const StreamState &state = states[pair / streams.size()].streams[pair % streams.size()];
      if (next[pair] == Next::end ? state.lateToEnd : state.lateToBegin)
        late = pair;
      else
        found = pair;
    }
    if (!found && !late)
      return reportNoProgress();
    size_t pair = found ? *found : *late;
    int64_t rank = pair / streams.size();
    size_t stream = pair % streams.size();
    if (failed(next[pair] == Next::end ? end(rank, stream) : begin(rank, stream)))
      return failure();
  }
  return success();
}

std::unique_ptr<Machine> interpreter::detail::makeScheduledMachine(ModuleOp module,
                                                                   const MachineOptions &options) {
  return std::make_unique<ScheduledMachine>(module, options);
}
