//===- JoinReaders.cpp ----------------------------------------------------===//

#include "passes/local/JoinReaders.h"

#include "dialect/fsdp/Prints.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/nn/LibraryEpilogue.h"
#include "runtime/program/Limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fsdp;

bool mlir::fsdp::isCarried(Value operand) {
  while (auto view = operand.getDefiningOp<ViewOp>())
    operand = view.getFlat();
  return operand.getDefiningOp<CarryLoadOp>() != nullptr;
}

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
  if (!product || kernel->hasAttr(kReportAttrName) ||
      !isElementwise(kernel, 1, product.getType().getShape()) || nn::getLibraryEpilogue(kernel))
    return std::nullopt;
  auto yielded = bodyOf(kernel).getTerminator()->getOperands();
  const auto at = llvm::find(yielded, product.getResult());
  if (at == yielded.end() || yielded.size() == 1)
    return std::nullopt;
  return at - yielded.begin();
}

/// The kernel that may join `maker`; null if there is none.
static nn::FusedOp readerOf(nn::FusedOp maker, OpResult product,
                            const DenseMap<Operation *, int> &collectives) {
  if (!product.hasOneUse())
    return {};
  auto reader = dyn_cast<nn::FusedOp>(*product.user_begin());
  if (!reader || reader->getBlock() != maker->getBlock() || reader->hasAttr(kReportAttrName) ||
      !(getStructure(reader) == getStructure(maker)) ||
      collectives.lookup(reader) != collectives.lookup(maker) ||
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

/// Clones the ops of `kernel` to the end of a body. The values that it yields there.
static SmallVector<Value> cloneBody(nn::FusedOp kernel, OpBuilder &builder, IRMapping &mapping) {
  for (auto [argument, operand] :
       llvm::zip_equal(bodyOf(kernel).getArguments(), kernel->getOperands()))
    mapping.map(argument, mapping.lookup(operand));
  for (Operation &op : bodyOf(kernel).without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(bodyOf(kernel).getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
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
  OpBuilder builder(maker);
  auto joined = nn::FusedOp::create(builder, maker.getLoc(), TypeRange(ValueRange(replaced)),
                                    operands.getArrayRef());
  setStructure(joined, getStructure(maker));
  Block *body = builder.createBlock(&joined.getBody());
  IRMapping mapping;
  for (Value operand : operands)
    mapping.map(operand, body->addArgument(operand.getType(), operand.getLoc()));
  SmallVector<Value> made = cloneBody(maker, builder, mapping);
  mapping.map(between, made[product]);
  SmallVector<Value> yielded = cloneBody(reader, builder, mapping);
  made.erase(made.begin() + product);
  yielded.append(made);
  std::rotate(yielded.begin(), yielded.begin() + first, yielded.begin() + first + 1);
  nn::YieldOp::create(builder, maker.getLoc(), yielded);
  for (auto [old, result] : llvm::zip_equal(replaced, joined->getResults()))
    old.replaceAllUsesWith(result);
  reader.erase();
  maker.erase();
}

void mlir::fsdp::joinReaders(Block &block) {
  DenseMap<Operation *, int> collectives; // before each op
  SmallVector<nn::FusedOp> kernels;
  int count = 0;
  for (Operation &op : block) {
    count += isa<CollectiveOpInterface>(op) && !op.hasAttr(kReportAttrName);
    collectives[&op] = count;
    if (auto kernel = dyn_cast<nn::FusedOp>(op); kernel && productOf(kernel))
      kernels.push_back(kernel);
  }
  // A reader begins with no product, so it is no later element.
  for (nn::FusedOp kernel : kernels) {
    const unsigned product = *productOf(kernel);
    if (nn::FusedOp reader = readerOf(kernel, kernel->getResult(product), collectives))
      join(kernel, product, reader);
  }
}
