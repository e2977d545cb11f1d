//===- RowProduct.cpp -----------------------------------------------------===//

#include "dialect/nn/RowProduct.h"

using namespace mlir;
using namespace mlir::nn;

static SmallVector<StringRef> namesOf(const NotationTensor &tensor) {
  SmallVector<StringRef> names;
  for (const NotationDim &dim : tensor)
    names.push_back(dim.front());
  return names;
}

/// True where `side` is `kept` and then `summed`, or the other way round.
static bool isMatrix(ArrayRef<StringRef> side, ArrayRef<StringRef> kept,
                     ArrayRef<StringRef> summed) {
  return side ==
             ArrayRef<StringRef>(llvm::to_vector(llvm::concat<const StringRef>(kept, summed))) ||
         side == ArrayRef<StringRef>(llvm::to_vector(llvm::concat<const StringRef>(summed, kept)));
}

/// f32, or bf16 to either.
static bool hasTypesOfProduct(EinsumOp op) {
  Type lhs = getElementTypeOrSelf(op.getLhs().getType());
  Type rhs = getElementTypeOrSelf(op.getRhs().getType());
  Type result = getElementTypeOrSelf(op.getType());
  return lhs == rhs &&
         ((lhs.isF32() && result.isF32()) || (lhs.isBF16() && (result.isBF16() || result.isF32())));
}

std::optional<unsigned> mlir::nn::getRowDims(EinsumOp op) {
  if (!hasTypesOfProduct(op))
    return std::nullopt;
  for (const auto &size : op.getNameSizes())
    if (size.second == 0)
      return std::nullopt;
  Notation pattern = op.getPattern();
  SmallVector<StringRef> lhs = namesOf(pattern.operands[0]), rhs = namesOf(pattern.operands[1]),
                         result = namesOf(pattern.result);
  unsigned rows = 0;
  while (rows < result.size() && llvm::is_contained(lhs, result[rows]))
    ++rows;
  ArrayRef<StringRef> kept = ArrayRef(result).take_front(rows),
                      columns = ArrayRef(result).drop_front(rows);
  SmallVector<StringRef> summed;
  for (StringRef name : lhs)
    if (!llvm::is_contained(result, name))
      summed.push_back(name);
  if (kept.empty() || columns.empty() || summed.empty() || !isMatrix(lhs, kept, summed) ||
      !isMatrix(rhs, columns, summed))
    return std::nullopt;
  return rows;
}
