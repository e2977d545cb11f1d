//===- TensorSize.cpp -----------------------------------------------------===//

#include "dialect/nn/TensorSize.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

std::optional<int64_t> nn::countElements(ArrayRef<int64_t> sizes) {
  // A dimension of size 0 does not offset a large one: strides are products of the other sizes.
  int64_t product = 1, elements = 1;
  for (int64_t size : sizes) {
    if (size < 0 || llvm::MulOverflow(product, std::max<int64_t>(size, 1), product) ||
        product > kMaxTensorBytes)
      return std::nullopt;
    elements *= size;
  }
  return elements;
}

const char *const nn::tooLargeMessage = "takes more than 2^48 bytes; make it smaller";

std::optional<int64_t> nn::countBytes(RankedTensorType type) {
  std::optional<int64_t> elements = countElements(type.getShape());
  // Elements of types without a bit width (index) take a word.
  Type element = type.getElementType();
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  int64_t width = std::max<int64_t>(llvm::divideCeil(bits, 8), 1); // other verifiers reject i0
  if (!elements || *elements > kMaxTensorBytes / width)
    return std::nullopt;
  return *elements * width;
}

bool nn::isSized(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getElementType().isIntOrFloat() &&
         tensor.getElementTypeBitWidth() > 0 && countBytes(tensor);
}
