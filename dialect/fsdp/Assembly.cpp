//===- Assembly.cpp - custom directives of assembly formats ---------------===//

#include "dialect/fsdp/Assembly.h"

#include "dialect/fsdp/FSDPDialect.h"

#include <limits>

using namespace mlir;
using namespace mlir::fsdp;

// A float without a type; -inf is the fill of a maximum.
ParseResult mlir::fsdp::parsePlainF64(OpAsmParser &parser, FloatAttr &value) {
  double number;
  if (succeeded(parser.parseOptionalMinus())) {
    if (succeeded(parser.parseOptionalKeyword("inf"))) {
      value = parser.getBuilder().getF64FloatAttr(-std::numeric_limits<double>::infinity());
      return success();
    }
    if (parser.parseFloat(number))
      return failure();
    number = -number;
  } else if (parser.parseFloat(number)) {
    return failure();
  }
  value = parser.getBuilder().getF64FloatAttr(number);
  return success();
}

void mlir::fsdp::printPlainF64(OpAsmPrinter &printer, Operation *, FloatAttr value) {
  if (value.getValue().isInfinity() && value.getValue().isNegative())
    printer << "-inf";
  else
    printer.printFloat(value.getValue());
}

// Parameter, gradient, states and results all have the shard's type: it is printed once.
ParseResult mlir::fsdp::parseShardTypes(OpAsmParser &parser, Type &parameter, Type &gradient,
                                        SmallVectorImpl<Type> &states, Type &newParameter,
                                        SmallVectorImpl<Type> &newStates) {
  int64_t count = 0;
  if (parser.parseType(parameter) || parser.parseKeyword("states"))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(count))
    return failure();
  // Checked before anything of that size is made; no optimizer has more.
  constexpr int64_t mostStates = 2;
  if (count < 0 || count > mostStates)
    return parser.emitError(loc) << "got " << count << " states, expected 0 to " << mostStates;
  gradient = newParameter = parameter;
  states.assign(count, parameter);
  newStates.assign(count, parameter);
  return success();
}

void mlir::fsdp::printShardTypes(OpAsmPrinter &printer, Operation *, Type parameter, Type,
                                 TypeRange states, Type, TypeRange) {
  printer << parameter << " states " << states.size();
}

ParseResult mlir::fsdp::parseLaunchBody(OpAsmParser &parser, Region &body) {
  if (parseBody(parser, body))
    return failure();
  LaunchOp::ensureTerminator(body, parser.getBuilder(),
                             parser.getEncodedSourceLoc(parser.getNameLoc()));
  return success();
}

void mlir::fsdp::printLaunchBody(OpAsmPrinter &printer, Operation *, Region &body) {
  Operation *end = body.front().getTerminator();
  printer.printRegion(body, /*printEntryBlockArgs=*/true,
                      /*printBlockTerminators=*/end->getNumOperands() || !end->getAttrs().empty());
}
