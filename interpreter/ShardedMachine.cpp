//===- ShardedMachine.cpp - common code of local and scheduled machines ---===//

#include "interpreter/ShardedMachine.h"
#include "interpreter/Rounding.h"

#include "llvm/ADT/StringExtras.h"
#include <utility>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

ShardedMachine::ShardedMachine(ModuleOp module, const MachineOptions &options)
    : Machine(module, options), mesh(getMesh(module)), ranks(mesh.getNumRanks()) {
  for (auto [rank, context] : llvm::enumerate(ranks)) {
    context.rank = rank;
    context.mesh = mesh;
    context.options = &this->options;
  }
}

void ShardedMachine::clear() {
  evaluating = deferred = false;
  issuedSteps = 0;
  for (RankContext &context : ranks) {
    context.stepState = StepState();
    context.kept.clear();
  }
}

LogicalResult ShardedMachine::collectPrograms() {
  programOf.assign(ranks.size(), 0);
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      SmallVector<int64_t> coordinates = mesh.getCoordinates(rank);
      bool plays = llvm::all_of(program.getRole(), [&](NamedAttribute entry) {
        return coordinates[mesh.getAxisIndex(entry.getName())] ==
               cast<IntegerAttr>(entry.getValue()).getInt();
      });
      if (plays)
        programOf[rank] = programs.size();
    }
    for (SegmentOp segment : program.getOps<SegmentOp>())
      if (!llvm::is_contained(segments, segment.getSymName()))
        segments.push_back(segment.getSymName().str());
    programs.push_back(program);
  }
  for (auto [number, program] : llvm::enumerate(programs)) {
    for (WalkOp walk : program.getOps<WalkOp>()) {
      WalkRuns &runs = addWalk(walk.getSymName());
      for (auto [name, times] :
           llvm::zip_equal(walk.getSegments().getAsRange<FlatSymbolRefAttr>(), walk.getTimes()))
        addSegment(runs, number, program.lookupSymbol<SegmentOp>(name.getAttr()), times);
    }
    if (program.getOps<WalkOp>().empty())
      for (SegmentOp segment : program.getOps<SegmentOp>())
        addSegment(addWalk(segment.getSymName()), number, segment, 1);
  }
  if (programs.empty())
    return module.emitError() << "has no 'fsdp.program' to run, expected one for every rank";
  for (StorageOp storage : module.getOps<StorageOp>()) {
    storages.emplace_back(storage);
    for (Attribute state : storage.getStates())
      addState(cast<StringAttr>(state).getValue());
  }
  return success();
}

ShardedMachine::WalkRuns &ShardedMachine::addWalk(StringRef name) {
  auto it = llvm::find(walks, name);
  if (it == walks.end()) {
    it = walks.insert(it, name.str());
    walkRuns.emplace_back().ofProgram.resize(programs.size());
    walkRuns.back().advances.resize(programs.size());
  }
  return walkRuns[it - walks.begin()];
}

void ShardedMachine::addSegment(WalkRuns &walk, size_t program, SegmentOp segment, int64_t times) {
  size_t number = llvm::find(segments, segment.getSymName()) - segments.begin();
  walk.ofProgram[program].append(times, number);
  walk.evaluates |= segment.getKind() == StepKind::evaluate;
  walk.drains |= segment.getDrain();
  segment.walk([&](AdvanceOp) { walk.advances[program] += times; });
}

FailureOr<std::pair<const StorageLayout *, const StorageLayout::Member *>>
ShardedMachine::find(StringRef parameter) {
  for (const StorageLayout &storage : storages)
    for (const StorageLayout::Member &member : storage.getMembers())
      if (ParamOp(member.param).getSymName() == parameter)
        return std::make_pair(&storage, &member);
  return module.emitError() << "has no storage for parameter '" << parameter << "'";
}

bool ShardedMachine::owns(size_t rank, const StorageLayout &storage) {
  return storage.getOp().isOwnedBy(programs[programOf[rank]]);
}

/// The tensor of the storage that holds `what` of a parameter: the shard of that name, or the copy
/// if there is no shard of the parameter; "" if there is none.
static StringRef findKept(const StorageLayout &storage, StringRef what) {
  StorageOp op = storage.getOp();
  if (what == StorageOp::parameter && !op.keepsShard())
    return StorageOp::copy;
  return op.getKeptType(what) ? what : StringRef();
}

