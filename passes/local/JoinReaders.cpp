//===- JoinReaders.cpp ----------------------------------------------------===//

#include "passes/local/JoinReaders.h"

#include "dialect/fsdp/Carried.h"
#include "dialect/nn/LibraryEpilogue.h"
#include "passes/KernelJoiner.h"
#include "runtime/program/Limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

static Block &bodyOf(nn::FusedOp kernel) { return kernel.getBody().front(); }

/// True if all ops behind the first `skipped` compute elements of `shape` one by one.
static bool isElementwise(nn::FusedOp kernel, unsigned skipped, ArrayRef<int64_t> shape) {
  return llvm::all_of(
      llvm::drop_begin(bodyOf(kernel).without_terminator(), skipped), [&](Operation &op) {
        return isa<arith::ConstantOp>(op) ||
               (nn::isElementwise(&op) &&
                cast<RankedTensorType>(op.getResult(0).getType()).getShape() == shape);
      });
}

/// The number of the result of `kernel` that is the product with which it begins, and which has
/// other uses than the loops of the kernel; none for other kernels.
static std::optional<unsigned> productOf(nn::FusedOp kernel) {
  auto product = dyn_cast<nn::EinsumOp>(bodyOf(kernel).front());
  if (!product || !isElementwise(kernel, 1, product.getType().getShape()) ||
      nn::getLibraryEpilogue(kernel))
    return std::nullopt;
  auto yielded = bodyOf(kernel).getTerminator()->getOperands();
  const auto at = llvm::find(yielded, product.getResult());
  if (at == yielded.end() || yielded.size() == 1)
    return std::nullopt;
  return at - yielded.begin();
}

/// The kernel that may join `maker`; null if there is none.
static nn::FusedOp readerOf(nn::FusedOp maker, OpResult product, const JoinableOps &ops) {
  if (!product.hasOneUse())
    return {};
  auto reader = dyn_cast<nn::FusedOp>(*product.user_begin());
  if (!reader || !ops.mayJoin(maker, reader) ||
      !isElementwise(reader, 0, cast<RankedTensorType>(product.getType()).getShape()) ||
      !llvm::is_contained(reader->getResultTypes(), product.getType()))
    return {};
  // The product is computed in the buffer of a result before anything else is read, so no operand
  // may be a carried tensor, which a result replaces.
  if (llvm::any_of(maker->getOperands(), isCarried) ||
      llvm::any_of(reader->getOperands(), isCarried))
    return {};
  llvm::SmallSetVector<Value, 8> operands(maker->operand_begin(), maker->operand_end());
  for (Value operand : reader->getOperands()) {
    if (operand == product)
      continue;
    Operation *before = operand.getDefiningOp();
    if (before && !before->isBeforeInBlock(maker))
      return {};
    operands.insert(operand);
  }
  const size_t results = maker->getNumResults() - 1 + reader->getNumResults();
  return operands.size() + results > limits::kMaxKernelArguments ? nn::FusedOp() : reader;
}

static void join(nn::FusedOp maker, unsigned product, nn::FusedOp reader) {
  const OpResult between = maker->getResult(product);
  llvm::SmallSetVector<Value, 8> operands(maker->operand_begin(), maker->operand_end());
  for (Value operand : reader->getOperands())
    if (operand != between)
      operands.insert(operand);
  // The reader's results come first. The first of all takes the place of the product.
  SmallVector<Value> replaced(reader->result_begin(), reader->result_end());
  for (OpResult result : maker->getResults())
    if (result != between)
      replaced.push_back(result);
  const auto place =
      llvm::find_if(replaced, [&](Value result) { return result.getType() == between.getType(); });
  const auto first = place - replaced.begin();
  std::rotate(replaced.begin(), place, place + 1);
  KernelJoiner joiner(maker, maker, TypeRange(ValueRange(replaced)), operands.getArrayRef());
  SmallVector<Value> made = joiner.copyBody(maker);
  joiner.replace(between, made[product]);
  SmallVector<Value> yielded = joiner.copyBody(reader);
  made.erase(made.begin() + product);
  yielded.append(made);
  std::rotate(yielded.begin(), yielded.begin() + first, yielded.begin() + first + 1);
  Operation *joined = joiner.finish(yielded);
  for (auto [old, result] : llvm::zip_equal(replaced, joined->getResults()))
    old.replaceAllUsesWith(result);
  reader.erase();
  maker.erase();
}

void mlir::fsdp::joinReaders(Block &block) {
  const JoinableOps ops(block);
  SmallVector<nn::FusedOp> kernels;
  for (auto kernel : block.getOps<nn::FusedOp>())
    if (productOf(kernel))
      kernels.push_back(kernel);
  // A reader begins with no product, so it is no later element.
  for (nn::FusedOp kernel : kernels) {
    const unsigned product = *productOf(kernel);
    if (nn::FusedOp reader = readerOf(kernel, kernel->getResult(product), ops))
      join(kernel, product, reader);
  }
}
