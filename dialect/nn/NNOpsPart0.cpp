//===- NNOpsPart0.cpp - generated op definitions, part 0 ------------------===//

#include "dialect/nn/Body.h"
#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"

using namespace mlir;
using namespace mlir::nn;

#define GET_OP_DEFS_0
#include "dialect/nn/NNOps.cpp.inc"
