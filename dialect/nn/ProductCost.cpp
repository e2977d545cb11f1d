//===- ProductCost.cpp ----------------------------------------------------===//

#include "dialect/nn/ProductCost.h"
#include "dialect/nn/AttentionLayout.h"
#include "dialect/nn/Cost.h"
#include "dialect/nn/LibraryEpilogue.h"
#include "dialect/nn/NNDialect.h"
#include "dialect/nn/OperandSum.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

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
  // Names in the left operand and the result are rows, names in the right operand and the result
  // are columns, names in both operands only are terms; names in all three number the matrices.
  const NotationTensor &left = pattern.operands.front(), &right = pattern.operands.back();
  auto shapeOf = [&](unsigned operand) {
    return cast<RankedTensorType>(op->getOperand(operand).getType()).getShape();
  };
  int64_t rows = 1, columns = 1, terms = 1, matrices = 1;
  for (auto [dim, size] : llvm::zip_equal(left, shapeOf(0)))
    (!has(pattern.result, dim.front()) ? terms : has(right, dim.front()) ? matrices : rows) *= size;
  for (auto [dim, size] : llvm::zip_equal(right, shapeOf(1)))
    if (!has(left, dim.front()))
      columns *= size;
  if (terms == 1)
    return {};
  return {"matrix", 2 * matrices * rows * columns * terms, std::min({rows, columns, terms}),
          elementTypeOf(op)};
}

ProductCost mlir::nn::getProductCost(Operation *op) {
  auto attention = [&](auto typed, StringRef kind) {
    const AttentionLayout layout = typed.getLayout();
    const auto window = static_cast<int64_t>(typed.getWindow().value_or(layout.keys));
    return ProductCost{kind, typed.getCost().flops, layout.width, elementTypeOf(op),
                       std::min(layout.keys, window)};
  };
  return TypeSwitch<Operation *, ProductCost>(op)
      .Case([](EinsumOp product) { return productOf(product); })
      .Case([&](AttentionOp typed) { return attention(typed, "attention"); })
      .Case([&](AttentionGradOp typed) { return attention(typed, "attention_grad"); })
      .Case([&](AttentionBiasGradOp typed) { return attention(typed, "attention_grad"); })
      .Case([](FusedOp fused) {
        ProductCost largest;
        for (Operation &inner : fused.getBody().front())
          if (ProductCost product = getProductCost(&inner); product.flops > largest.flops)
            largest = product;
        return largest;
      })
      .Default(ProductCost());
}

Epilogue mlir::nn::getEpilogue(Operation *op) {
  auto fused = dyn_cast<FusedOp>(op);
  if (!fused)
    return {};
  if (std::optional<OperandSum> both = getOperandSum(op)) {
    Epilogue epilogue;
    epilogue.isOperandSum = true;
    epilogue.bytes =
        bytesOf(both->product->getOperand(both->ofRight).getType()) + bytesOf(both->sum.getType());
    return epilogue;
  }
  Block &body = fused.getBody().front();
  const int64_t flops = getProductCost(op).flops;
  Operation *product = nullptr;
  SmallVector<Operation *> loops;
  for (Operation &inner : body.without_terminator()) {
    if (flops > 0 && !product && getProductCost(&inner).flops == flops)
      product = &inner;
    else if (!isa<arith::ConstantOp, RepeatOp>(inner))
      loops.push_back(&inner);
  }
  auto isRepeated = [](Value operand) { return operand.getDefiningOp<RepeatOp>() != nullptr; };
  if (!product || loops.empty())
    return {};
  Epilogue epilogue;
  epilogue.isBias = loops.size() == 1 && isa<arith::AddFOp>(loops.front()) &&
                    llvm::any_of(loops.front()->getOperands(), isRepeated);
  for (Value result : product->getResults())
    epilogue.bytes += bytesOf(result.getType());
  for (BlockArgument argument : body.getArguments())
    if (llvm::any_of(argument.getUsers(), [&](Operation *user) { return user != product; }))
      epilogue.bytes += bytesOf(argument.getType());
  for (Value result : body.getTerminator()->getOperands())
    if (result.getDefiningOp() != product) // which is where it was computed
      epilogue.bytes += bytesOf(result.getType());
  std::optional<LibraryEpilogue> library = getLibraryEpilogue(fused);
  if (!library) {
    epilogue.remainingBytes = epilogue.bytes;
  } else if (library->results < fused->getNumResults()) {
    epilogue.remainingBytes = bytesOf(fused.getResult(0).getType());
    for (Value sum : fused->getResults().drop_front(library->results))
      epilogue.remainingBytes += bytesOf(sum.getType());
  }
  return epilogue;
}
