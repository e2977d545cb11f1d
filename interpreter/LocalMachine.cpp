//===- LocalMachine.cpp - ranks that meet at collectives ------------------===//
//
// Each rank runs its program up to the next collective and waits there. A collective takes place
// when every rank of its group waits at an equal one. When no rank can go on and not all are done,
// the run fails and says who waits for whom.
//
//===----------------------------------------------------------------------===//

#include "interpreter/Program.h"
#include "interpreter/ShardedMachine.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

class LocalMachine : public ShardedMachine {
public:
  using ShardedMachine::ShardedMachine;

  LogicalResult compile() {
    if (failed(collectPrograms()))
      return failure();
    for (ProgramOp program : programs) {
      blocks.emplace_back();
      for (const std::string &segment : segments) {
        auto op = program.lookupSymbol<SegmentOp>(segment);
        if (!op) {
          blocks.back().emplace_back();
          continue;
        }
        FailureOr<CompiledBlock> block =
            CompiledBlock::compile(op.getBody().front(), options.numerics);
        if (failed(block))
          return failure();
        blocks.back().push_back(std::move(*block));
      }
    }
    return initialize();
  }

protected:
  LogicalResult runRanks(size_t segment) override;
  const Tensor &shard(int64_t rank, StringRef storage, StringRef what) override {
    return ranks[rank].kept[{storage.str(), what.str()}];
  }
  void setShard(int64_t rank, StringRef storage, StringRef what, const Tensor &value) override {
    ranks[rank].kept[{storage.str(), what.str()}] = value;
  }

private:
  /// Where a rank stands in its segment.
  struct Cursor {
    const CompiledBlock *block;
    size_t next = 0;
    std::vector<Tensor> values;

    bool done() const { return next == block->instructions.size(); }
    /// The collective that the rank waits at, or null when it is done.
    Operation *waitsAt() const { return done() ? nullptr : block->instructions[next].op; }
  };

  LogicalResult advanceTo(int64_t rank, Cursor &cursor);
  FailureOr<bool> meet(int64_t rank, MutableArrayRef<Cursor> cursors);
  LogicalResult reportNoProgress(ArrayRef<Cursor> cursors);

  /// By program, then by segment.
  std::vector<std::vector<CompiledBlock>> blocks;
};

} // namespace

/// Runs up to the next collective or to the end.
LogicalResult LocalMachine::advanceTo(int64_t rank, Cursor &cursor) {
  for (; !cursor.done(); ++cursor.next) {
    const Instruction &instruction = cursor.block->instructions[cursor.next];
    if (!instruction.kernel)
      return success();
    if (failed(CompiledBlock::run(instruction, ranks[rank], cursor.values)))
      return failure();
  }
  return success();
}

/// Performs the collective that `rank` waits at if all of its group wait there too.
FailureOr<bool> LocalMachine::meet(int64_t rank, MutableArrayRef<Cursor> cursors) {
  Operation *op = cursors[rank].waitsAt();
  ArrayRef<int64_t> group = groupOf(op, rank);
  for (int64_t member : group) {
    Operation *other = cursors[member].waitsAt();
    // Members that wait for another group must come here first.
    if (!other || !sameAxes(op, other))
      return false;
  }
  SmallVector<Tensor> operands;
  for (int64_t member : group) {
    Cursor &cursor = cursors[member];
    const Instruction &instruction = cursor.block->instructions[cursor.next];
    if (failed(checkSame(rank, op, member, instruction.op)))
      return failure();
    operands.push_back(cursor.values[instruction.operands[0]]);
  }
  SmallVector<Tensor> results(group.size());
  performCollective(op, operands, results, options.numerics);
  for (auto [member, result] : llvm::zip_equal(group, results)) {
    Cursor &cursor = cursors[member];
    const Instruction &instruction = cursor.block->instructions[cursor.next++];
    cursor.values[instruction.firstResult] = std::move(result);
    for (unsigned dead : instruction.dead)
      cursor.values[dead] = Tensor();
    if (failed(advanceTo(member, cursor)))
      return failure();
  }
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
    if (op) {
      note << ", to meet ranks [";
      llvm::interleaveComma(groupOf(op, rank), note);
      note << "]";
    }
  }
  return diagnostic;
}

LogicalResult LocalMachine::runRanks(size_t segment) {
  std::vector<Cursor> cursors(ranks.size());
  for (auto [rank, cursor] : llvm::enumerate(cursors)) {
    cursor.block = &blocks[programOf[rank]][segment];
    cursor.values.resize(cursor.block->numValues);
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
      return success();
    if (!progress)
      return reportNoProgress(cursors);
  }
}

FailureOr<std::unique_ptr<Machine>>
interpreter::detail::createLocalMachine(ModuleOp module, const MachineOptions &options) {
  auto machine = std::make_unique<LocalMachine>(module, options);
  if (failed(machine->compile()))
    return failure();
  return std::unique_ptr<Machine>(std::move(machine));
}
