//===- Body.h - the bodies of ops in assembly formats -----------*- C++ -*-===//

#ifndef DIALECT_NN_BODY_H
#define DIALECT_NN_BODY_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::nn {

/// Directive for the one block of an op, used instead of a plain `$body`: the parser that TableGen
/// generates frees a body if only its first block parses, but earlier ops may already use its
/// values, and those uses then point to freed memory.
ParseResult parseBody(OpAsmParser &parser, Region &body);
void printBody(OpAsmPrinter &printer, Operation *op, Region &body);

} // namespace mlir::nn

#endif // DIALECT_NN_BODY_H
