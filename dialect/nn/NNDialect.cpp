//===- NNDialect.cpp - registration ---------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::nn;

#include "dialect/nn/NNDialect.cpp.inc"
#include "dialect/nn/NNEnums.cpp.inc"
#include "dialect/nn/NNInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/nn/NNAttrs.cpp.inc"

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/nn/NNAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/nn/NNOps.cpp.inc"
      >();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                          Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}
