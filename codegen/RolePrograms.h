//===- RolePrograms.h - the programs of one module --------------*- C++ -*-===//

#ifndef CODEGEN_ROLEPROGRAMS_H
#define CODEGEN_ROLEPROGRAMS_H

#include "codegen/ScheduledProgram.h"
#include <vector>

namespace mlir::fsdp {

/// The programs of a scheduled module, at least one: one for each role. Fails with a diagnostic as
/// ScheduledProgram::create does, and unless the programs run the same steps and write the same
/// outputs in each: every rank decides by its outputs whether a step was good.
FailureOr<std::vector<ScheduledProgram>> readPrograms(ModuleOp module);

} // namespace mlir::fsdp

#endif // CODEGEN_ROLEPROGRAMS_H
