//===- Compile.h - from a model to the phase that was asked for -*- C++ -*-===//

#ifndef TOOLS_FSDPC_COMPILE_H
#define TOOLS_FSDPC_COMPILE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/fsdpc/Options.h"
#include "tools/output/Messages.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>

namespace fsdpc {

/// A context with every dialect loaded, whose diagnostics go to standard error with the line of
/// the source that they are about: of the `.mlir` file, or of the C++ that described the model.
class Context {
public:
  Context();
  ~Context();
  mlir::MLIRContext &get() { return *context; }
  llvm::SourceMgr &sources() { return sourceManager; }
  /// The model is described by a program: diagnostics are in the words of its author.
  void describesProgram() { printer->describesProgram(); }

private:
  llvm::SourceMgr sourceManager;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<DiagnosticPrinter> printer;
};

/// Reads and verifies the global IR in `path`. Throws Failure; what is wrong inside the file has
/// been printed by then.
mlir::OwningOpRef<mlir::ModuleOp> readModel(Context &context, const std::string &path);

/// Gives `module` `mesh`, unless that is empty, and the optimizer of `options`, and `name` where it
/// has none: what the generated program calls itself. Throws Failure for a module without a step
/// that trains, or one that is past the global phase.
void configure(mlir::ModuleOp module, const std::string &name, const MeshAxes &mesh,
               const Options &options);

/// Brings `module` from the end of the phase `done` (Model: before any pass) to the end of `phase`;
/// Source and Binary need no more than Scheduled. Throws Failure; the reason has been printed by
/// then.
void lower(mlir::ModuleOp module, const Options &options, Emit done, Emit phase);

/// The text of `module`, values named after the model. With `locations` it says all that the module
/// holds: the names that the model gave to what it computes stand in locations.
std::string print(mlir::ModuleOp module, bool locations);

} // namespace fsdpc

#endif // TOOLS_FSDPC_COMPILE_H
