//===- VerifySchedule.cpp - prove the schedule, or show where it fails ----===//

#include "passes/Passes.h"
#include "passes/ScheduleProblem.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct VerifySchedule : fsdp::impl::VerifySchedulePassBase<VerifySchedule> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (getPhase(module) != Phase::scheduled) {
      module.emitError() << "verifies schedules of the scheduled phase, got the "
                         << stringifyPhase(getPhase(module)) << " phase; run 'fsdp-schedule' first";
      return signalPassFailure();
    }
    if (failed(verifyPhase(module, Phase::scheduled)))
      return signalPassFailure();
    ScheduleProblem schedule(module);
    std::vector<schedule::Finding> findings = schedule::checkSchedule(schedule.problem);
    for (const schedule::Finding &finding : findings) {
      Operation *first = schedule.getOperation(finding.first);
      Operation *second = schedule.getOperation(finding.second);
      InFlightDiagnostic diagnostic = first->emitError() << finding.message;
      if (second != first)
        diagnostic.attachNote(second->getLoc()) << "the other end is here";
    }
    if (!findings.empty())
      signalPassFailure();
  }
};
} // namespace
