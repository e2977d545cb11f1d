//===- ProductCost.cpp ----------------------------------------------------===//

#include "dialect/nn/ProductCost.h"
#include "dialect/nn/AttentionLayout.h"
#include "dialect/nn/NNDialect.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::nn;

static Type elementTypeOf(Operation *op) {
  return cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
}

static ProductCost productOf(EinsumOp op) {
  const Notation pattern = op.getPattern();
  auto has = [](const NotationTensor &tensor, StringRef name) {
    return llvm::any_of(tensor, [&](const NotationDim &dim) { return dim.front() == name; });
  };
  // Names of the left operand and the result are rows, of the right one and the result columns, of
  // the operands alone terms; those of all three number the matrices.
  int64_t rows = 1, columns = 1, terms = 1;
  for (const auto &entry : op.getNameSizes()) {
    const int64_t size = entry.second;
    if (!has(pattern.result, entry.first()))
      terms *= size;
    else if (!has(pattern.operands.back(), entry.first()))
      rows *= size;
    else if (!has(pattern.operands.front(), entry.first()))
      columns *= size;
  }
  if (terms == 1)
    return {};
  return {"matrix", op.getCost().flops, std::min({rows, columns, terms}), elementTypeOf(op)};
}

ProductCost mlir::nn::getProductCost(Operation *op) {
  auto attention = [&](auto typed, StringRef kind) {
    return ProductCost{kind, typed.getCost().flops, typed.getLayout().width, elementTypeOf(op)};
  };
  return TypeSwitch<Operation *, ProductCost>(op)
      .Case([](EinsumOp product) { return productOf(product); })
      .Case([&](AttentionOp typed) { return attention(typed, "attention"); })
      .Case([&](AttentionGradOp typed) { return attention(typed, "attention_grad"); })
      .Case([](FusedOp fused) {
        ProductCost largest;
        for (Operation &inner : fused.getBody().front())
          if (ProductCost product = getProductCost(&inner); product.flops > largest.flops)
            largest = product;
        return largest;
      })
      .Default(ProductCost());
}
