//===- LaunchMutations.cpp ------------------------------------------------===//

#include "test/mutation/LaunchMutations.h"

#include "dialect/fsdp/CollectiveGroup.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "passes/schedule/ProgramOrder.h"
#include "passes/scheduled/ScheduleProblem.h"
#include "test/mutation/SegmentRun.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace ::fsdp::mutation;

const LaunchMutator::Kind LaunchMutator::kinds[] = {
    {"a wait dropped", false, &LaunchMutator::dropWait},
    {"a wait redirected", false, &LaunchMutator::redirectWait},
    {"a wait for another segment dropped", false, &LaunchMutator::dropAwait},
    {"a record of an event dropped", false, &LaunchMutator::dropRecord},
    {"a message dropped at one end", false, &LaunchMutator::dropMessage},
    {"a message repeated at one end", false, &LaunchMutator::repeatMessage},
    {"messages exchanged at one end", false, &LaunchMutator::exchangeMessages},
    {"contents of messages exchanged", false, &LaunchMutator::exchangeContents},
    {"a message to another rank", false, &LaunchMutator::changePeer},
    {"a message on another stream", false, &LaunchMutator::moveMessageToStream},
    {"neighbors exchanged", false, &LaunchMutator::exchangeNeighbors},
    {"a launch moved", false, &LaunchMutator::moveLaunch},
    {"a launch on another stream", false, &LaunchMutator::moveToStream},
    {"a place taken early", false, &LaunchMutator::takePlace},
    {"a place shifted", false, &LaunchMutator::shiftPlace},
    {"a drain dropped by one role", false, &LaunchMutator::dropDrain},
    {"a drain dropped by all roles", false, &LaunchMutator::dropDrains},
    {"an update of a drain dropped", false, &LaunchMutator::dropDrainedUpdate},
    {"a wait added", true, &LaunchMutator::addWait},
    {"independent launches exchanged", true, &LaunchMutator::exchangeIndependent},
    {"a group split", true, &LaunchMutator::splitGroup},
    {"a place behind all others", true, &LaunchMutator::givePlace},
};

LaunchMutator::LaunchMutator(ModuleOp module, std::mt19937 &random)
    : module(module), random(random) {
  int place = 0;
  module.walk([&](LaunchOp launch) { places[launch] = place++; });
}

Mutation LaunchMutator::mutate() {
  constexpr int attempts = 8; // Some kinds fit few launches, and would be rare otherwise.
  while (true) {
    const Kind &kind = kinds[draw(std::size(kinds))];
    for (int attempt = 0; attempt < attempts; ++attempt) {
      choose();
      if ((this->*kind.apply)())
        return {kind.what, kind.isHarmless};
    }
  }
}

void LaunchMutator::choose() {
  SmallVector<ProgramOp> programs(module.getOps<ProgramOp>());
  program = oneOf(programs);
  SmallVector<SegmentOp> segments(program.getOps<SegmentOp>());
  // A role without deferred updates has an empty drain.
  llvm::erase_if(segments, [](SegmentOp other) { return other.getOps<LaunchOp>().empty(); });
  segment = oneOf(segments);
  for (SegmentOp other : segments)
    if (draw(4) && other.getKind() == StepKind::train && !other.getDrain())
      segment = other;
}

SmallVector<LaunchOp> LaunchMutator::launches() {
  return llvm::to_vector(segment.getOps<LaunchOp>());
}

static bool isTransfer(LaunchOp launch) {
  SmallVector<CollectiveOpInterface> collectives = getCollectives(launch);
  return !collectives.empty() && collectives.front().getPeerOffset() != 0;
}

