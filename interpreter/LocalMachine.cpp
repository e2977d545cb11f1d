//===- LocalMachine.cpp - ranks that meet at collectives ------------------===//
//
// Each rank runs its program up to the next collective and waits there. A collective takes place
// when every rank of its group waits at an equal one. A send never waits; its value is kept until
// the other rank receives it. When no rank can continue and not all are done, the run fails with a
// message about which ranks wait for which.
//
//===----------------------------------------------------------------------===//

#include "interpreter/Program.h"
#include "interpreter/ShardedMachine.h"
#include <deque>
#include <map>
#include <tuple>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

class LocalMachine : public ShardedMachine {
public:
  using ShardedMachine::ShardedMachine;

  LogicalResult compile() override {
    if (failed(collectPrograms()))
      return failure();
    for (ProgramOp program : programs) {
      compiled.emplace_back();
      for (const std::string &segment : segments) {
        auto op = program.lookupSymbol<SegmentOp>(segment);
        Segment &added = compiled.back().emplace_back();
        if (!op)
          continue;
        FailureOr<CompiledBlock> block =
            CompiledBlock::compile(op.getBody().front(), options.numerics);
        if (failed(block))
          return failure();
        added.block = std::move(*block);
        added.loadsInputs = !op.getOps<InputOp>().empty();
      }
    }
    for (RankContext &context : ranks)
      context.isObserved = options.observe != nullptr;
    return success();
  }

protected:
  LogicalResult runRanks(ArrayRef<SmallVector<size_t>> runs) override;
  const Tensor &shard(int64_t rank, StringRef storage, StringRef what) override {
    return ranks[rank].kept[{storage.str(), what.str()}];
  }
  void setShard(int64_t rank, StringRef storage, StringRef what, const Tensor &value) override {
    ranks[rank].kept[{storage.str(), what.str()}] = value;
  }

private:
  /// A segment of a program.
  struct Segment {
    CompiledBlock block;
    bool loadsInputs = false;
  };

  /// The position of a rank in its walk.
  struct Cursor {
    SmallVector<const Segment *> runs; ///< the current segment and the following ones
    size_t run = 0, next = 0;
    std::vector<Tensor> values;

    bool done() const { return run == runs.size(); }
    const Instruction &instruction() const { return runs[run]->block.instructions[next]; }
    /// The collective that the rank waits at, or null when it is done.
    Operation *waitsAt() const { return done() ? nullptr : instruction().op; }
  };

  LogicalResult advanceTo(int64_t rank, Cursor &cursor);
  FailureOr<bool> meet(int64_t rank, MutableArrayRef<Cursor> cursors);
  FailureOr<bool> transfer(int64_t rank, Cursor &cursor);
  /// Continues after the collective at which `rank` waits; `result` is its result, if it has one.
  LogicalResult pass(int64_t rank, Cursor &cursor, Tensor result);
  LogicalResult reportNoProgress(ArrayRef<Cursor> cursors);
  LogicalResult checkAllReceived();

  struct Sent {
    Operation *op;
    Tensor value;
  };
  /// The key by which sends and receives match; `step`: the offset of the send.
  struct Channel {
    const void *axes;
    int64_t step;
    bool inRing;
    int64_t sender, receiver;

    bool operator<(const Channel &other) const {
      auto key = [](const Channel &channel) {
        return std::tie(channel.axes, channel.step, channel.inRing, channel.sender,
                        channel.receiver);
      };
      return key(*this) < key(other);
    }
  };
  /// Values that are sent and not yet received.
  std::map<Channel, std::deque<Sent>> underWay;

  /// By program, then by segment.
  std::vector<std::vector<Segment>> compiled;
};

} // namespace

/// Runs up to the next collective or to the end.
LogicalResult LocalMachine::advanceTo(int64_t rank, Cursor &cursor) {
  for (; !cursor.done(); ++cursor.run, cursor.next = 0) {
    const Segment &segment = *cursor.runs[cursor.run];
    if (cursor.next == 0)
      cursor.values.assign(segment.block.numValues, Tensor());
    for (; cursor.next < segment.block.instructions.size(); ++cursor.next) {
      if (!cursor.instruction().kernel)
        return success();
      if (failed(CompiledBlock::run(cursor.instruction(), ranks[rank], cursor.values)))
        return failure();
    }
    ranks[rank].batch.part += segment.loadsInputs;
  }
  return success();
}

LogicalResult LocalMachine::pass(int64_t rank, Cursor &cursor, Tensor result) {
  const Instruction &instruction = cursor.instruction();
  ++cursor.next;
  if (instruction.numResults)
    cursor.values[instruction.firstResult] = std::move(result);
  CompiledBlock::observe(instruction, ranks[rank], cursor.values);
  for (unsigned dead : instruction.dead)
    cursor.values[dead] = Tensor();
  return advanceTo(rank, cursor);
}

