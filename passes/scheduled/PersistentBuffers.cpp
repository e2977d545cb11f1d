//===- PersistentBuffers.cpp - what is kept from one segment to the next --===//

#include "dialect/fsdp/Deferred.h"
#include "passes/scheduled/SegmentPlan.h"

using namespace mlir;
using namespace mlir::fsdp;

/// How often a walk that runs `segment` loads the input `name`, at most.
static int64_t countLoads(SegmentOp segment, StringAttr name) {
  auto program = cast<ProgramOp>(segment->getParentOp());
  int64_t most = 0;
  for (auto walk : program.getOps<WalkOp>()) {
    int64_t loads = 0;
    bool runsSegment = false;
    for (auto [symbol, times] : llvm::zip_equal(walk.getSegments(), walk.getTimes())) {
      auto other = program.lookupSymbol<SegmentOp>(cast<FlatSymbolRefAttr>(symbol).getAttr());
      runsSegment |= other == segment;
      // In launches, where the segment is scheduled already.
      other.walk(
          [&, times = times](InputOp input) { loads += input.getNameAttr() == name ? times : 0; });
    }
    if (runsSegment)
      most = std::max(most, loads);
  }
  return most;
}

bool mlir::fsdp::isStaged(InputOp input) {
  return countLoads(cast<SegmentOp>(input->getParentOp()), input.getNameAttr()) > 1;
}

int mlir::fsdp::findStaged(ArrayRef<PlannedBuffer> buffers, InputOp input) {
  auto found = llvm::find_if(buffers, [&](const PlannedBuffer &buffer) {
    return buffer.staged == input.getNameAttr() && buffer.type == input.getType();
  });
  return found == buffers.end() ? -1 : static_cast<int>(found - buffers.begin());
}

std::vector<PlannedBuffer> mlir::fsdp::planPersistent(ProgramOp program) {
  std::vector<PlannedBuffer> buffers;
  buffers.push_back(
      {"step_state", getStepStateType(program.getContext()), program.getLoc(), "", ""});
  auto module = program->getParentOfType<ModuleOp>();
  for (auto storage : module.getOps<StorageOp>()) {
    for (StringRef what : storage.getKept())
      buffers.push_back({(storage.getSymName() + "." + what).str(), storage.getKeptType(what),
                         storage.getLoc(), storage.getSymName().str(), what.str()});
  }
  for (auto carried : module.getOps<CarriedOp>()) {
    std::string storage = carried.getStorage().value_or("").str();
    std::string what = storage.empty() ? "" : BufferOp::accumulator.str();
    buffers.push_back({carried.getSymName().str(), carried.getTensorType(), carried.getLoc(),
                       storage, what, isZeroed(carried)});
  }
  for (auto segment : program.getOps<SegmentOp>())
    for (auto input : segment.getOps<InputOp>())
      if (isStaged(input) && findStaged(buffers, input) < 0)
        buffers.push_back({("input." + input.getName() + ".staged").str(),
                           cast<RankedTensorType>(input.getType()), input.getLoc(), "", "",
                           /*zeroed=*/false, input.getNameAttr()});
  return buffers;
}
