//===- HostEmitter.h - the host file of a program ---------------*- C++ -*-===//

#ifndef CODEGEN_HOSTEMITTER_H
#define CODEGEN_HOSTEMITTER_H

#include "codegen/Arena.h"
#include "codegen/Tables.h"
#include "codegen/Target.h"

namespace mlir::fsdp {

struct FunctionRange;
class NameTable;

/// The file that a host program goes into.
struct HostFile {
  std::string name;
  std::vector<std::string> headers; ///< of the program, to include
  std::string elsewhere;            ///< source in other files that belongs to the program
  std::string programs = {};        ///< the table of the programs of all roles; "": there is one
};

/// Writes functions and tables of one scheduled module. Its kernels, and tables shared with other
/// plans, may be in other files.
class HostEmitter {
public:
  HostEmitter(const ScheduledProgram &program, const EmitOptions &options);

  /// Adds the kernels of the program to `kernels`. Fails with a diagnostic for an op that the
  /// target does not support.
  LogicalResult prepare(KernelTable &kernels);
  /// After prepare: the tables of the model. References to tables in other files use the namespace
  /// of the file.
  ModelTables &getModelTables() { return modelTables; }
  const Target &getTarget() const { return *target; }
  /// The C++ name of the program: `program`, in an anonymous namespace, which ends here. The names
  /// of `kernels` must be assigned.
  LogicalResult emit(const KernelTable &kernels, const HostFile &file, Writer &writer);

private:
  LogicalResult emitSegment(const Timeline &timeline, Writer &writer) const;
  LogicalResult emitFunctions(const Timeline &timeline, std::vector<std::string> &calls,
                              Writer &writer) const;
  LogicalResult emitActions(const Timeline &timeline, const FunctionRange &range, NameTable &table,
                            Writer &writer) const;

  const ScheduledProgram &program;
  const EmitOptions &options;
  Arena arena;
  std::unique_ptr<Target> target;
  ModelTables modelTables;
  const KernelTable *kernels = nullptr;
  /// Of every launch; each is printed twice or more.
  llvm::DenseMap<Operation *, std::unique_ptr<const Call>> calls;
};

/// The heading of a part of a file.
void emitBanner(Writer &writer, StringRef title);

} // namespace mlir::fsdp

#endif // CODEGEN_HOSTEMITTER_H
