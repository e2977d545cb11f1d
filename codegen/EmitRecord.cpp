//===- EmitRecord.cpp -----------------------------------------------------===//

#include "codegen/EmitRecord.h"

#include "codegen/Calls.h"

using namespace mlir;
using namespace mlir::fsdp;

static void printRanges(const ScheduledProgram &program, ValueRange buffers, StringRef label,
                        llvm::raw_ostream &out) {
  out << " " << label << "=[";
  llvm::interleave(
      buffers, out,
      [&](Value buffer) {
        ArenaSpan span = program.spanOf(buffer);
        out << span.offset << ":" << span.bytes;
      },
      ",");
  out << "]";
}

LogicalResult mlir::fsdp::emitRecord(ModuleOp module, llvm::raw_ostream &out) {
  FailureOr<ScheduledProgram> program = ScheduledProgram::create(module);
  if (failed(program))
    return failure();
  for (const Timeline &timeline : program->timelines) {
    out << "segment " << timeline.segment.getSymName() << "\n";
    for (const Action &action : timeline.actions) {
      LaunchOp launch = action.launch;
      FailureOr<Call> call = callFor(*program, launch);
      if (failed(call))
        return failure();
      for (int event : action.waits)
        out << "wait " << launch.getStream() << " " << event << "\n";
      out << "launch " << launch.getStream() << " \"" << launch.getName() << "\"";
      printRanges(*program, call->reads, "reads", out);
      printRanges(*program, call->writes, "writes", out);
      if (!call->collective.empty())
        out << " over=" << program->communicatorName(launch.getStreamAttr(), call->over)
            << " kind=" << call->collective;
      out << "\n";
      for (int event : action.records)
        out << "record " << launch.getStream() << " " << event << "\n";
    }
  }
  return success();
}
