//===- TensorSizes.cpp - no size wraps around -----------------------------===//

#include "dialect/fsdp/TensorSizes.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/TensorSize.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Whether the bytes of a value of `type` fit; types without a static shape are others' to refuse.
static bool fits(Type type) {
  if (auto buffer = dyn_cast<BufferType>(type))
    type = buffer.getTensor();
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || !tensor.hasStaticShape() || nn::countBytes(tensor).has_value();
}

LogicalResult mlir::fsdp::verifyTensorSizes(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    for (Type type : op->getResultTypes()) {
      if (fits(type))
        continue;
      auto name = op->getLoc()->findInstanceOf<NameLoc>();
      InFlightDiagnostic diag = op->emitOpError();
      if (name)
        diag << "makes '" << name.getName().getValue() << "', of type " << type << ", which ";
      else
        diag << "has a result of type " << type << ", which ";
      diag << nn::tooLargeMessage;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
