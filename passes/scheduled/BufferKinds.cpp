//===- BufferKinds.cpp - purposes of the buffers of a rank ----------------===//

#include "passes/scheduled/BufferKinds.h"
#include "dialect/fsdp/Structure.h"
#include "passes/scheduled/SegmentPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

StringRef mlir::fsdp::stringifyBufferKind(BufferKind kind) {
  static constexpr StringRef names[kBufferKinds] = {
      "parameters", "optimizer", "accumulators", "step_state", "gathered", "gradients",
      "inputs",     "logits",    "recomputed",   "saved",      "messages", "temporaries"};
  return names[static_cast<int>(kind)];
}

std::vector<LaunchOp> mlir::fsdp::findFirstWriters(const ScheduleProblem &schedule, int index) {
  const schedule::Role &role = schedule.problem.roles[index];
  std::vector<LaunchOp> writers(role.buffers.size());
  for (size_t s = 0; s < role.segments.size(); ++s)
    for (auto [op, launch] :
         llvm::zip_equal(schedule.launches[index][s], role.segments[s].launches))
      for (const schedule::Access &access : launch.writes)
        if (!writers[access.buffer])
          writers[access.buffer] = op;
  return writers;
}

namespace {

class Classifier {
public:
  Classifier(const ScheduleProblem &schedule, int index)
      : schedule(schedule), index(index), role(schedule.problem.roles[index]),
        kinds(role.buffers.size(), BufferKind::temporaries),
        writers(findFirstWriters(schedule, index)), producers(role.buffers.size()),
        gathered(role.buffers.size()) {}

  std::vector<BufferKind> run() {
    for (size_t s = 0; s < role.segments.size(); ++s)
      for (auto [op, launch] :
           llvm::zip_equal(schedule.launches[index][s], role.segments[s].launches))
        visit(op, launch);
    while (!reduced.empty()) {
      int buffer = reduced.back();
      reduced.pop_back();
      findGradientsBefore(buffer);
    }
    for (size_t b = 0; b < kinds.size(); ++b) {
      BufferOp op = schedule.buffers[index][b];
      if (role.buffers[b].isPersistent())
        kinds[b] = kindOfPersistent(op, kinds[b]);
      else if (op.getWhat() == BufferOp::gradient)
        set(static_cast<int>(b), BufferKind::gradients);
      else if (gathered[b])
        set(static_cast<int>(b), BufferKind::gathered);
    }
    return std::move(kinds);
  }

private:
  /// The first kind in their order applies.
  void set(int buffer, BufferKind kind) { kinds[buffer] = std::min(kinds[buffer], kind); }

  /// `used`: the kinds of its launches.
  BufferKind kindOfPersistent(BufferOp op, BufferKind used) const {
    if (op.getStorage())
      return *op.getWhat() == StorageOp::parameter || *op.getWhat() == StorageOp::copy
                 ? BufferKind::parameters
             : *op.getWhat() == "accumulator" ? BufferKind::accumulators
                                              : BufferKind::optimizer;
    if (op.getType().getTensor() == getStepStateType(op.getContext()))
      return BufferKind::stepState;
    return used == BufferKind::inputs ? used : BufferKind::temporaries;
  }

  void visit(LaunchOp op, const schedule::Launch &launch) {
    const Structure structure = getStructure(op);
    const bool gathers = op.getStream() == streams::gather;
    for (const schedule::Access &read : launch.reads)
      if (gathers) { // a shard that is cast to be gathered is not whole; a unit gathered in parts
                     // is kept
        if (!writers[read.buffer] || writers[read.buffer].getBody().getOps<AllGatherOp>().empty())
          gathered[read.buffer] = false;
      } else if (structure.direction != Direction::forward && writers[read.buffer] &&
                 getStructure(writers[read.buffer]).direction == Direction::forward)
        set(read.buffer, BufferKind::saved);
    for (const schedule::Access &write : launch.writes) {
      producers[write.buffer].push_back({op, &launch});
      if (gathers)
        gathered[write.buffer] = true;
      if (structure.recomputed)
        set(write.buffer, BufferKind::recomputed);
    }
    for (Operation &body : op.getBody().front())
      visit(op, &body, launch);
  }

