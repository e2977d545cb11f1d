//===- NNDialect.cpp - registration ---------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nn;

#include "dialect/nn/NNDialect.cpp.inc"
#include "dialect/nn/NNEnums.cpp.inc"
#include "dialect/nn/NNInterfaces.cpp.inc"

void NNDialect::initialize() { registerNNDialectOperations(this); }

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                          Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
