//===- PersistentBuffers.cpp - buffers kept from segment to segment -------===//

#include "passes/scheduled/SegmentPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

StagedInputs mlir::fsdp::findStagedInputs(ProgramOp program) {
  llvm::StringMap<llvm::MapVector<StringAttr, int64_t>>
      loaded; ///< by segment: how often each input
  llvm::StringMap<SegmentOp> segments;
  for (auto segment : program.getOps<SegmentOp>()) {
    segments[segment.getSymName()] = segment;
    for (auto input : segment.getOps<InputOp>())
      ++loaded[segment.getSymName()][input.getNameAttr()];
  }
  StagedInputs staged;
  // Without walks each segment is one.
  if (program.getOps<WalkOp>().empty())
    for (auto &[segment, loads] : loaded)
      for (auto [name, count] : loads)
        if (count > 1)
          staged.insert({segments.lookup(segment), name});
  for (auto walk : program.getOps<WalkOp>()) {
    llvm::MapVector<StringAttr, int64_t> loads;
    for (auto [symbol, times] : llvm::zip_equal(walk.getSegments(), walk.getTimes()))
      for (auto [name, count] : loaded[cast<FlatSymbolRefAttr>(symbol).getValue()])
        loads[name] += count * times;
    for (auto symbol : walk.getSegments().getAsRange<FlatSymbolRefAttr>())
      for (auto [name, count] : loads)
        if (count > 1)
          staged.insert({segments.lookup(symbol.getValue()), name});
  }
  return staged;
}

int mlir::fsdp::findStaged(ArrayRef<PlannedBuffer> buffers, InputOp input) {
  auto found = llvm::find_if(buffers, [&](const PlannedBuffer &buffer) {
    return buffer.staged == input.getNameAttr() && buffer.type == input.getType();
  });
  return found == buffers.end() ? -1 : static_cast<int>(found - buffers.begin());
}

/// Whether the ranks of `program` do not keep `carried`: other programs use it alone.
static bool isOfOtherRoles(CarriedOp carried, ProgramOp program) {
  auto uses = [&](ProgramOp user) {
    return user
        .walk([&](Operation *op) {
          FlatSymbolRefAttr symbol;
          if (auto load = dyn_cast<CarryLoadOp>(op))
            symbol = load.getCarriedAttr();
          else if (auto store = dyn_cast<CarryStoreOp>(op))
            symbol = store.getCarriedAttr();
          return symbol && symbol.getAttr() == carried.getSymNameAttr() ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
        })
        .wasInterrupted();
  };
  auto programs = program->getParentOfType<ModuleOp>().getOps<ProgramOp>();
  return !llvm::hasSingleElement(programs) && !uses(program) && llvm::any_of(programs, uses);
}

std::vector<PlannedBuffer> mlir::fsdp::planPersistent(ProgramOp program,
                                                      const StagedInputs &staged) {
  std::vector<PlannedBuffer> buffers;
  buffers.push_back(
      {"step_state", getStepStateType(program.getContext()), program.getLoc(), "", ""});
  auto module = program->getParentOfType<ModuleOp>();
  for (auto storage : module.getOps<StorageOp>()) {
    if (!storage.isOwnedBy(program))
      continue;
    for (StringRef what : storage.getKept())
      buffers.push_back({(storage.getSymName() + "." + what).str(), storage.getKeptType(what),
                         storage.getLoc(), storage.getSymName().str(), what.str()});
  }
  for (auto carried : module.getOps<CarriedOp>()) {
    if (isOfOtherRoles(carried, program))
      continue;
    std::string storage = carried.getStorage().value_or("").str();
    std::string what = storage.empty() ? "" : BufferOp::accumulator.str();
    buffers.push_back({carried.getSymName().str(), carried.getTensorType(), carried.getLoc(),
                       storage, what, carried.getZeroed()});
  }
  for (auto segment : program.getOps<SegmentOp>())
    for (auto input : segment.getOps<InputOp>())
      if (staged.contains({segment, input.getNameAttr()}) && findStaged(buffers, input) < 0)
        buffers.push_back({("input." + input.getName() + ".staged").str(),
                           cast<RankedTensorType>(input.getType()), input.getLoc(), "", "",
                           /*zeroed=*/false, input.getNameAttr()});
  return buffers;
}
