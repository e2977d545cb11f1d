//===- FSDPOpsPart0.cpp - generated op definitions, part 0 ----------------===//

#include "dialect/fsdp/Assembly.h"
#include "dialect/fsdp/FSDPDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

#define GET_OP_DEFS_0
#include "dialect/fsdp/FSDPOps.cpp.inc"