FailureOr<Tensor> ShardedMachine::get(StringRef parameter, StringRef what) {
  auto found = find(parameter);
  if (failed(found) || failed(performDeferred()) || failed(finish()))
    return failure();
  auto [storage, member] = *found;
  ParamOp param = member->param;
  StringRef kept = findKept(*storage, what);
  if (kept.empty())
    return Tensor(param.getTensorType());
  Tensor whole = Tensor::poison(param.getTensorType());
  std::vector<int64_t> writer(whole.size(), -1);
  Element *to = whole.mutableData();
  std::optional<std::pair<int64_t, int64_t>> conflict;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!owns(rank, *storage))
      continue;
    const Tensor &part = shard(rank, storage->getOp().getSymName(), kept);
    if (!part)
      return param.emitError() << "rank " << rank << " holds no '" << what << "' of '" << parameter
                               << "': no buffer holds its storage '"
                               << StorageOp(storage->getOp()).getSymName()
                               << "', or it was overwritten";
    storage->forEach(*member, mesh, rank, kept, [&](int64_t local, int64_t global) {
      Element value = part.data()[local];
      bool same = value.f == to[global].f || (value.f != value.f && to[global].f != to[global].f);
      if (writer[global] >= 0 && !same && !conflict)
        conflict = {writer[global], rank};
      to[global] = value;
      writer[global] = rank;
    });
  }
  if (conflict)
    return param.emitError() << "ranks " << conflict->first << " and " << conflict->second
                             << " keep different copies of '" << what << "' of '" << parameter
                             << "'";
  return whole;
}

LogicalResult ShardedMachine::set(StringRef parameter, StringRef what, const Tensor &value) {
  auto found = find(parameter);
  if (failed(found) || failed(performDeferred()) || failed(finish()))
    return failure();
  auto [storage, member] = *found;
  StringRef name = storage->getOp().getSymName();
  // The copy follows the parameter.
  SmallVector<StringRef, 2> kept;
  if (StringRef first = findKept(*storage, what); !first.empty())
    kept.push_back(first);
  if (what == StorageOp::parameter && StorageOp(storage->getOp()).getCopy() &&
      kept.front() != StorageOp::copy)
    kept.push_back(StorageOp::copy);
  for (StringRef place : kept) {
    RankedTensorType type = StorageOp(storage->getOp()).getKeptType(place);
    Type element = type.getElementType();
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (!owns(rank, *storage))
        continue;
      Tensor part = shard(rank, name, place);
      if (!part) {
        part = options.poison ? Tensor::poison(type) : Tensor(type);
        // Compute reads the padding in a member, but no bytes after the last member.
        Element *padding = part.mutableData();
        for (const StorageLayout::Member &other : storage->getMembers())
          storage->forEach(
              other, mesh, rank, place, [](int64_t, int64_t) {},
              [&](int64_t local) { padding[local] = Element(); });
      }
      Element *to = part.mutableData();
      storage->forEach(*member, mesh, rank, place,
                       [&, from = value.data()](int64_t local, int64_t global) {
                         to[local] = from[global];
                         if (place == StorageOp::copy)
                           to[local].f = roundTo(to[local].f, element, options.numerics);
                       });
      setShard(rank, name, place, part);
    }
  }
  return success();
}

const ShardedMachine::Meeting &ShardedMachine::meetingOf(Operation *op) {
  std::unique_ptr<Meeting> &meeting = meetings[op];
  if (meeting)
    return *meeting;
  meeting = std::make_unique<Meeting>();
  auto collective = cast<CollectiveOpInterface>(op);
  const SmallVector<StringAttr> axes = collective.getAxes();
  meeting->axes = getAxisArray(op->getContext(), axes);
  meeting->offset = collective.getPeerOffset();
  meeting->inRing = collective.isInRing();
  meeting->sends = collective.getSendValue() != nullptr;
  meeting->signature = signatureOf(op);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const SmallVector<int64_t> &group = meeting->groups.emplace_back(mesh.getGroup(rank, axes));
    if (meeting->offset == 0)
      continue;
    std::optional<int64_t> peer = getPeer(op, llvm::find(group, rank) - group.begin());
    meeting->peers.push_back(peer ? std::optional<int64_t>(group[*peer]) : std::nullopt);
  }
  return *meeting;
}

bool ShardedMachine::mayMeet(Operation *op, Operation *other) {
  return op == other || (!isTransfer(other) && meetingOf(op).axes == meetingOf(other).axes);
}

bool ShardedMachine::isCounterpart(Operation *op, Operation *other) {
  const Meeting &mine = meetingOf(op), &theirs = meetingOf(other);
  return theirs.offset == -mine.offset && theirs.inRing == mine.inRing &&
         theirs.axes == mine.axes && theirs.sends != mine.sends;
}

