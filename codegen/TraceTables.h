//===- TraceTables.h - tables of the plan for traces ------------*- C++ -*-===//

#ifndef CODEGEN_TRACETABLES_H
#define CODEGEN_TRACETABLES_H

#include "codegen/ScheduledProgram.h"
#include "codegen/Writer.h"

namespace mlir::fsdp {

/// Declares `trace`, the `SegmentTrace` of a segment (runtime/program/Program.h), and the
/// arrays that it consists of.
void emitTraceTables(const ScheduledProgram &program, const Timeline &timeline, Writer &writer);

/// Bytes of the buffers that persist from segment to segment.
int64_t persistentBytes(const ScheduledProgram &program);

} // namespace mlir::fsdp

#endif // CODEGEN_TRACETABLES_H