/// Performs the transfer that `rank` waits at; false if the value that it receives has not been
/// sent.
FailureOr<bool> LocalMachine::transfer(int64_t rank, Cursor &cursor) {
  auto op = cast<CollectiveOpInterface>(cursor.waitsAt());
  std::optional<int64_t> peer = peerOf(op, rank);
  const void *axes = getAxisArray(op.getContext(), op.getAxes()).getAsOpaquePointer();
  Tensor result;
  if (op.getSendValue()) {
    if (peer)
      underWay[{axes, op.getPeerOffset(), op.isInRing(), rank, *peer}].push_back(
          {op, cursor.values[cursor.instruction().operands[0]]});
  } else if (!peer) {
    result = Tensor(cast<RankedTensorType>(op.getRecvValue().getType()));
  } else {
    std::deque<Sent> &sent = underWay[{axes, -op.getPeerOffset(), op.isInRing(), *peer, rank}];
    if (sent.empty())
      return false;
    if (failed(checkTransfer(*peer, sent.front().op, rank, op)))
      return failure();
    result = std::move(sent.front().value);
    sent.pop_front();
  }
  if (failed(pass(rank, cursor, std::move(result))))
    return failure();
  return true;
}

LogicalResult LocalMachine::checkAllReceived() {
  for (auto &[channel, sent] : underWay)
    if (!sent.empty())
      return sent.front().op->emitError()
             << "rank " << channel.receiver << " does not receive the value that rank "
             << channel.sender << " sends here: it ends the step without a matching 'fsdp.receive'";
  return success();
}

/// Performs the collective that `rank` waits at if all of its group wait there too.
FailureOr<bool> LocalMachine::meet(int64_t rank, MutableArrayRef<Cursor> cursors) {
  Operation *op = cursors[rank].waitsAt();
  if (isTransfer(op))
    return transfer(rank, cursors[rank]);
  ArrayRef<int64_t> group = groupOf(op, rank);
  for (int64_t member : group) {
    Operation *other = cursors[member].waitsAt();
    // Members that wait for another group must come here first.
    if (!other || !mayMeet(op, other))
      return false;
  }
  SmallVector<Tensor> operands;
  for (int64_t member : group) {
    Cursor &cursor = cursors[member];
    const Instruction &instruction = cursor.instruction();
    if (failed(checkSame(rank, op, member, instruction.op)))
      return failure();
    operands.push_back(cursor.values[instruction.operands[0]]);
  }
  SmallVector<Tensor> results(group.size());
  performCollective(op, operands, results, options.numerics);
  for (auto [member, result] : llvm::zip_equal(group, results))
    if (failed(pass(member, cursors[member], std::move(result))))
      return failure();
  return true;
}

LogicalResult LocalMachine::reportNoProgress(ArrayRef<Cursor> cursors) {
  std::string reasons;
  llvm::raw_string_ostream os(reasons);
  int64_t first = 0;
  while (cursors[first].done())
    ++first;
  auto describe = [&](int64_t rank) {
    os << "rank " << rank;
    if (Operation *op = cursors[rank].waitsAt())
      os << " waits at '" << signatureOf(op) << "'";
    else
      os << " is done";
  };
  InFlightDiagnostic diagnostic = cursors[first].waitsAt()->emitError()
                                  << "deadlock: no rank can continue: rank " << first
                                  << " waits for a collective that other ranks do not join";
  for (auto [rank, cursor] : llvm::enumerate(cursors)) {
    reasons.clear();
    describe(rank);
    Operation *op = cursor.waitsAt();
    Diagnostic &note = diagnostic.attachNote(op ? op->getLoc() : module.getLoc()) << reasons;
    if (op)
      note << (isTransfer(op) ? ", for " : ", with ") << describeWait(op, rank);
  }
  return diagnostic;
}

LogicalResult LocalMachine::runRanks(ArrayRef<SmallVector<size_t>> runs) {
  std::vector<Cursor> cursors(ranks.size());
  underWay.clear();
  for (auto [rank, cursor] : llvm::enumerate(cursors)) {
    size_t program = programOf[rank];
    for (size_t segment : runs[program])
      cursor.runs.push_back(&compiled[program][segment]);
    if (failed(advanceTo(rank, cursor)))
      return failure();
  }
  while (true) {
    bool progress = false, done = true;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (cursors[rank].done())
        continue;
      FailureOr<bool> met = meet(rank, cursors);
      if (failed(met))
        return failure();
      progress |= *met;
      done &= cursors[rank].done();
    }
    if (done)
      return checkAllReceived();
    if (!progress)
      return reportNoProgress(cursors);
  }
}

std::unique_ptr<Machine> interpreter::detail::makeLocalMachine(ModuleOp module,
                                                               const MachineOptions &options) {
  return std::make_unique<LocalMachine>(module, options);
}
