//===- EmitRecord.cpp -----------------------------------------------------===//

#include "codegen/EmitRecord.h"

#include "codegen/Calls.h"
#include "codegen/RolePrograms.h"
#include "dialect/fsdp/CollectiveGroup.h"
#include "dialect/fsdp/StepStateAccess.h"
#include "runtime/program/Limits.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Bytes of the arena.
struct RecordedRange {
  int64_t offset, bytes;

  bool operator==(const RecordedRange &other) const {
    return offset == other.offset && bytes == other.bytes;
  }
};

} // namespace

/// The operands `buffers` of a launch, then the parts `ofState` of the step state's buffer.
static SmallVector<RecordedRange> rangesOf(const ScheduledProgram &program, ValueRange buffers,
                                           Value state, ArrayRef<StepStateBytes> ofState) {
  SmallVector<RecordedRange> ranges;
  for (Value buffer : buffers) {
    ArenaSpan span = program.spanOf(buffer);
    ranges.push_back({span.offset, span.bytes});
  }
  for (StepStateBytes part : ofState)
    ranges.push_back({program.spanOf(state).offset + part.begin, part.end - part.begin});
  return ranges;
}

/// Puts the ranges that `called` has first, in its order and multiplicity (the sides of a product
/// may be one operand), and the others after them.
static SmallVector<RecordedRange> inOrderOf(ArrayRef<RecordedRange> ranges,
                                            ArrayRef<RecordedRange> called) {
  SmallVector<RecordedRange> ordered, rest(ranges);
  for (RecordedRange range : called) {
    if (!llvm::is_contained(ranges, range))
      continue;
    ordered.push_back(range);
    if (auto *found = llvm::find(rest, range); found != rest.end())
      rest.erase(found);
  }
  ordered.append(rest);
  return ordered;
}

static void print(ArrayRef<RecordedRange> ranges, StringRef label, llvm::raw_ostream &out) {
  out << " " << label << "=[";
  llvm::interleave(
      ranges, out, [&](RecordedRange range) { out << range.offset << ":" << range.bytes; }, ",");
  out << "]";
}

void mlir::fsdp::printLaunch(const ScheduledProgram &program, LaunchOp launch, const Call &call,
                             llvm::raw_ostream &out) {
  const StepStateAccess access = getStepStateAccess(launch);
  const Value state = launch.getStepState();
  // In a call the state's buffer is the state alone; the notes of updates after it come last.
  auto called = [&](ArrayRef<Value> buffers) {
    SmallVector<RecordedRange> ranges = rangesOf(program, ValueRange(buffers), {}, {});
    for (auto [range, buffer] : llvm::zip_equal(ranges, buffers))
      if (buffer == state)
        range.bytes = limits::kStepStateBytes;
    return ranges;
  };
  out << "launch " << launch.getStream() << " \"" << launch.getFullName() << "\"";
  print(inOrderOf(rangesOf(program, launch.getIns(), state, access.reads), called(call.reads)),
        "reads", out);
  print(inOrderOf(rangesOf(program, launch.getOuts(), state, access.writes), called(call.writes)),
        "writes", out);
  if (SmallVector<CollectiveOpInterface> group = getCollectives(launch); !group.empty()) {
    CollectiveOpInterface collective = group.front();
    out << " over=" << program.communicatorName(CommunicatorKey::of(launch))
        << " kind=" << collective->getName().stripDialect();
  }
  out << "\n";
}

static LogicalResult recordProgram(const ScheduledProgram &program, llvm::raw_ostream &out) {
  for (const Timeline &timeline : program.timelines) {
    out << "segment " << timeline.segment.getSymName() << "\n";
    for (const Action &action : timeline.actions) {
      LaunchOp launch = action.launch;
      FailureOr<Call> call = callFor(program, launch);
      if (failed(call))
        return failure();
      for (int event : action.waits)
        out << "wait " << launch.getStream() << " " << event << "\n";
      printLaunch(program, launch, *call, out);
      for (int event : action.records)
        out << "record " << launch.getStream() << " " << event << "\n";
    }
  }
  return success();
}

LogicalResult mlir::fsdp::emitRecord(ModuleOp module, llvm::raw_ostream &out) {
  FailureOr<std::vector<ScheduledProgram>> programs = readPrograms(module);
  if (failed(programs))
    return failure();
  for (const ScheduledProgram &program : *programs) {
    if (program.roles.areSeveral())
      out << "role " << program.program.getSymName() << "\n";
    if (failed(recordProgram(program, out)))
      return failure();
  }
  return success();
}
