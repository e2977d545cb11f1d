//===- Fill.cpp - the values that masks write -----------------------------===//

#include "dialect/fsdp/Fill.h"

#include "llvm/ADT/APSInt.h"

using namespace mlir;

/// The nearest integer of type `element`, and whether it is equal to `fill`.
static std::pair<llvm::APSInt, bool> toInteger(const APFloat &fill, Type element) {
  unsigned bits = element.getIntOrFloatBitWidth();
  llvm::APSInt value(bits, /*isUnsigned=*/bits == 1);
  bool exact = false;
  fill.convertToInteger(value, APFloat::rmTowardZero, &exact);
  return {value, exact};
}

TypedAttr mlir::fsdp::getFill(const APFloat &fill, Type element) {
  if (isa<FloatType>(element))
    return FloatAttr::get(element, fill.convertToDouble());
  return IntegerAttr::get(element, toInteger(fill, element).first);
}

LogicalResult mlir::fsdp::detail::verifyFill(Operation *op, const APFloat &fill, Type element) {
  if (fill.isNaN())
    return op->emitOpError() << "fills with NaN, expected a number or an infinity";
  if (!isa<FloatType>(element) && !fill.isInfinity() && !toInteger(fill, element).second)
    return op->emitOpError() << "fills with " << fill.convertToDouble()
                             << ", expected an infinity or a value of " << element;
  return success();
}
