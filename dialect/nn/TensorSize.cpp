//===- TensorSize.cpp -----------------------------------------------------===//

#include "dialect/nn/TensorSize.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

std::optional<int64_t> nn::countElements(ArrayRef<int64_t> sizes) {
  // A dimension of size 0 makes up for no other one: strides are products of the rest.
  int64_t product = 1, elements = 1;
  for (int64_t size : sizes) {
    if (size < 0 || llvm::MulOverflow(product, std::max<int64_t>(size, 1), product) ||
        product > kMostTensorBytes)
      return std::nullopt;
    elements *= size;
  }
  return elements;
}

bool nn::isSized(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !tensor.getElementType().isIntOrFloat())
    return false;
  std::optional<int64_t> elements = countElements(tensor.getShape());
  return elements &&
         *elements <= kMostTensorBytes / std::max<int64_t>(tensor.getElementTypeBitWidth() / 8, 1);
}
