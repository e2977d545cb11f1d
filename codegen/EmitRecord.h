//===- EmitRecord.h - the expected log of a recorded program ----*- C++ -*-===//

#ifndef CODEGEN_EMITRECORD_H
#define CODEGEN_EMITRECORD_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fsdp {

struct Call;
class LaunchOp;
struct ScheduledProgram;

/// Prints, from the scheduled IR alone, the lines that the program of `module` prints when it is
/// compiled with -DFSDP_RECORD (runtime/execution/Record.h): the enqueued actions, in order, with
/// byte ranges.
LogicalResult emitRecord(ModuleOp module, llvm::raw_ostream &out);

/// Prints the line of `launch`. Its reads and writes are its operands and the accesses of its body
/// to the step state; `call` determines only the order of the runtime function's parameters. So the
/// line of a program whose call lacks an operand, or has one too many, differs.
void printLaunch(const ScheduledProgram &program, LaunchOp launch, const Call &call,
                 llvm::raw_ostream &out);

} // namespace mlir::fsdp

#endif // CODEGEN_EMITRECORD_H
