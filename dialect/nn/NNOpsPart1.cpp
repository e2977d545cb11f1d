//===- NNOpsPart1.cpp - generated op definitions, part 1 ------------------===//

#include "dialect/nn/Body.h"
#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"

using namespace mlir;
using namespace mlir::nn;

#define GET_OP_DEFS_1
#include "dialect/nn/NNOps.cpp.inc"
