//===- TensorSizes.cpp - no size wraps around -----------------------------===//

#include "dialect/fsdp/TensorSizes.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/TensorSize.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The error in a value of `type`, as the end of a sentence, or null; other verifiers reject types
/// without a static shape.
static const char *faultOf(Type type) {
  if (auto buffer = dyn_cast<BufferType>(type))
    type = buffer.getTensor();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return nullptr;
  if (tensor.getElementType().isInteger(0))
    return "has elements of no bits; use i1 or a wider type";
  return nn::countBytes(tensor) ? nullptr : nn::tooLargeMessage;
}

LogicalResult mlir::fsdp::verifyTensorSizes(Operation *root) {
  DenseSet<Type> faultless; // of a few types are all values
  WalkResult result = root->walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      if (faultless.contains(type))
        continue;
      const char *fault = faultOf(type);
      if (!fault) {
        faultless.insert(type);
        continue;
      }
      auto name = op->getLoc()->findInstanceOf<NameLoc>();
      InFlightDiagnostic diag = op->emitOpError();
      if (name)
        diag << "makes '" << name.getName().getValue() << "', of type " << type << ", which ";
      else
        diag << "has a result of type " << type << ", which ";
      diag << fault;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
