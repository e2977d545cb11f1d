//===- AttentionLayout.cpp ------------------------------------------------===//

#include "dialect/nn/AttentionLayout.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::nn;

bool mlir::nn::isAttentionOrder(StringRef order) {
  std::string letters;
  for (size_t i = 0; i < order.size(); ++i)
    if (i % 2 == 0)
      letters += order[i];
    else if (order[i] != ' ')
      return false;
  if (order.size() % 2 == 0 || letters.back() != 'd')
    return false;
  llvm::sort(letters);
  return letters == "bdht" || letters == "bdhnt";
}

int64_t mlir::nn::attentionDim(StringRef order, char letter) {
  size_t at = order.find(letter);
  return at == StringRef::npos ? -1 : static_cast<int64_t>(at / 2);
}

std::string mlir::nn::attentionOutOrder(StringRef order) {
  std::string out = order.str();
  if (size_t at = out.find("n "); at != std::string::npos)
    out.erase(at, 2);
  return out;
}

/// Elements from one index of a dimension to the next.
static int64_t strideOf(ArrayRef<int64_t> shape, int64_t dim) {
  return elementsOf(shape.drop_front(dim + 1));
}

AttentionLayout::AttentionLayout(StringRef order, TypeRange inputs) {
  auto shapeOf = [](Type type) { return cast<RankedTensorType>(type).getShape(); };
  auto stridesIn = [](StringRef order, ArrayRef<int64_t> shape) -> AttentionStrides {
    return {strideOf(shape, attentionDim(order, 'b')), strideOf(shape, attentionDim(order, 'h')),
            strideOf(shape, attentionDim(order, 't'))};
  };
  int64_t parts = attentionDim(order, 'n'), heads = attentionDim(order, 'h'),
          positions = attentionDim(order, 't');
  ArrayRef<int64_t> qShape = shapeOf(inputs.front()),
                    kShape = parts < 0 ? shapeOf(inputs[1]) : qShape;
  batch = qShape[attentionDim(order, 'b')];
  width = qShape.back();
  this->heads = qShape[heads];
  groups = kShape[heads];
  queries = qShape[positions];
  keys = kShape[positions];
  part = parts < 0 ? 0 : strideOf(qShape, parts);
  q = stridesIn(order, qShape);
  k = stridesIn(order, kShape);
  SmallVector<int64_t> outShape(qShape);
  if (parts >= 0)
    outShape.erase(outShape.begin() + parts);
  out = stridesIn(attentionOutOrder(order), outShape);
}
