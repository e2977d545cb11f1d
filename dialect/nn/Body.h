//===- Body.h - the bodies of ops in assembly formats -----------*- C++ -*-===//

#ifndef DIALECT_NN_BODY_H
#define DIALECT_NN_BODY_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::nn {

/// Directive for the one block of an op, used instead of a plain `$body`: the parser that TableGen
/// makes of that frees a body of which only the first block parses, though ops in front of this one
/// may use its values by then, and those uses lead to freed memory.
ParseResult parseBody(OpAsmParser &parser, Region &body);
void printBody(OpAsmPrinter &printer, Operation *op, Region &body);

} // namespace mlir::nn

#endif // DIALECT_NN_BODY_H
