//===- EmitRecord.h - the log that a recorded program must write -*- C++ -*-===//

#ifndef CODEGEN_EMITRECORD_H
#define CODEGEN_EMITRECORD_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fsdp {

struct Call;
class LaunchOp;
struct ScheduledProgram;

/// Prints, from the scheduled IR alone, the lines that the program of `module` prints when it is
/// compiled with -DFSDP_RECORD (runtime/execution/Record.h): what is enqueued, in order, with byte
/// ranges.
LogicalResult emitRecord(ModuleOp module, llvm::raw_ostream &out);

/// Prints the line of `launch`. What it reads and writes are its own operands and what its body
/// touches of the step state; `call` gives no more than the order in which the runtime's function
/// takes them. So the line of a program whose call lacks an operand, or has one too many, differs
/// from this one.
void printLaunch(const ScheduledProgram &program, LaunchOp launch, const Call &call,
                 llvm::raw_ostream &out);

} // namespace mlir::fsdp

#endif // CODEGEN_EMITRECORD_H
