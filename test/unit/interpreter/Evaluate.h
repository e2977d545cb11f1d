//===- Evaluate.h - values of pure ops for tests ----------------*- C++ -*-===//

#ifndef TEST_UNIT_INTERPRETER_EVALUATE_H
#define TEST_UNIT_INTERPRETER_EVALUATE_H

#include "interpreter/Program.h"

namespace mlir::fsdp::interpreter {

/// Runs the ops of `block` in order, without its terminator, on the one rank of a mesh
/// without axes in the first step with seed 0, and returns the values of `wanted`, which are
/// defined in the block or are arguments of it.
inline FailureOr<SmallVector<Tensor>> evaluate(Block &block, ArrayRef<Tensor> arguments,
                                               ArrayRef<Value> wanted,
                                               Numerics numerics = Numerics::exact) {
  FailureOr<CompiledBlock> compiled = CompiledBlock::compile(block, numerics);
  if (failed(compiled))
    return failure();
  const MachineOptions options;
  RankContext context;
  context.options = &options;
  MLIRContext *mlir = wanted.empty() ? nullptr : wanted.front().getContext();
  if (mlir && mlir->getLoadedDialect<FSDPDialect>())
    context.mesh = MeshAttr::get(mlir, {}, {}, {});
  DenseMap<Value, Tensor> values;
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[argument] = tensor;
  for (const Instruction &instruction : compiled->instructions) {
    SmallVector<Tensor> operands, results(instruction.numResults);
    for (Value operand : instruction.op->getOperands())
      operands.push_back(values.lookup(operand));
    if (failed(instruction.kernel(context, operands, results)))
      return failure();
    for (auto [value, tensor] : llvm::zip_equal(instruction.op->getResults(), results))
      values[value] = tensor;
  }
  return llvm::map_to_vector(wanted, [&](Value value) { return values.lookup(value); });
}

/// The results of `op` for `operands`, which have the types of its operands.
inline FailureOr<SmallVector<Tensor>> evaluate(Operation *op, ArrayRef<Tensor> operands,
                                               Numerics numerics = Numerics::exact) {
  Block block;
  for (Value operand : op->getOperands())
    block.addArgument(operand.getType(), operand.getLoc());
  Operation *copy = op->clone();
  block.push_back(copy);
  copy->setOperands(block.getArguments());
  return evaluate(block, operands, llvm::to_vector(ValueRange(copy->getResults())), numerics);
}

} // namespace mlir::fsdp::interpreter

#endif // TEST_UNIT_INTERPRETER_EVALUATE_H
