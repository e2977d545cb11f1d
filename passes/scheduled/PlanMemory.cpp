//===- PlanMemory.cpp - write the planner's offsets into the IR -----------===//

#include "passes/Passes.h"
#include "passes/PhaseCheck.h"
#include "passes/schedule/MemoryPlanner.h"
#include "passes/scheduled/ScheduleProblem.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct PlanMemory : fsdp::impl::PlanMemoryPassBase<PlanMemory> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, Phase::scheduled, "plans memory in the scheduled phase")) ||
        failed(getAnalysis<PhaseCheck>().result))
      return signalPassFailure();
    auto &schedule = getAnalysis<ScheduleProblem>();
    for (auto [index, role] : llvm::enumerate(schedule.problem.roles)) {
      schedule::MemoryPlan plan = schedule::planMemory(role);
      for (auto [buffer, offset] : llvm::zip_equal(schedule.buffers[index], plan.offsets))
        buffer.setOffset(static_cast<uint64_t>(offset));
      schedule.programs[index].setArena(static_cast<uint64_t>(plan.arena));
      schedule::applyPlan(plan, role);
    }
    // Only the offsets and the arenas have changed, in both.
    markAnalysesPreserved<ScheduleProblem, PhaseCheck>();
  }
};
} // namespace
