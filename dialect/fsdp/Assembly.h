//===- Assembly.h - custom directives of assembly formats -------*- C++ -*-===//

#ifndef DIALECT_FSDP_ASSEMBLY_H
#define DIALECT_FSDP_ASSEMBLY_H

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/Body.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

namespace mlir::fsdp {

/// A float without its type; `-inf` is the fill of a maximum.
ParseResult parsePlainF64(OpAsmParser &parser, FloatAttr &value);
void printPlainF64(OpAsmPrinter &printer, Operation *op, FloatAttr value);

/// Parameter, gradient, states and results of an optimizer step all have the shard's type: it is
/// printed once, with the number of states.
ParseResult parseShardTypes(OpAsmParser &parser, Type &parameter, Type &gradient,
                            SmallVectorImpl<Type> &states, Type &newParameter,
                            SmallVectorImpl<Type> &newStates);
void printShardTypes(OpAsmPrinter &printer, Operation *op, Type parameter, Type gradient,
                     TypeRange states, Type newParameter, TypeRange newStates);

/// The contents of `#fsdp.structure`, without brackets: `"h.0" backward`.
ParseResult parseStructure(AsmParser &parser, StructureAttr &structure);
void printStructure(AsmPrinter &printer, StructureAttr structure);
inline void printStructure(OpAsmPrinter &printer, Operation *, StructureAttr structure) {
  printStructure(printer, structure);
}

using nn::parseBody;
using nn::printBody;

/// A body whose `fsdp.yield` may be left out where it yields nothing.
ParseResult parseLaunchBody(OpAsmParser &parser, Region &body);
void printLaunchBody(OpAsmPrinter &printer, Operation *op, Region &body);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_ASSEMBLY_H
