//===- EmitProgram.h - scheduled IR to the text of a program ----*- C++ -*-===//

#ifndef CODEGEN_EMITPROGRAM_H
#define CODEGEN_EMITPROGRAM_H

#include "codegen/EmittedProgram.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace mlir::fsdp {

/// Writes the program of a scheduled module with offsets, or those of its roles as emitPlans does:
/// it needs the runtime's headers to compile and its library to link (codegen/Project.h). The same
/// module gives the same text. Fails with a diagnostic if the module is in another phase, lacks
/// offsets, or contains an op that the target does not support.
LogicalResult emitProgram(ModuleOp module, const EmitOptions &options, EmittedProgram &out);

/// One of several programs that a binary holds: the same model for another mesh.
struct PlanSource {
  ModuleOp module;
  std::string report;                     ///< as in EmitOptions
  double modelFlops = 0, peakSeconds = 0; ///< as there
};

/// Writes one program with several plans, the first of which it uses when started alone: train.cpp,
/// a host file for each plan, plans.h with the parts that do not differ between them, and the
/// kernels of all, each once. A plan whose ranks have different roles has a host file for each
/// role. For one plan of one role the result is that of emitProgram. Ignores `options.report`.
LogicalResult emitPlans(ArrayRef<PlanSource> plans, const EmitOptions &options,
                        EmittedProgram &out);

} // namespace mlir::fsdp

#endif // CODEGEN_EMITPROGRAM_H
