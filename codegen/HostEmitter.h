//===- HostEmitter.h - the host file of a program ---------------*- C++ -*-===//

#ifndef CODEGEN_HOSTEMITTER_H
#define CODEGEN_HOSTEMITTER_H

#include "codegen/Arena.h"
#include "codegen/Tables.h"
#include "codegen/Target.h"

namespace mlir::fsdp {

struct FunctionRange;
class Spelling;

/// The file that a host program goes into.
struct HostFile {
  std::string name;
  std::vector<std::string> headers; ///< of the program, to include
  std::string elsewhere;            ///< source in other files that belongs to the program
};

/// Writes functions and tables of one scheduled module. Its kernels, and tables that other plans
/// have too, may stand elsewhere.
class HostEmitter {
public:
  HostEmitter(const ScheduledProgram &program, const EmitOptions &options);

  /// Takes the kernels of the program into `kernels`. Fails with a diagnostic for what the target
  /// has no words for.
  LogicalResult prepare(KernelTable &kernels);
  /// After prepare: those of the model alone. One that stands elsewhere is given that place.
  ModelTables &getModelTables() { return modelTables; }
  const Target &getTarget() const { return *target; }
  /// What the program is called in C++: `program`, in a namespace without a name, which ends here.
  /// The names of `kernels` have been assigned.
  LogicalResult emit(const KernelTable &kernels, const HostFile &file, Writer &writer);

private:
  LogicalResult emitSegment(const Timeline &timeline, Writer &writer) const;
  LogicalResult emitFunctions(const Timeline &timeline, std::vector<std::string> &calls,
                              Writer &writer) const;
  LogicalResult emitActions(const Timeline &timeline, const FunctionRange &range,
                            Spelling &spelling, Writer &writer) const;
  LogicalResult emitAction(const Action &action, Spelling &spelling, Writer &writer) const;

  const ScheduledProgram &program;
  const EmitOptions &options;
  Arena arena;
  std::unique_ptr<Target> target;
  ModelTables modelTables;
  const KernelTable *kernels = nullptr;
  /// Of every launch; each is printed twice or more.
  llvm::DenseMap<Operation *, std::unique_ptr<const Call>> calls;
};

/// A line that begins a part of a file.
void emitBanner(Writer &writer, StringRef title);

} // namespace mlir::fsdp

#endif // CODEGEN_HOSTEMITTER_H