LogicalResult ShardedMachine::checkTransfer(int64_t sender, Operation *send, int64_t receiver,
                                            Operation *receive) {
  Type given = cast<CollectiveOpInterface>(send).getSendValue().getType();
  Type expected = cast<CollectiveOpInterface>(receive).getRecvValue().getType();
  if (given == expected)
    return success();
  InFlightDiagnostic diagnostic = receive->emitError()
                                  << "rank " << receiver << " receives " << expected
                                  << ", but rank " << sender << " sends " << given;
  diagnostic.attachNote(send->getLoc()) << "it is sent here";
  return diagnostic;
}

std::string ShardedMachine::describeWait(Operation *op, int64_t rank) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (isTransfer(op)) {
    os << "rank " << *peerOf(op, rank)
       << (meetingOf(op).sends ? ", which must receive it" : ", which must send it");
    return text;
  }
  os << "ranks [";
  llvm::interleaveComma(groupOf(op, rank), os);
  os << "]";
  return text;
}

LogicalResult ShardedMachine::checkSame(int64_t rank, ArrayRef<Operation *> ops, int64_t otherRank,
                                        ArrayRef<Operation *> others) {
  if (ops == others)
    return success();
  auto signatures = [&](ArrayRef<Operation *> group) {
    return llvm::map_range(
        group, [&](Operation *op) -> const std::string & { return meetingOf(op).signature; });
  };
  if (llvm::equal(signatures(ops), signatures(others)))
    return success();
  std::string mine = llvm::join(signatures(ops), " and ");
  std::string theirs = llvm::join(signatures(others), " and ");
  InFlightDiagnostic diagnostic = ops.front()->emitError()
                                  << "ranks call different collectives: rank " << rank << " at '"
                                  << mine << "', rank " << otherRank << " at '" << theirs << "'";
  diagnostic.attachNote(others.front()->getLoc()) << "rank " << otherRank << " is here";
  return diagnostic;
}

FailureOr<Outputs> ShardedMachine::joinOutputs() {
  Outputs joined;
  std::map<std::string, int64_t> writers;
  for (RankContext &context : ranks)
    for (auto &[name, value] : context.outputs) {
      auto [it, isNew] = joined.try_emplace(name, value);
      if (isNew)
        writers[name] = context.rank;
      else if (!it->second.equals(value))
        return module.emitError() << "rank " << context.rank << " logs '" << name
                                  << "' = " << value.getNumber(0) << ", rank " << writers[name]
                                  << " logs " << it->second.getNumber(0);
    }
  return joined;
}

LogicalResult ShardedMachine::performDeferred() {
  if (!std::exchange(deferred, false))
    return success();
  for (const WalkRuns &walk : walkRuns)
    if (walk.drains && failed(runRanks(walk.ofProgram)))
      return failure();
  return success();
}

FailureOr<Outputs> ShardedMachine::run(StringRef name, const DataSet &data) {
  FailureOr<ArrayRef<SmallVector<size_t>>> runs = enter(name, data);
  if (failed(runs) || failed(runRanks(*runs)))
    return failure();
  return joinOutputs();
}

FailureOr<ArrayRef<SmallVector<size_t>>> ShardedMachine::enter(StringRef name,
                                                               const DataSet &data) {
  auto it = llvm::find(walks, name);
  if (it == walks.end())
    return module.emitError() << "has no segment '" << name << "'";
  const WalkRuns &walk = walkRuns[it - walks.begin()];
  // The driver sets the number of valid samples, which it can do only while no launch reads it.
  if (walk.evaluates && failed(performDeferred()))
    return failure();
  if ((walk.evaluates || evaluating) && failed(finish()))
    return failure();
  evaluating = walk.evaluates;
  deferred = !walk.evaluates && !walk.drains;
  for (RankContext &context : ranks) {
    context.data = &data;
    context.batch = {issuedSteps, 0};
    context.outputs.clear();
  }
  // Programs finish steps together; otherwise `finish` reports an error.
  issuedSteps += *llvm::max_element(walk.advances);
  return ArrayRef<SmallVector<size_t>>(walk.ofProgram);
}

LogicalResult ShardedMachine::finish() {
  if (failed(drain()))
    return failure();
  for (RankContext &context : ranks)
    if (context.stepState.step != ranks[0].stepState.step ||
        context.stepState.updates != ranks[0].stepState.updates)
      return module.emitError() << "ranks 0 and " << context.rank
                                << " disagree on the number of steps or updates done";
  stepState = ranks[0].stepState;
  return success();
}
