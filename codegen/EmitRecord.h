//===- EmitRecord.h - the log that a recorded program must write -*- C++ -*-===//

#ifndef CODEGEN_EMITRECORD_H
#define CODEGEN_EMITRECORD_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fsdp {

/// Prints, from the scheduled IR alone, the lines that the program of `module` prints when it is
/// compiled with -DFSDP_RECORD (runtime/device/Record.h): what is enqueued, in order, with byte ranges.
LogicalResult emitRecord(ModuleOp module, llvm::raw_ostream &out);

} // namespace mlir::fsdp

#endif // CODEGEN_EMITRECORD_H
