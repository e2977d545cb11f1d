//===- Pipelines.cpp - the order of the passes, and why -------------------===//

#include "passes/Passes.h"

using namespace mlir;
using namespace mlir::fsdp;

void mlir::fsdp::registerPasses() { registerFSDPPasses(); }
