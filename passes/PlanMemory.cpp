//===- PlanMemory.cpp - write the planner's offsets into the IR -----------===//

#include "dialect/nn/TensorSize.h"
#include "passes/Passes.h"
#include "passes/ScheduleProblem.h"
#include "passes/schedule/MemoryPlanner.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// Fails unless the sums that planning and the report form fit 64 bits: the buffers of each role,
/// and parameters, gradients and optimizer states unsplit. A sum of all is more than any of them.
static LogicalResult checkSums(ModuleOp module, const ScheduleProblem &schedule) {
  for (auto [index, role] : llvm::enumerate(schedule.problem.roles)) {
    uint64_t sum = 0; // sizes are below 2^63, so that one more cannot wrap around
    for (const schedule::Buffer &buffer : role.buffers)
      if ((sum += llvm::alignTo(static_cast<uint64_t>(buffer.size), schedule::kAlignment)) >
          INT64_MAX)
        return ProgramOp(schedule.programs[index]).emitOpError()
               << "has buffers that together, with '" << buffer.name << "', take more than "
               << INT64_MAX << " bytes; make the model smaller or split it over more ranks";
  }
  SymbolTable symbols(module);
  uint64_t sum = 0;
  for (auto storage : module.getOps<StorageOp>())
    for (auto member : storage.getMembers().getAsRange<MemberAttr>()) {
      auto param = symbols.lookup<ParamOp>(member.getParam().getValue());
      auto bytes = static_cast<uint64_t>(*nn::countBytes(param.getTensorType()));
      for (size_t copy = 0; copy < 2 + storage.getStates().size(); ++copy)
        if ((sum += bytes) > INT64_MAX)
          return param.emitOpError()
                 << "'" << param.getSymName() << "' of type " << param.getTensorType()
                 << ", its gradient and its optimizer states take, with those before, more than "
                 << INT64_MAX << " bytes on all ranks together; make the model smaller";
    }
  return success();
}

namespace {
struct PlanMemory : fsdp::impl::PlanMemoryPassBase<PlanMemory> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (getPhase(module) != Phase::scheduled) {
      module.emitError() << "plans memory in the scheduled phase, got the "
                         << stringifyPhase(getPhase(module)) << " phase; run 'fsdp-schedule' first";
      return signalPassFailure();
    }
    if (failed(verifyPhase(module, Phase::scheduled)))
      return signalPassFailure();
    ScheduleProblem schedule(module);
    if (failed(checkSums(module, schedule)))
      return signalPassFailure();
    Builder builder(module.getContext());
    for (auto [index, role] : llvm::enumerate(schedule.problem.roles)) {
      schedule::MemoryPlan plan = schedule::planMemory(role);
      for (auto [buffer, offset] : llvm::zip_equal(schedule.buffers[index], plan.offsets))
        buffer.setOffset(static_cast<uint64_t>(offset));
      schedule.programs[index].setArena(static_cast<uint64_t>(plan.arena));
    }
  }
};
} // namespace
