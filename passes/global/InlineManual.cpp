//===- InlineManual.cpp - the bodies of manual regions in their places ----===//

#include "dialect/fsdp/Manual.h"
#include "passes/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_INLINEMANUALPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct InlineManual : fsdp::impl::InlineManualPassBase<InlineManual> {
  void runOnOperation() override { inlineManual(getOperation()); }
};
} // namespace
