//===- TensorSize.cpp - what a tensor takes, in 64 bits -------------------===//

#include "dialect/nn/TensorSize.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

const char *const mlir::nn::tooLargeMessage =
    "takes more than 9223372036854775807 bytes; make it smaller";

std::optional<int64_t> mlir::nn::checkedProduct(ArrayRef<int64_t> factors) {
  if (llvm::is_contained(factors, 0))
    return 0;
  int64_t product = 1;
  for (int64_t factor : factors)
    if (llvm::MulOverflow(product, factor, product))
      return std::nullopt;
  return product;
}

std::optional<int64_t> mlir::nn::countBytes(RankedTensorType type) {
  // Types whose elements have no width of their own (index) take a word.
  Type element = type.getElementType();
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
  SmallVector<int64_t> factors(type.getShape());
  factors.push_back(static_cast<int64_t>(llvm::divideCeil(bits, 8)));
  return checkedProduct(factors);
}