  /// One op in the body of a launch.
  void visit(LaunchOp launchOp, Operation *op, const schedule::Launch &launch) {
    auto readBy = [&](Value operand) {
      auto argument = dyn_cast<BlockArgument>(operand);
      return argument && argument.getOwner() == &launchOp.getBody().front()
                 ? launch.reads[argument.getArgNumber()].buffer
                 : -1;
    };
    // Loaded, or copied from where they are staged for the next microbatch.
    auto isStaged = [&](Value operand) {
      int buffer = readBy(operand);
      return buffer >= 0 && role.buffers[buffer].isPersistent() &&
             kinds[buffer] == BufferKind::inputs;
    };
    if (isa<InputOp>(op) || (isa<FlattenOp>(op) && llvm::all_of(op->getOperands(), isStaged)))
      for (const schedule::Access &write : launch.writes)
        set(write.buffer, BufferKind::inputs);
    if (isa<SendOp, ReceiveOp>(op) && isBetweenRoles(cast<CollectiveOpInterface>(op)))
      for (const std::vector<schedule::Access> *accesses : {&launch.reads, &launch.writes})
        for (const schedule::Access &access : *accesses)
          set(access.buffer, BufferKind::messages);
    if (auto step = dyn_cast<OptimizerStepOp>(op))
      if (int buffer = readBy(step.getGradient()); buffer >= 0)
        addReduced(buffer);
    auto kernel = dyn_cast<nn::KernelOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      int buffer = readBy(operand.get());
      if (!kernel || buffer < 0 || !kernel.readsLogits(operand.getOperandNumber()))
        continue;
      set(buffer, BufferKind::logits);
      for (auto [result, write] : llvm::zip(op->getResults(), launch.writes))
        if (result.getType() == operand.get().getType())
          set(write.buffer, BufferKind::logits);
    }
  }

  bool isBetweenRoles(CollectiveOpInterface op) const {
    ProgramOp program = schedule.programs[index];
    return llvm::all_of(op.getAxes(),
                        [&](StringAttr axis) { return bool(program.getRole().get(axis)); });
  }

  void addReduced(int buffer) {
    if (role.buffers[buffer].isPersistent() || kinds[buffer] == BufferKind::gradients)
      return;
    set(buffer, BufferKind::gradients);
    reduced.push_back(buffer);
  }

  bool isReduced(const schedule::Access &read) const {
    LaunchOp writer = writers[read.buffer];
    return writer && writer.getStream() == streams::reduce;
  }

  /// A gradient for the optimizer was reduced, or is computed from a reduced value, or is the sum
  /// of one and of the gradients of earlier microbatches.
  void findGradientsBefore(int buffer) {
    for (auto [op, launch] : producers[buffer]) {
      LaunchOp producer = op;
      const bool adds = llvm::any_of(launch->reads,
                                     [&](const schedule::Access &read) { return isReduced(read); });
      for (const schedule::Access &read : launch->reads) {
        LaunchOp writer = writers[read.buffer];
        const bool isSummand = adds && writer &&
                               getStructure(writer).direction == Direction::backward &&
                               role.buffers[read.buffer].size == role.buffers[buffer].size;
        if (producer.getStream() == streams::reduce || isReduced(read) || isSummand)
          addReduced(read.buffer);
      }
    }
  }

  const ScheduleProblem &schedule;
  int index;
  const schedule::Role &role;
  std::vector<BufferKind> kinds;
  std::vector<LaunchOp> writers; ///< the first of each buffer
  std::vector<SmallVector<std::pair<LaunchOp, const schedule::Launch *>, 1>> producers;
  std::vector<bool> gathered;
  std::vector<int> reduced; ///< gradients whose producers have not been visited
};

} // namespace

std::vector<BufferKind> mlir::fsdp::classifyBuffers(const ScheduleProblem &schedule, int index) {
  return Classifier(schedule, index).run();
}
