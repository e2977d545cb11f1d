//===- VerifySchedule.cpp - prove the schedule, or show where it fails ----===//

#include "dialect/fsdp/Names.h"
#include "dialect/fsdp/StepStateAccess.h"
#include "dialect/fsdp/UpdateGroup.h"
#include "passes/Passes.h"
#include "passes/PhaseCheck.h"
#include "passes/scheduled/ScheduleProblem.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
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

/// The ops of `segment` with rules of their own, in order: those that read inputs, samples and
/// microbatches, and updates. One walk for all rules, as a program has many ops.
static SmallVector<Operation *> collectRuled(SegmentOp segment) {
  SmallVector<Operation *> ruled;
  for (LaunchOp launch : segment.getOps<LaunchOp>())
    launch.getBody().walk([&](Operation *op) {
      if (isa<InputOp, MicrobatchSamplesOp, NextMicrobatchOp, DropoutOp, OptimizerStepOp>(op))
        ruled.push_back(op);
    });
  return ruled;
}

/// Those of each segment of a program.
using RuledOps = DenseMap<Operation *, SmallVector<Operation *>>;

/// Fails where inputs of a segment, among `ruled`, have batches of different sizes: a step has one.
static LogicalResult verifyInputs(ArrayRef<Operation *> ruled) {
  InputOp first;
  for (Operation *op : ruled) {
    auto input = dyn_cast<InputOp>(op);
    if (!input)
      continue;
    if (!first)
      first = input;
    if (samplesOf(input) == samplesOf(first))
      continue;
    InFlightDiagnostic diag = input.emitOpError()
                              << "'" << input.getName() << "' has a batch of " << samplesOf(input)
                              << " samples, expected " << samplesOf(first) << " as in '"
                              << first.getName() << "'";
    diag.attachNote(first.getLoc()) << "the first input is here";
    return failure();
  }
  return success();
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

/// Fails if `launch` has more than one effect on the step: only launches are ordered. Updates of
/// several storages that may share a launch are one effect.
static LogicalResult verifyOneUpdate(LaunchOp launch) {
  Operation *first = nullptr;
  DenseSet<Attribute> updated;
  auto isOfGroup = [&](Operation *op) {
    auto update = dyn_cast<OptimizerStepOp>(op);
    const bool isNew = update && updated.insert(update.getStorageAttr()).second;
    auto group = dyn_cast_or_null<OptimizerStepOp>(first);
    return isNew && group && mayShareLaunch(group, update);
  };
  WalkResult result = launch.getBody().walk([&](Operation *op) {
    if (getStepStateAccess({op}).writes.empty() || isOfGroup(op))
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

namespace {

/// How often a walk, or a segment of a program without walks, loads inputs and advances to the next
/// microbatch.
class MicrobatchCounter {
public:
  explicit MicrobatchCounter(StringRef name) : name(name) {}

  /// Counts the loads and advances of `times` runs of the segment of `ruled`. Fails if the data set
  /// would give a load another microbatch than the op denotes: it gives the n-th load of an input
  /// the n-th one.
  LogicalResult run(ArrayRef<Operation *> ruled, int64_t times);
  /// Fails if an op is for another number of microbatches.
  LogicalResult verify();

private:
  LogicalResult load(InputOp input, bool again);
  LogicalResult verifyConstants();

  StringRef name;
  llvm::MapVector<StringAttr, int64_t> loads; ///< of each input
  int64_t advances = 0;
  SmallVector<Operation *> counting; ///< ops that are for a number of microbatches
};

} // namespace

LogicalResult MicrobatchCounter::load(InputOp input, bool again) {
  const int64_t load = loads[input.getNameAttr()]++;
  std::optional<uint64_t> at = input.getMicrobatch();
  if (!at && again)
    return input.emitOpError() << "loads '" << input.getName()
                               << "' again in one segment, which is the next batch; use the first "
                                  "load, or give each one its microbatch with 'at'";
  if (at && static_cast<int64_t>(*at) != load)
    return input.emitOpError() << "is 'at' microbatch " << static_cast<int64_t>(*at) << " of '"
                               << input.getName() << "', expected " << load << ", as walk '" << name
                               << "' has loaded it " << load << " times before; load microbatches "
                               << "in order";
  return success();
}

LogicalResult MicrobatchCounter::run(ArrayRef<Operation *> ruled, int64_t times) {
  llvm::MapVector<StringAttr, int64_t> before;
  // The second run shows whether one segment may run several times; all others are like it.
  for (int64_t run = 0; run < std::min<int64_t>(times, 2); ++run) {
    before = loads;
    for (Operation *op : ruled) {
      if (run == 0 && !isa<OptimizerStepOp>(op))
        counting.push_back(op);
      auto input = dyn_cast<InputOp>(op);
      if (input && failed(load(input, loads.lookup(input.getNameAttr()) >
                                          before.lookup(input.getNameAttr()))))
        return failure();
    }
  }
  for (auto &[input, count] : loads)
    count += std::max<int64_t>(times - 2, 0) * (count - before.lookup(input));
  advances += times * llvm::count_if(ruled, llvm::IsaPred<NextMicrobatchOp>);
  return success();
}

/// The number of the microbatch that `op` is for, if it is given.
static std::optional<int64_t> getMicrobatch(Operation *op) {
  auto at = op->getAttrOfType<IntegerAttr>("microbatch");
  return at ? std::optional<int64_t>(at.getInt()) : std::nullopt;
}

static IntegerAttr getMicrobatches(Operation *op) {
  return op->getAttrOfType<IntegerAttr>("microbatches");
}

/// Fails if ops that are 'at' a microbatch are for different numbers of microbatches.
LogicalResult MicrobatchCounter::verifyConstants() {
  Operation *first = nullptr;
  for (Operation *op : counting) {
    if (!getMicrobatch(op))
      continue;
    if (!first)
      first = op;
    if (getMicrobatches(op) == getMicrobatches(first))
      continue;
    InFlightDiagnostic diag = op->emitOpError()
                              << "is for " << getMicrobatches(op).getInt()
                              << " microbatches, expected " << getMicrobatches(first).getInt()
                              << " as in the others of '" << name << "'";
    diag.attachNote(first->getLoc()) << "the first one is here";
    return diag;
  }
  return success();
}

LogicalResult MicrobatchCounter::verify() {
  for (Operation *op : counting) {
    auto input = dyn_cast<InputOp>(op);
    if (!input && getMicrobatch(op))
      continue;
    int64_t got = input ? loads.lookup(input.getNameAttr()) : advances;
    IntegerAttr parts = getMicrobatches(op);
    if (parts && parts.getInt() != got)
      return op->emitOpError() << "is for " << parts.getInt() << " microbatches, but walk '" << name
                               << "' "
                               << (input ? "loads '" + input.getName().str() + "' "
                                         : std::string("advances to the next microbatch "))
                               << got << " times";
  }
  return verifyConstants();
}

static LogicalResult verifyMicrobatches(ProgramOp program, const RuledOps &ruled) {
  auto ruledIn = [&](SegmentOp segment) { return ArrayRef(ruled.find(segment)->second); };
  auto walks = program.getOps<WalkOp>();
  for (WalkOp walk : walks) {
    MicrobatchCounter counter(walk.getSymName());
    for (auto [symbol, times] : llvm::zip_equal(walk.getSegments(), walk.getTimes()))
      if (failed(counter.run(
              ruledIn(program.lookupSymbol<SegmentOp>(cast<FlatSymbolRefAttr>(symbol).getAttr())),
              times)))
        return failure();
    if (failed(counter.verify()))
      return failure();
  }
  if (!walks.empty())
    return success();
  for (SegmentOp segment : program.getOps<SegmentOp>()) {
    MicrobatchCounter counter(segment.getSymName());
    if (failed(counter.run(ruledIn(segment), 1)) || failed(counter.verify()))
      return failure();
  }
  return success();
}

/// Fails if a step leaves the update of a storage to the next one and no drain performs it:
/// readers of parameters between the two would see old values.
static LogicalResult verifyDrains(ProgramOp program, const RuledOps &ruled) {
  llvm::StringSet<> drained;
  SmallVector<OptimizerStepOp> deferred;
  for (SegmentOp segment : program.getOps<SegmentOp>())
    for (Operation *op : ruled.find(segment)->second)
      if (auto update = dyn_cast<OptimizerStepOp>(op)) {
        if (segment.getDrain())
          drained.insert(update.getStorage());
        else if (update.getDeferred())
          deferred.push_back(update);
      }
  for (OptimizerStepOp update : deferred)
    if (!drained.contains(update.getStorage()))
      return update.emitOpError() << "updates storage '" << update.getStorage()
                                  << "' in the step after that of its "
                                  << "gradient, but no drain of program '" << program.getSymName()
                                  << "' does; let a segment marked 'drain' update "
                                  << "it too";
  return success();
}

/// The rules of segments that no order of launches can make right.
static LogicalResult verifySegments(ProgramOp program) {
  RuledOps ruled;
  for (SegmentOp segment : program.getOps<SegmentOp>())
    ruled[segment] = collectRuled(segment);
  if (failed(verifyMicrobatches(program, ruled)) || failed(verifyDrains(program, ruled)))
    return failure();
  for (SegmentOp segment : program.getOps<SegmentOp>()) {
    if (failed(verifyInputs(ruled.find(segment)->second)) || failed(verifyOutputs(segment)))
      return failure();
    for (LaunchOp launch : segment.getOps<LaunchOp>())
      if (failed(verifyStepState(launch)) || failed(verifyOneUpdate(launch)))
        return failure();
  }
  return success();
}

namespace {
struct VerifySchedule : fsdp::impl::VerifySchedulePassBase<VerifySchedule> {
  /// Where the translation of a correct schedule goes, if anywhere.
  std::optional<ScheduleProblem> *verified = nullptr;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(
            requirePhase(module, Phase::scheduled, "verifies schedules of the scheduled phase")) ||
        failed(getAnalysis<PhaseCheck>().result))
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
    else if (verified && schedule.programs.size() == llvm::range_size(module.getOps<ProgramOp>()))
      *verified = std::move(schedule);
    markAllAnalysesPreserved();
  }
};
} // namespace

std::unique_ptr<Pass>
mlir::fsdp::createVerifySchedulePass(std::optional<ScheduleProblem> &verified) {
  auto pass = std::make_unique<VerifySchedule>();
  pass->verified = &verified;
  return pass;
}