SmallVector<LaunchOp> LaunchMutator::messages() {
  SmallVector<LaunchOp> result;
  for (LaunchOp launch : launches())
    if (SmallVector<CollectiveOpInterface> collectives = getCollectives(launch);
        !collectives.empty() && llvm::any_of(collectives.front().getAxes(), [&](StringAttr axis) {
          return program.getRole().contains(axis);
        }))
      result.push_back(launch);
  return result;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

/// Keeps the waits of `launch` for which `keeps` holds; whether that changes any.
static bool keepWaits(LaunchOp launch, llvm::function_ref<bool(Value)> keeps) {
  SmallVector<Value> kept;
  for (Value wait : launch.getWait())
    if (keeps(wait))
      kept.push_back(wait);
  if (kept.size() == launch.getWait().size())
    return false;
  launch.getWaitMutable().assign(kept);
  return true;
}

bool LaunchMutator::dropWait() {
  LaunchOp launch = oneOf(launches());
  if (launch.getWait().empty())
    return false;
  Value dropped = oneOf(SmallVector<Value>(launch.getWait()));
  return keepWaits(launch, [&](Value wait) { return wait != dropped; });
}

bool LaunchMutator::redirectWait() {
  SmallVector<LaunchOp> all = launches();
  const int at = draw(all.size());
  if (at == 0 || all[at].getWait().empty())
    return false;
  SmallVector<Value> waits(all[at].getWait());
  waits[draw(waits.size())] = all[draw(at)].getDone();
  all[at].getWaitMutable().assign(waits);
  return true;
}

bool LaunchMutator::dropAwait() {
  SmallVector<std::pair<LaunchOp, Value>> awaits;
  for (LaunchOp launch : launches())
    for (Value wait : launch.getWait())
      if (wait.getDefiningOp<EventOp>())
        awaits.emplace_back(launch, wait);
  if (awaits.empty())
    return false;
  auto [launch, dropped] = oneOf(awaits);
  return keepWaits(launch, [event = dropped](Value wait) { return wait != event; });
}

bool LaunchMutator::dropRecord() {
  SmallVector<LaunchOp> recording;
  for (LaunchOp launch : launches())
    if (!launch.getRecords().empty())
      recording.push_back(launch);
  if (recording.empty())
    return false;
  LaunchOp launch = oneOf(recording);
  SmallVector<Value> records(launch.getRecords());
  records.erase(records.begin() + draw(records.size()));
  launch.getRecordsMutable().assign(records);
  return true;
}

/// Waits that some run of all roles keeps close no cycle, and orders more than before.
bool LaunchMutator::addWait() {
  const SegmentRun run(module, segment.getSymName(), random);
  SmallVector<LaunchOp> all = launches();
  const int late = draw(all.size());
  if (late == 0)
    return false;
  LaunchOp waiting = all[late], awaited = all[draw(late)];
  if (llvm::is_contained(waiting.getWait(), awaited.getDone()) || !run.precedes(awaited, waiting))
    return false;
  waiting.getWaitMutable().append(awaited.getDone());
  return true;
}

void LaunchMutator::repairWaits() {
  DenseSet<Value> issued;
  for (LaunchOp launch : segment.getOps<LaunchOp>()) {
    keepWaits(launch,
              [&](Value wait) { return wait.getDefiningOp<EventOp>() || issued.contains(wait); });
    issued.insert(launch.getDone());
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void LaunchMutator::eraseLaunch(LaunchOp launch) {
  for (LaunchOp other : SegmentOp(launch->getParentOfType<SegmentOp>()).getOps<LaunchOp>())
    keepWaits(other, [&](Value wait) { return wait != launch.getDone(); });
  launch.erase();
}

bool LaunchMutator::dropMessage() {
  SmallVector<LaunchOp> all = messages();
  if (all.empty())
    return false;
  eraseLaunch(oneOf(all));
  return true;
}

bool LaunchMutator::repeatMessage() {
  SmallVector<LaunchOp> all = messages();
  if (all.empty())
    return false;
  LaunchOp launch = oneOf(all);
  OpBuilder builder(launch->getContext());
  builder.setInsertionPointAfter(launch);
  places[builder.clone(*launch)] = places.lookup(launch);
  return true;
}

void LaunchMutator::exchange(LaunchOp first, LaunchOp second) {
  const SmallVector<Value> waits(first.getWait()), records(first.getRecords());
  first.getWaitMutable().assign(SmallVector<Value>(second.getWait()));
  first.getRecordsMutable().assign(SmallVector<Value>(second.getRecords()));
  second.getWaitMutable().assign(waits);
  second.getRecordsMutable().assign(records);
  // What waits for the launch at a place waits for the other one there.
  for (LaunchOp launch : segment.getOps<LaunchOp>()) {
    SmallVector<Value> now(launch.getWait());
    for (Value &wait : now)
      wait = wait == first.getDone()    ? second.getDone()
             : wait == second.getDone() ? first.getDone()
                                        : wait;
    launch.getWaitMutable().assign(now);
  }
  Operation *behind = first->getNextNode();
  first->moveBefore(second);
  if (behind != second)
    second->moveBefore(behind);
  else
    second->moveBefore(first);
}

/// Two sends, or two receives, one after the other among these: neighbors, or any.
static std::pair<LaunchOp, LaunchOp> findPair(ArrayRef<LaunchOp> all, bool areNear,
                                              std::mt19937 &random) {
  SmallVector<std::pair<LaunchOp, LaunchOp>> pairs;
  auto nameOf = [](LaunchOp launch) { return getCollectives(launch).front()->getName(); };
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j)
      if (nameOf(all[i]) == nameOf(all[j])) {
        pairs.emplace_back(all[i], all[j]);
        if (areNear)
          break;
      }
  if (pairs.empty())
    return {};
  return pairs[random() % pairs.size()];
}

/// Changes the order in which messages are issued; of the waits, those remain that can be kept.
bool LaunchMutator::exchangeMessages() {
  auto [first, second] = findPair(messages(), draw(3) != 0, random);
  if (!first)
    return false;
  Operation *between = second->getPrevNode();
  second->moveBefore(first);
  if (between != first && draw(2)) // else the first stays in front of what precedes the second
    first->moveAfter(between);
  repairWaits();
  return true;
}

/// Two messages of one type change their places: the messages, and not what waits for them.
bool LaunchMutator::exchangeContents() {
  auto [first, second] = findPair(messages(), draw(3) != 0, random);
  if (!first || first.getStream() != second.getStream())
    return false;
  exchange(first, second);
  return true;
}

bool LaunchMutator::changePeer() {
  SmallVector<LaunchOp> all = messages();
  llvm::erase_if(all, [](LaunchOp launch) { return !isTransfer(launch); });
  if (all.empty())
    return false;
  Operation *op = getCollectives(oneOf(all)).front();
  const int64_t offset = cast<CollectiveOpInterface>(op).getPeerOffset();
  const DictionaryAttr before = op->getAttrDictionary();
  Builder builder(op->getContext());
  const int64_t others[] = {-offset, offset + 1, offset - 1, 2 * offset};
  if (draw(4) == 0) {
    if (op->hasAttr("ring"))
      op->removeAttr("ring");
    else
      op->setAttr("ring", builder.getUnitAttr());
  } else {
    op->setAttr("offset", builder.getI64IntegerAttr(others[draw(4)]));
  }
  ScopedDiagnosticHandler silent(op->getContext(), [](Diagnostic &) { return success(); });
  if (succeeded(verify(module)))
    return true;
  op->setAttrs(before);
  return false;
}

bool LaunchMutator::changeStream(LaunchOp launch) {
  SmallVector<StringAttr> streams;
  module.walk([&](LaunchOp other) {
    if (other.getStream() != launch.getStream() &&
        !llvm::is_contained(streams, other.getStreamAttr()))
      streams.push_back(other.getStreamAttr());
  });
  launch.setStreamAttr(oneOf(streams));
  return true;
}

bool LaunchMutator::moveMessageToStream() {
  SmallVector<LaunchOp> all = messages();
  return !all.empty() && changeStream(oneOf(all));
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

bool LaunchMutator::exchangeNeighbors() {
  SmallVector<LaunchOp> all = launches();
  if (all.size() < 2)
    return false;
  const int at = draw(all.size() - 1);
  all[at + 1]->moveBefore(all[at]);
  repairWaits();
  return true;
}

bool LaunchMutator::moveLaunch() {
  SmallVector<LaunchOp> all = launches();
  LaunchOp launch = oneOf(all), other = oneOf(all);
  if (launch == other)
    return false;
  launch->moveBefore(other);
  repairWaits();
  return true;
}

bool LaunchMutator::moveToStream() { return changeStream(oneOf(launches())); }

/// Neighbors on different streams of which neither waits for the other: streams and waits keep the
/// same launches apart.
bool LaunchMutator::exchangeIndependent() {
  SmallVector<LaunchOp> all = launches();
  if (all.size() < 2)
    return false;
  const int at = draw(all.size() - 1);
  LaunchOp first = all[at], second = all[at + 1];
  if (first.getStream() == second.getStream() ||
      llvm::is_contained(second.getWait(), first.getDone()))
    return false;
  auto share = [](ValueRange one, ValueRange other) {
    return llvm::any_of(one, [&](Value value) { return llvm::is_contained(other, value); });
  };
  // An event denotes what recorded it last.
  if (share(first.getRecords(), second.getWait()) || share(second.getRecords(), first.getWait()) ||
      share(first.getRecords(), second.getRecords()))
    return false;
  second->moveBefore(first);
  return true;
}

/// Leaves the collectives [begin, end) of `launch`.
static void keepCollectives(LaunchOp launch, size_t begin, size_t end) {
  Block &body = launch.getBody().front();
  SmallVector<CollectiveOpInterface> all = getCollectives(launch);
  SmallVector<Value> ins(launch.getIns()), outs(launch.getOuts()), yielded;
  for (size_t i = begin; i < end; ++i)
    yielded.push_back(all[i].getRecvValue());
  body.getTerminator()->setOperands(yielded);
  for (size_t i = all.size(); i-- > 0;)
    if (i < begin || i >= end) {
      all[i]->erase();
      body.eraseArgument(static_cast<unsigned>(i));
    }
  launch.getInsMutable().assign(ArrayRef<Value>(ins).slice(begin, end - begin));
  launch.getOutsMutable().assign(ArrayRef<Value>(outs).slice(begin, end - begin));
}

/// Ranks of one role run one program, so all of a group within a stage split it.
bool LaunchMutator::splitGroup() {
  SmallVector<LaunchOp> groups;
  for (LaunchOp launch : launches())
    if (getCollectives(launch).size() > 1)
      groups.push_back(launch);
  if (groups.empty())
    return false;
  LaunchOp second = oneOf(groups);
  OpBuilder builder(second);
  auto first = cast<LaunchOp>(builder.clone(*second));
  places[first] = places.lookup(second);
  first.getRecordsMutable().clear();
  const size_t count = getCollectives(second).size(), at = 1 + draw(count - 1);
  keepCollectives(first, 0, at);
  keepCollectives(second, at, count);
  return true;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

static SmallVector<BufferOp> buffersOf(ProgramOp program) {
  SmallVector<BufferOp> buffers;
  program.walk([&](BufferOp buffer) { buffers.push_back(buffer); });
  return buffers;
}

static int64_t sizeOf(BufferOp buffer) { return buffer.getType().getSizeInBytes(); }

bool LaunchMutator::takePlace() {
  SmallVector<BufferOp> buffers = buffersOf(program);
  BufferOp buffer = oneOf(buffers), other = oneOf(buffers);
  if (draw(2)) { // of a message
    SmallVector<LaunchOp> all = messages();
    if (all.empty())
      return false;
    LaunchOp message = oneOf(all);
    buffer = resolveBuffer(message.getOuts().empty() ? message.getIns().front()
                                                     : message.getOuts().front())
                 .op;
  }
  if (buffer == other || buffer.getOffset() == other.getOffset() ||
      static_cast<int64_t>(*other.getOffset()) + sizeOf(buffer) >
          static_cast<int64_t>(*program.getArena()))
    return false;
  buffer.setOffset(*other.getOffset());
  return true;
}

bool LaunchMutator::shiftPlace() {
  BufferOp buffer = oneOf(buffersOf(program));
  const int64_t by = 64 * (1 + draw(4)) * (draw(2) ? 1 : -1);
  const int64_t offset = static_cast<int64_t>(*buffer.getOffset()) + by;
  if (offset < 0 || offset + sizeOf(buffer) > static_cast<int64_t>(*program.getArena()))
    return false;
  buffer.setOffset(offset);
  return true;
}

bool LaunchMutator::givePlace() {
  BufferOp buffer = oneOf(buffersOf(program));
  const int64_t offset = llvm::alignTo(*program.getArena(), 64);
  buffer.setOffset(offset);
  program.setArena(offset + llvm::alignTo(sizeOf(buffer), 64));
  return true;
}

//===----------------------------------------------------------------------===//
// Drains
//===----------------------------------------------------------------------===//

/// Removes the drain of `from`, and what leads to it.
void LaunchMutator::eraseDrain(ProgramOp from) {
  SegmentOp drain;
  for (SegmentOp other : from.getOps<SegmentOp>())
    if (other.getDrain())
      drain = other;
  auto name = FlatSymbolRefAttr::get(drain.getSymNameAttr());
  auto names = [](ArrayAttr list) { return list.getAsRange<FlatSymbolRefAttr>(); };
  for (SegmentOp other : from.getOps<SegmentOp>()) {
    llvm::SetVector<Attribute> next;
    for (FlatSymbolRefAttr after : names(other.getNext())) {
      if (after != name)
        next.insert(after);
      else // what follows the drain follows its predecessors
        for (FlatSymbolRefAttr later : names(drain.getNext()))
          if (later != name)
            next.insert(later);
    }
    other.setNextAttr(ArrayAttr::get(module.getContext(), next.getArrayRef()));
  }
  for (WalkOp walk : llvm::make_early_inc_range(from.getOps<WalkOp>()))
    if (llvm::is_contained(walk.getSegments(), Attribute(name)))
      walk.erase();
  drain.erase();
}

static bool hasDrain(ModuleOp module) {
  return module
      .walk(
          [](SegmentOp segment) { return WalkResult(!segment.getDrain() ? success() : failure()); })
      .wasInterrupted();
}

bool LaunchMutator::dropDrain() {
  if (!hasDrain(module))
    return false;
  eraseDrain(program);
  return true;
}

bool LaunchMutator::dropDrains() {
  if (!hasDrain(module))
    return false;
  for (ProgramOp each : module.getOps<ProgramOp>())
    eraseDrain(each);
  return true;
}

bool LaunchMutator::dropDrainedUpdate() {
  SmallVector<LaunchOp> updates;
  program.walk([&](OptimizerStepOp update) {
    if (update->getParentOfType<SegmentOp>().getDrain())
      updates.push_back(update->getParentOfType<LaunchOp>());
  });
  if (updates.empty())
    return false;
  eraseLaunch(oneOf(updates));
  return true;
}

//===----------------------------------------------------------------------===//
// The order of the compiler
//===----------------------------------------------------------------------===//

std::string LaunchMutator::findReordered() const {
  const ScheduleProblem schedule(module);
  for (auto [role, programOps] : llvm::enumerate(schedule.launches))
    for (auto [number, ops] : llvm::enumerate(programOps)) {
      std::vector<schedule::Launch> issued = schedule.problem.roles[role].segments[number].launches;
      std::vector<int> order;
      for (auto [launch, op] : llvm::zip_equal(issued, ops)) {
        order.push_back(places.lookup(op));
        // Updates note the first parameter whose gradient is not finite.
        if (!launch.updates.empty())
          for (const schedule::Access &write : launch.writes)
            if (schedule.buffers[role][write.buffer] ==
                resolveBuffer(LaunchOp(op).getStepState()).op)
              launch.minima.push_back(write);
      }
      if (std::optional<schedule::ReorderedAccess> found = schedule::findReordered(issued, order))
        return "'" + issued[found->later].name + "' is issued before '" +
               issued[found->earlier].name + "'";
    }
  return {};
}
