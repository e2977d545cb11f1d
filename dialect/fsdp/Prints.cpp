//===- Prints.cpp - what a model reports of its values --------------------===//

#include "dialect/fsdp/Prints.h"

#include "dialect/fsdp/FSDPDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult mlir::fsdp::detail::verifyCheckPlace(Operation *op, Attribute attribute) {
  auto place = dyn_cast<IntegerAttr>(attribute);
  if (isa<MetricOp, OutputOp>(op) && place && place.getType().isInteger(64) && place.getInt() >= 0)
    return success();
  return op->emitOpError() << "has '" << kCheckAttrName << "' " << attribute
                           << ", expected an i64 of at least 0 on an 'fsdp.metric' or an "
                              "'fsdp.output'";
}
