//===- Compile.h - compile a model to a phase -------------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_COMPILE_H
#define TOOLS_FSDPC_COMPILE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/fsdpc/Options.h"
#include "tools/output/Messages.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>
#include <optional>
#include <vector>

namespace mlir::fsdp {
struct ScheduleFindings;
struct ScheduleProblem;
} // namespace mlir::fsdp

namespace fsdpc {

/// A context with every dialect loaded, whose diagnostics go to standard error with their source
/// line: of the `.mlir` file, or of the C++ that described the model.
class Context {
public:
  Context();
  ~Context();
  mlir::MLIRContext &get() { return *context; }
  llvm::SourceMgr &sources() { return sourceManager; }
  /// The model is described by a program: diagnostics use the names of its author. See
  /// DiagnosticPrinter.
  void describesProgram(const std::string &name, DiagnosticPrinter::IsOfLibrary isOfLibrary) {
    printer->describesProgram(name, isOfLibrary);
  }

private:
  llvm::SourceMgr sourceManager;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<DiagnosticPrinter> printer;
};

/// Reads and verifies the global IR in `path`. Throws Failure after printing errors inside the
/// file.
mlir::OwningOpRef<mlir::ModuleOp> readModel(Context &context, const std::string &path);

/// A copy of `module`, names of values included, in another context, for use in another thread.
mlir::OwningOpRef<mlir::ModuleOp> copyInto(Context &context, mlir::ModuleOp module);

/// Runs `action`. Its errors name the plan, that of `mesh`, if it is one of several.
void inPlan(const MeshAxes &mesh, bool oneOfSeveral, llvm::function_ref<void()> action);
/// Whether `module` has regions in local terms, which are of the mesh that it was described for.
bool hasManualRegions(mlir::ModuleOp module);

/// Sets the mesh of `module` to `mesh`, unless that is empty, its optimizer to that of `options`,
/// and the name of the generated program to `name` if it has none. Throws Failure for a module
/// without a step
/// that trains, or one that is past the global phase.
void configure(mlir::ModuleOp module, const std::string &name, const MeshAxes &mesh,
               const Options &options);

/// Brings `module` from the end of the phase `done` (Model: before any pass) to the end of `phase`;
/// Source and Binary need only Scheduled. Throws Failure after printing the reason.
void lower(mlir::ModuleOp module, const Options &options, Emit done, Emit phase,
           mlir::fsdp::ScheduleFindings *findings = nullptr);
/// Throws Failure after printing the reason where an op of `module` is invalid: for modules that
/// are written, as `lower` verifies only the ops of the global phase, and the schedule.
void verifyOperations(mlir::ModuleOp module);
/// The translation of the scheduled `module` with costs: `verified`, which is without, if it is
/// there.
mlir::fsdp::ScheduleProblem translate(mlir::ModuleOp module,
                                      std::optional<mlir::fsdp::ScheduleProblem> verified);

/// The plans of a model, one module each.
using Plans = std::vector<mlir::OwningOpRef<mlir::ModuleOp>>;
/// Keeps `plans`, the last ones of the process, until it ends, without destroying them: op by op,
/// that of a large program takes as long as a pass.
Plans &leaveUndestroyed(Plans plans);

/// The text of `module`, values named after the model. With `locations` it is complete: the model's
/// names of values are in locations.
std::string print(mlir::ModuleOp module, bool locations);

} // namespace fsdpc

#endif // TOOLS_FSDPC_COMPILE_H
