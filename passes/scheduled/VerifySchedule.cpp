//===- VerifySchedule.cpp - prove the schedule, or show where it fails ----===//

#include "dialect/fsdp/Names.h"
#include "dialect/fsdp/StepStateAccess.h"
#include "passes/Passes.h"
#include "passes/scheduled/ScheduleProblem.h"
#include "llvm/ADT/MapVector.h"
#include <set>
#include <tuple>

namespace mlir::fsdp {
#define GEN_PASS_DEF_VERIFYSCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// How many samples a batch of `input` has, on all ranks together.
static int64_t samplesOf(InputOp input) {
  if (input.getGlobalBatch())
    return *input.getGlobalBatch();
  return cast<RankedTensorType>(input.getType()).getDimSize(input.getSampleDim());
}

/// Fails where inputs of `segment` have batches of different sizes: a step has one.
static LogicalResult verifyInputs(SegmentOp segment) {
  InputOp first;
  WalkResult result = segment.walk([&](InputOp input) {
    if (!first)
      first = input;
    if (samplesOf(input) == samplesOf(first))
      return WalkResult::advance();
    InFlightDiagnostic diag = input.emitOpError()
                              << "'" << input.getName() << "' has a batch of " << samplesOf(input)
                              << " samples, expected " << samplesOf(first) << " as in '"
                              << first.getName() << "'";
    diag.attachNote(first.getLoc()) << "the first input is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Fails if the body of `launch` uses the step state and `launch` does not name its buffer.
static LogicalResult verifyStepState(LaunchOp launch) {
  if (launch.getStepState())
    return success();
  for (Operation &op : launch.getBody().front()) {
    if (!getStepStateAccess({&op}).isNone())
      return launch.emitOpError()
             << "holds '" << op.getName()
             << "', which uses the step state; name its buffer in 'step_state'";
  }
  return success();
}

/// Fails if `launch` has more than one effect on the step: only launches are ordered.
static LogicalResult verifyOneUpdate(LaunchOp launch) {
  Operation *first = nullptr;
  WalkResult result = launch.getBody().walk([&](Operation *op) {
    if (getStepStateAccess({op}).writes.empty())
      return WalkResult::advance();
    if (!first) {
      first = op;
      return WalkResult::advance();
    }
    InFlightDiagnostic diagnostic =
        op->emitOpError() << "shares a launch with '" << first->getName()
                          << "'; use a separate launch for each update and for the advance";
    diagnostic.attachNote(first->getLoc()) << "the first one is here";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Fails if a walk loads an input, or advances to the next microbatch, more or less often than its
/// segments require.
static LogicalResult verifyWalk(WalkOp walk) {
  llvm::MapVector<StringAttr, int64_t> loads; // of inputs in microbatches
  int64_t advances = 0;
  SmallVector<Operation *> counting;
  auto program = cast<ProgramOp>(walk->getParentOp());
  for (auto [symbol, times] : llvm::zip_equal(walk.getSegments(), walk.getTimes()))
    program.lookupSymbol<SegmentOp>(cast<FlatSymbolRefAttr>(symbol).getAttr())
        .walk([&, times = times](Operation *op) {
          if (isa<InputOp, MicrobatchSamplesOp, NextMicrobatchOp>(op))
            counting.push_back(op);
          if (auto input = dyn_cast<InputOp>(op))
            loads[input.getNameAttr()] += times;
          advances += isa<NextMicrobatchOp>(op) ? times : 0;
        });
  for (Operation *op : counting) {
    auto parts = op->getAttrOfType<IntegerAttr>("microbatches");
    auto input = dyn_cast<InputOp>(op);
    int64_t got = input ? loads[input.getNameAttr()] : advances;
    if (parts && parts.getInt() != got)
      return op->emitOpError() << "is for " << parts.getInt() << " microbatches, but walk '"
                               << walk.getSymName() << "' "
                               << (input ? "loads '" + input.getName().str() + "' "
                                         : std::string("advances to the next microbatch "))
                               << got << " times";
  }
  return success();
}

/// The rules of segments that no order of launches can make right.
static LogicalResult verifySegments(ProgramOp program) {
  for (WalkOp walk : program.getOps<WalkOp>())
    if (failed(verifyWalk(walk)))
      return failure();
  for (SegmentOp segment : program.getOps<SegmentOp>()) {
    if (failed(verifyInputs(segment)) || failed(verifyOutputs(segment)))
      return failure();
    for (LaunchOp launch : segment.getOps<LaunchOp>())
      if (failed(verifyStepState(launch)) || failed(verifyOneUpdate(launch)))
        return failure();
  }
  return success();
}

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
    for (ProgramOp program : module.getOps<ProgramOp>())
      if (failed(verifySegments(program)))
        return signalPassFailure();
    ScheduleProblem schedule = ScheduleProblem::ofPlaces(module);
    std::vector<schedule::Finding> findings = schedule::checkSchedule(schedule.problem);
    const bool placed =
        llvm::any_of(schedule.problem.roles, [](auto &role) { return role.sameInside >= 0; });
    std::set<std::tuple<schedule::Fault, Operation *, Operation *>> said;
    for (const schedule::Finding &finding : findings) {
      Operation *first = schedule.getOperation(finding.first);
      Operation *second = schedule.getOperation(finding.second);
      // Errors that several positions of one program share are reported for the first position.
      if (placed && !said.insert({finding.fault, first, second}).second)
        continue;
      InFlightDiagnostic diagnostic = first->emitError() << finding.message;
      if (second != first)
        diagnostic.attachNote(second->getLoc()) << "the other end is here";
    }
    if (!findings.empty())
      signalPassFailure();
  }
};
} // namespace
