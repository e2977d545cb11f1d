//===- Tables.h - the constant tables of an emitted program -----*- C++ -*-===//

#ifndef CODEGEN_TABLES_H
#define CODEGEN_TABLES_H

#include "codegen/Arena.h"
#include "codegen/EmittedProgram.h"
#include <map>

namespace mlir::fsdp {

/// An `enum` of `names` below the comment `what`; nothing if there are none.
void emitEnum(ArrayRef<std::string> names, StringRef what, Writer &writer);
/// `enum`s of streams, communicators, axes and storages.
void emitEnumerators(const ScheduledProgram &program, Writer &writer);
/// A table that describes the model, and may be the same for other meshes.
struct ModelTable {
  std::string text;  ///< its definition
  std::string place; ///< the namespace of its definition: "plans::"; empty: in the host file
  int64_t size = 0;  ///< of the members of a storage: elements
};
/// By name: members of each storage, and files of a checkpoint.
using ModelTables = std::map<std::string, ModelTable>;

/// The tables of the model.
LogicalResult emitModelTables(const ScheduledProgram &program, ModelTables &tables);
/// `storages[]` with their states and members (runtime/program/Program.h).
void emitStorages(const ScheduledProgram &program, const Arena &arena, const ModelTables &tables,
                  Writer &writer);
/// Every other table and `program` itself. `elsewhere` is source of the program in other files,
/// `programs` the table of the programs of all roles, if there are several.
void emitProgramTable(const ScheduledProgram &program, const Arena &arena,
                      const EmitOptions &options, const ModelTables &tables, StringRef elsewhere,
                      StringRef programs, Writer &writer);

} // namespace mlir::fsdp

#endif // CODEGEN_TABLES_H
