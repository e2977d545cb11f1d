//===- JoinOperandSums.cpp ------------------------------------------------===//

#include "passes/local/JoinOperandSums.h"

#include "dialect/nn/OperandSum.h"
#include "passes/KernelJoiner.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A sum over rows that is a kernel of its own.
struct RowSum {
  Operation *kernel;   ///< an nn.reduce, or an nn.fused that widens its operand before
  nn::ReduceOp reduce; ///< of the kernel
  Value operand;       ///< as the reduction sees it: of the block, or an argument of the nn.fused
};

} // namespace

static RowSum rowSumOf(Operation *op) {
  if (auto reduce = dyn_cast<nn::ReduceOp>(op))
    return {op, reduce, reduce.getInput()};
  auto fused = dyn_cast<nn::FusedOp>(op);
  if (!fused || fused->getNumOperands() != 1 || fused->getNumResults() != 1)
    return {};
  Block &body = fused.getBody().front();
  return {op, body.getTerminator()->getOperand(0).getDefiningOp<nn::ReduceOp>(),
          body.getArgument(0)};
}

/// The sum over the rows of an operand of `product` that may be computed where the product is.
static RowSum findRowSum(nn::EinsumOp product, bool ofRight, const JoinableOps &ops) {
  for (Operation *user : product->getOperand(ofRight).getUsers()) {
    if (!ops.mayJoin(product, user))
      continue;
    RowSum sum = rowSumOf(user);
    if (sum.reduce && nn::addsUpRows(sum.reduce, sum.operand, product, ofRight) &&
        llvm::all_of(sum.kernel->getUsers(),
                     [&](Operation *next) { return product->isBeforeInBlock(next); }))
      return sum;
  }
  return {};
}

static void join(nn::EinsumOp product, RowSum sum) {
  KernelJoiner joiner(product, product, TypeRange{product.getType(), sum.reduce.getType()},
                      ValueRange(product->getOperands()));
  SmallVector<Value> yielded(joiner.copy(product)->getResults());
  if (auto kernel = dyn_cast<nn::FusedOp>(sum.kernel))
    yielded.append(joiner.copyBody(kernel));
  else
    yielded.push_back(joiner.copy(sum.kernel)->getResult(0));
  Operation *fused = joiner.finish(yielded);
  sum.kernel->getResult(0).replaceAllUsesWith(fused->getResult(1));
  sum.kernel->erase();
  product.getResult().replaceAllUsesWith(fused->getResult(0));
  product.erase();
}

void mlir::fsdp::joinOperandSums(Block &block) {
  const JoinableOps ops(block);
  for (nn::EinsumOp product : llvm::to_vector(block.getOps<nn::EinsumOp>())) {
    // A constant would be inside the kernel, not in memory.
    if (product.getLhs() == product.getRhs() ||
        llvm::any_of(product->getOperands(), [](Value operand) {
          return operand.getDefiningOp<arith::ConstantOp>() != nullptr;
        }))
      continue;
    for (bool ofRight : {true, false})
      if (RowSum sum = findRowSum(product, ofRight, ops); sum.kernel) {
        join(product, sum);
        break;
      }
  }
}
