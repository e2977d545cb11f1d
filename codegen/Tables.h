//===- Tables.h - the constant tables of an emitted program -----*- C++ -*-===//

#ifndef CODEGEN_TABLES_H
#define CODEGEN_TABLES_H

#include "codegen/Arena.h"
#include "codegen/EmitProgram.h"

namespace mlir::fsdp {

/// `enum`s of streams, communicators, axes and storages.
void emitEnumerators(const ScheduledProgram &program, Writer &writer);
/// `storages[]` with their states and members (runtime/program/Program.h).
LogicalResult emitStorages(const ScheduledProgram &program, const Arena &arena, Writer &writer);
/// Every other table and `program` itself. `kernels` is source beside the writer's that belongs to
/// the program.
void emitProgramTable(const ScheduledProgram &program, const Arena &arena,
                      const EmitOptions &options, StringRef kernels, Writer &writer);

} // namespace mlir::fsdp

#endif // CODEGEN_TABLES_H
