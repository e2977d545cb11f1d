//===- LinkSegments.cpp - write waits across segments into the IR ---------===//

#include "passes/Passes.h"
#include "passes/PhaseCheck.h"
#include "passes/schedule/SegmentLinks.h"
#include "passes/scheduled/ScheduleProblem.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_LINKSEGMENTSPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct LinkSegments : fsdp::impl::LinkSegmentsPassBase<LinkSegments> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, Phase::scheduled, "links segments of the scheduled phase")) ||
        failed(getAnalysis<PhaseCheck>().result))
      return signalPassFailure();
    for (ProgramOp program : module.getOps<ProgramOp>()) {
      if (!program.getArena() || !program.getOps<EventOp>().empty()) {
        program.emitError() << (!program.getArena()
                                    ? "has no memory plan; run 'fsdp-plan-memory' first"
                                    : "already has events; link its segments once");
        return signalPassFailure();
      }
    }
    auto &schedule = getAnalysis<ScheduleProblem>();
    for (auto [index, role] : llvm::enumerate(schedule.problem.roles)) {
      ProgramOp program = schedule.programs[index];
      schedule::linkSegments(role, std::vector<bool>(role.segments.size(), true));
      write(program, role, schedule.segments[index], schedule.launches[index]);
    }
    // New are only events of programs.
    markAnalysesPreserved<PhaseCheck>();
  }

private:
  static void write(ProgramOp program, const schedule::Role &role, ArrayRef<SegmentOp> segments,
                    ArrayRef<std::vector<LaunchOp>> launches) {
    OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
    if (!segments.empty())
      builder.setInsertionPoint(SegmentOp(segments.front()));
    SmallVector<Value> events;
    for (const std::string &name : role.events)
      events.push_back(EventOp::create(builder, program.getLoc(), name));
    auto pick = [&](ArrayRef<int> numbers) {
      return llvm::map_to_vector(numbers, [&](int number) { return events[number]; });
    };
    for (auto [segment, op, ops] : llvm::zip_equal(role.segments, segments, launches)) {
      SegmentOp(op).setAsync(!segment.joined);
      for (auto [launch, target] : llvm::zip_equal(segment.launches, ops)) {
        LaunchOp(target).getWaitMutable().append(pick(launch.awaits));
        LaunchOp(target).getRecordsMutable().append(pick(launch.records));
      }
    }
  }
};
} // namespace
