//===- Program.cpp - straight-line code that one rank runs ----------------===//

#include "interpreter/Program.h"
#include "interpreter/Rounding.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

/// The numerics of the op `op` in the body of an nn.fused that is computed with `numerics`: 16-bit
/// floats are held in f32, except a product, which is rounded as if it were stored.
static Numerics numericsInside(Operation *op, Numerics numerics) {
  return numerics == Numerics::typed && !isa<nn::EinsumOp>(op) ? Numerics::kernel : numerics;
}

/// Rounds the results of an nn.fused that is computed with `numerics`, as they are stored.
static void roundStored(MutableArrayRef<Tensor> results, Numerics numerics) {
  for (Tensor &result : results) {
    Type type = result.getType().getElementType();
    if (numerics != Numerics::typed || !result.isFloat() || type.getIntOrFloatBitWidth() != 16)
      continue;
    Element *to = result.mutableData();
    for (int64_t i = 0; i < result.size(); ++i)
      to[i].f = roundTo(to[i].f, type, numerics);
  }
}

/// A fused kernel may mask padding, so its body depends on the rank.
static FailureOr<RankKernel> compileFused(nn::FusedOp op, Numerics numerics) {
  FailureOr<CompiledBlock> block = CompiledBlock::compile(
      op.getBody().front(), [=](Operation *inner) { return numericsInside(inner, numerics); });
  if (failed(block))
    return failure();
  auto shared = std::make_shared<CompiledBlock>(std::move(*block));
  return RankKernel([shared, numerics](RankContext &context, ArrayRef<Tensor> in,
                                       MutableArrayRef<Tensor> out) -> LogicalResult {
    std::vector<Tensor> values(shared->numValues);
    llvm::copy(in, values.begin());
    for (const Instruction &instruction : shared->instructions)
      if (failed(CompiledBlock::run(instruction, context, values)))
        return failure();
    for (auto [result, number] : llvm::zip_equal(out, shared->yielded))
      result = values[number];
    roundStored(out, numerics);
    return success();
  });
}

static FailureOr<RankKernel> compileKernel(Operation *op, Numerics numerics) {
  if (auto fused = dyn_cast<nn::FusedOp>(op))
    return compileFused(fused, numerics);
  if (RankKernel kernel = interpreter::detail::compileRankOp(op, numerics))
    return kernel;
  if (RankKernel kernel = interpreter::detail::compileGlobalOp(op, numerics))
    return kernel;
  FailureOr<Kernel> kernel = compile(op, numerics);
  if (failed(kernel))
    return failure();
  return infallible([kernel = *kernel](RankContext &, ArrayRef<Tensor> in,
                                       MutableArrayRef<Tensor> out) { kernel(in, out); });
}

/// Appends the ops of `block` to `result`, with each checkpoint replaced by its ops.
static LogicalResult append(Block &block, llvm::function_ref<Numerics(Operation *)> numericsOf,
                            CompiledBlock &result, DenseMap<Value, unsigned> &numbers) {
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>())
      break;
    if (auto checkpoint = dyn_cast<CheckpointOp>(op)) {
      Block &body = checkpoint.getBody().front();
      if (failed(append(body, numericsOf, result, numbers)))
        return failure();
      for (auto [value, yielded] :
           llvm::zip_equal(op.getResults(), body.getTerminator()->getOperands()))
        numbers[value] = numbers.lookup(yielded);
      continue;
    }
    Instruction instruction{&op, nullptr, {}, result.numValues, op.getNumResults(), {}};
    if (!involvesPeers(&op) && !isInLocalTerms(&op)) {
      FailureOr<RankKernel> kernel = compileKernel(&op, numericsOf(&op));
      if (failed(kernel))
        return failure();
      instruction.kernel = std::move(*kernel);
    }
    for (Value operand : op.getOperands()) {
      auto number = numbers.find(operand);
      if (number == numbers.end())
        return op.emitError("cannot be interpreted: an operand is defined outside of its block");
      instruction.operands.push_back(number->second);
    }
    for (Value value : op.getResults())
      numbers[value] = result.numValues++;
    result.instructions.push_back(std::move(instruction));
  }
  return success();
}

FailureOr<CompiledBlock>
CompiledBlock::compile(Block &block, llvm::function_ref<Numerics(Operation *)> numericsOf) {
  CompiledBlock result;
  DenseMap<Value, unsigned> numbers;
  for (Value argument : block.getArguments())
    numbers[argument] = result.numValues++;
  if (failed(append(block, numericsOf, result, numbers)))
    return failure();
  if (!block.empty() && block.back().hasTrait<OpTrait::IsTerminator>())
    for (Value operand : block.back().getOperands())
      result.yielded.push_back(numbers.lookup(operand));
  // Values are dropped after their last use, so that whole models fit into memory.
  std::vector<bool> used(result.numValues, false);
  for (unsigned value : result.yielded)
    used[value] = true;
  for (Instruction &instruction : llvm::reverse(result.instructions)) {
    for (unsigned i = 0; i < instruction.numResults; ++i)
      if (!used[instruction.firstResult + i])
        instruction.dead.push_back(instruction.firstResult + i);
    for (unsigned operand : instruction.operands)
      if (!used[operand]) {
        used[operand] = true;
        instruction.dead.push_back(operand);
      }
  }
  return result;
}

void CompiledBlock::observe(const Instruction &instruction, const RankContext &context,
                            ArrayRef<Tensor> values) {
  for (unsigned i = 0; context.isObserved && i < instruction.numResults; ++i)
    context.options->observe(context.rank, instruction.op, i, values[instruction.firstResult + i]);
}

LogicalResult CompiledBlock::run(const Instruction &instruction, RankContext &context,
                                 MutableArrayRef<Tensor> values) {
  SmallVector<Tensor, 4> operands;
  for (unsigned operand : instruction.operands)
    operands.push_back(values[operand]);
  if (failed(instruction.kernel(context, operands,
                                values.slice(instruction.firstResult, instruction.numResults))))
    return failure();
  observe(instruction, context, values);
  for (unsigned dead : instruction.dead)
    values[dead] = Tensor();
  return success();
}
