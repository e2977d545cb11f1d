//===- Target.h - the interface of targets ----------------------*- C++ -*-===//
// Programs of all targets have the same functions, tables, addresses, streams, events, names and
// calls of the runtime; their kernels and files are printed through this interface.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_TARGET_H
#define CODEGEN_TARGET_H

#include "codegen/Calls.h"
#include "codegen/EmittedProgram.h"
#include "codegen/KernelTable.h"
#include "codegen/Writer.h"

namespace mlir::fsdp {

/// A launch in an emitted function.
struct PrintedLaunch {
  LaunchOp op;
  const Call &call;
  std::string stream;                           ///< its enumerator
  std::string name;                             ///< an expression: a literal, or a field of a table
  llvm::function_ref<std::string(Value)> slice; ///< the expression of a buffer
};

class Target {
public:
  explicit Target(const ScheduledProgram &program) : program(program) {}
  virtual ~Target() = default;

  /// Rejects ops that the target's kernels do not support.
  virtual LogicalResult check(LaunchOp) const { return success(); }

  /// The generated function of a launch that does not call the runtime.
  virtual FailureOr<KernelFunction> kernel(LaunchOp launch, bool anonymous) const = 0;

  // The lines of an action: calls `function(c, stream, ...)` of the target's Launch.h
  // (runtime/execution) and of runtime/launches.
  void wait(const std::string &stream, const std::string &event, Writer &writer) const;
  void launch(const PrintedLaunch &launch, const KernelTable &kernels, Writer &writer) const;
  void record(const std::string &stream, const std::string &event, Writer &writer) const;

  // The files. In a program of one file, kernels precede their callers.
  /// The beginning of the host file `file`, which includes `headers` of the program.
  virtual void head(const EmitOptions &options, StringRef file, ArrayRef<std::string> headers,
                    Writer &writer) const = 0;
  /// The headers of the runtime that every host file includes.
  virtual StringRef runtimeHeader() const = 0;
  virtual void includesOfKernels(Writer &writer) const = 0;
  virtual void kernelsInside(const KernelTable &kernels, Writer &writer) const = 0;
  virtual void kernelFiles(const EmitOptions &options, const KernelTable &kernels,
                           EmittedProgram &out) const = 0;

protected:
  const ScheduledProgram &program;

private:
  std::string spellKernel(const PrintedLaunch &launch, const KernelTable &kernels) const;
};

/// The first line of a file.
std::string titleOf(StringRef file, StringRef what);

/// The function of the body of `launch` for the CPU target: loops in the order of the indices.
/// With `anonymous`, its variables have no names of the model, so that equal kernels have equal
/// text. Fails with a diagnostic if the body has no form in C++.
FailureOr<KernelFunction> printKernel(LaunchOp launch, bool anonymous);

std::unique_ptr<Target> createCpuTarget(const ScheduledProgram &program);
std::unique_ptr<Target> createCudaTarget(const ScheduledProgram &program);

} // namespace mlir::fsdp

#endif // CODEGEN_TARGET_H
