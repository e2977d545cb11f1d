//===- RoleTables.h - the tables of roles in emitted programs ---*- C++ -*-===//
// See runtime/program/Roles.h. A program of one role has none of these tables.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_ROLETABLES_H
#define CODEGEN_ROLETABLES_H

#include "codegen/ScheduledProgram.h"
#include "codegen/Writer.h"

namespace mlir::fsdp {

/// Writes the lists of roles that the tables of `program` name.
void emitRoleTables(const ScheduledProgram &program, Writer &writer);
/// The table of the roles that own `storage`, or that load an input; "" if all do.
std::string spellRoles(const ScheduledProgram &program, StorageOp storage);
std::string spellRoles(const ScheduledProgram &program, const InputEntry &input);
/// The table of the roles that run `program`.
std::string spellRoles(const ScheduledProgram &program);
/// The place of a tensor of `type` that only other roles have.
std::string spellElsewhere(RankedTensorType type);

} // namespace mlir::fsdp

#endif // CODEGEN_ROLETABLES_H
