//===- ReshardAfterForward.cpp - what is kept from forward to backward ----===//

#include "passes/Passes.h"

namespace mlir::fsdp {
#define GEN_PASS_DEF_RESHARDAFTERFORWARDPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct ReshardAfterForward : fsdp::impl::ReshardAfterForwardPassBase<ReshardAfterForward> {
  using Base::Base;

  void runOnOperation() override {
    for (auto param : getOperation().getOps<ParamOp>()) {
      PlacementAttr placement = param.getPlacementAttr();
      if (!placement) {
        param.emitOpError() << "'" << param.getSymName()
                            << "' has no placement yet; run --fsdp-shard-parameters first";
        return signalPassFailure();
      }
      param.setPlacementAttr(PlacementAttr::get(
          &getContext(), placement.getKind(), placement.getDim(), placement.getAxes(),
          placement.getGather(), placement.getReduce(), when));
    }
  }
};
} // namespace
