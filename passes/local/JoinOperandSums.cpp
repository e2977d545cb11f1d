//===- JoinOperandSums.cpp ------------------------------------------------===//

#include "passes/local/JoinOperandSums.h"

#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/nn/OperandSum.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

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
static RowSum findRowSum(nn::EinsumOp product, bool ofRight,
                         const DenseMap<Operation *, int> &collectives) {
  for (Operation *user : product->getOperand(ofRight).getUsers()) {
    if (user->getBlock() != product->getBlock() || user->hasAttr(kReportAttrName) ||
        !(getStructure(user) == getStructure(product)) ||
        collectives.lookup(user) != collectives.lookup(product))
      continue;
    RowSum sum = rowSumOf(user);
    if (sum.reduce && nn::addsUpRows(sum.reduce, sum.operand, product, ofRight) &&
        llvm::all_of(sum.kernel->getUsers(),
                     [&](Operation *next) { return product->isBeforeInBlock(next); }))
      return sum;
  }
  return {};
}

static void join(nn::EinsumOp product, RowSum sum, bool ofRight) {
  OpBuilder builder(product);
  auto fused = nn::FusedOp::create(builder, product.getLoc(),
                                   TypeRange{product.getType(), sum.reduce.getType()},
                                   ValueRange(product->getOperands()));
  setStructure(fused, getStructure(product));
  Block *body = builder.createBlock(&fused.getBody());
  IRMapping mapping;
  for (Value operand : product->getOperands())
    mapping.map(operand, body->addArgument(operand.getType(), operand.getLoc()));
  Value of = mapping.lookup(product->getOperand(ofRight));
  SmallVector<Value> yielded{builder.clone(*product, mapping)->getResult(0)};
  mapping.map(sum.operand, of);
  if (auto kernel = dyn_cast<nn::FusedOp>(sum.kernel)) {
    for (Operation &op : kernel.getBody().front().without_terminator())
      builder.clone(op, mapping);
    yielded.push_back(mapping.lookup(sum.reduce.getResult()));
  } else {
    yielded.push_back(builder.clone(*sum.kernel, mapping)->getResult(0));
  }
  nn::YieldOp::create(builder, product.getLoc(), yielded);
  for (Operation &op : *body) {
    op.removeDiscardableAttr(FSDPDialect::shardingsAttrName);
    removeStructure(&op);
  }
  sum.kernel->getResult(0).replaceAllUsesWith(fused.getResult(1));
  sum.kernel->erase();
  product.getResult().replaceAllUsesWith(fused.getResult(0));
  product.erase();
}

void mlir::fsdp::joinOperandSums(Block &block) {
  DenseMap<Operation *, int> collectives; // before each op
  SmallVector<nn::EinsumOp> products;
  int count = 0;
  for (Operation &op : block) {
    count += isa<CollectiveOpInterface>(op) && !op.hasAttr(kReportAttrName);
    collectives[&op] = count;
    if (auto product = dyn_cast<nn::EinsumOp>(op))
      products.push_back(product);
  }
  for (nn::EinsumOp product : products) {
    // A constant would be inside the kernel, not in memory.
    if (product.getLhs() == product.getRhs() || product->hasAttr(kReportAttrName) ||
        llvm::any_of(product->getOperands(), [](Value operand) {
          return operand.getDefiningOp<arith::ConstantOp>() != nullptr;
        }))
      continue;
    for (bool ofRight : {true, false})
      if (RowSum sum = findRowSum(product, ofRight, collectives); sum.kernel) {
        join(product, sum, ofRight);
        break;
      }
  }
}
