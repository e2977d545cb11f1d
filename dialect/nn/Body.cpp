//===- Body.cpp - the bodies of ops in assembly formats -------------------===//

#include "dialect/nn/Body.h"

using namespace mlir;

ParseResult mlir::nn::parseBody(OpAsmParser &parser, Region &body) {
  if (parser.parseRegion(body)) {
    for (Block &block : body)
      block.dropAllDefinedValueUses();
    return failure();
  }
  if (body.empty())
    body.emplaceBlock();
  return success();
}

void mlir::nn::printBody(OpAsmPrinter &printer, Operation *, Region &body) {
  printer.printRegion(body);
}
