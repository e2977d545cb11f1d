//===- ShardingRule.cpp - the iteration space of an op as factors ---------===//

#include "dialect/nn/ShardingRule.h"

using namespace mlir;
using namespace mlir::nn;

bool mlir::nn::runsOver(const TensorFactors &tensor, int64_t factor) {
  return llvm::any_of(tensor,
                      [&](const DimFactors &dim) { return llvm::is_contained(dim, factor); });
}

bool mlir::nn::anyRunsOver(ArrayRef<TensorFactors> tensors, int64_t factor) {
  return llvm::any_of(tensors,
                      [&](const TensorFactors &tensor) { return runsOver(tensor, factor); });
}

TensorFactors ShardingRule::addDims(RankedTensorType type) {
  TensorFactors dims;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    dims.push_back({static_cast<int64_t>(factors.size())});
    factors.push_back({"d" + std::to_string(dim), size});
  }
  return dims;
}

ShardingRule ShardingRule::elementwise(Operation *op) {
  ShardingRule rule;
  auto result = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                         : RankedTensorType();
  const TensorFactors all = result ? rule.addDims(result) : TensorFactors();
  auto factorsOf = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == static_cast<int64_t>(all.size()) ? all : TensorFactors();
  };
  for (Type type : op->getOperandTypes())
    rule.operands.push_back(factorsOf(type));
  for (Type type : op->getResultTypes())
    rule.results.push_back(factorsOf(type));
  return rule;
}

int64_t ShardingRule::lookup(StringRef name) const {
  for (auto [index, factor] : llvm::enumerate(factors))
    if (factor.name == name)
      return index;
  return -1;
}

void ShardingRule::forEachTensor(
    Operation *op, llvm::function_ref<void(Value, const TensorFactors &)> visit) const {
  for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), operands))
    visit(value, tensor);
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), results))
    visit(value, tensor);
}

LogicalResult ShardingRule::verify(Operation *op) const {
  auto verifyTensor = [&](Type type, const TensorFactors &dims, StringRef what,
                          size_t index) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success(dims.empty());
    if (static_cast<int64_t>(dims.size()) != tensor.getRank())
      return op->emitOpError("sharding rule has ")
             << dims.size() << " dimensions for " << what << " #" << index << ", expected "
             << tensor.getRank();
    for (auto [dim, indices] : llvm::enumerate(dims)) {
      int64_t size = 1;
      for (int64_t factor : indices)
        size *= factors[factor].size;
      if (size != tensor.getDimSize(dim))
        return op->emitOpError("sharding rule gives dimension ")
               << dim << " of " << what << " #" << index << " the size " << size << ", expected "
               << tensor.getDimSize(dim);
    }
    return success();
  };
  if (operands.size() != op->getNumOperands() || results.size() != op->getNumResults())
    return op->emitOpError("sharding rule has ")
           << operands.size() << " operands and " << results.size() << " results, expected "
           << op->getNumOperands() << " and " << op->getNumResults();
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes()))
    if (failed(verifyTensor(type, operands[index], "operand", index)))
      return failure();
  for (auto [index, type] : llvm::enumerate(op->getResultTypes()))
    if (failed(verifyTensor(type, results[index], "result", index)))
      return failure();
  return success();
}
