//===- ShardingRule.cpp - the iteration space of an op as factors ---------===//

#include "dialect/nn/ShardingRule.h"

using namespace mlir;
using namespace mlir::nn;

ShardingRule ShardingRule::elementwise(Operation *op) {
  ShardingRule rule;
  auto result = op->getNumResults() == 1 ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                         : RankedTensorType();
  int64_t rank = result ? result.getRank() : 0;
  for (int64_t dim = 0; dim < rank; ++dim)
    rule.factors.push_back({"d" + std::to_string(dim), result.getDimSize(dim)});
  auto factorsOf = [&](Type type) {
    TensorFactors dims;
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.getRank() == rank)
      for (int64_t dim = 0; dim < rank; ++dim)
        dims.push_back({dim});
    return dims;
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
