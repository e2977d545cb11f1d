//===- FusedProduct.cpp ---------------------------------------------------===//

#include "codegen/FusedProduct.h"

#include "codegen/ScheduledProgram.h"
#include "dialect/nn/OperandSum.h"
#include "dialect/nn/RowProduct.h"

using namespace mlir;
using namespace mlir::fsdp;

Value mlir::fsdp::resolveFused(Value value) {
  while (true) {
    if (auto fused = value.getDefiningOp<nn::FusedOp>()) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      value = fused.getBody().front().getTerminator()->getOperand(number);
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(value);
    auto fused =
        argument ? dyn_cast<nn::FusedOp>(argument.getOwner()->getParentOp()) : nn::FusedOp();
    if (!fused)
      return value;
    value = fused.getInputs()[argument.getArgNumber()];
  }
}

/// Sums of 16 bits are completed one by one, each over all rows.
static bool goesByRows(Value result) {
  auto reduce = result.getDefiningOp<nn::ReduceOp>();
  return !reduce || getElementTypeOrSelf(reduce.getType()).getIntOrFloatBitWidth() >= 32;
}

std::optional<ProductWithSum> ProductWithSum::of(LaunchOp launch) {
  std::optional<nn::OperandSum> both = nn::getOperandSum(onlyOp(launch));
  if (!both || launch.getOuts().size() != 2 ||
      !llvm::equal(launch.getBody().front().getTerminator()->getOperands(),
                   onlyOp(launch)->getResults()))
    return std::nullopt;
  auto buffer = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(resolveFused(value));
    return argument ? launch.getIns()[argument.getArgNumber()] : Value();
  };
  Value lhs = buffer(both->product.getLhs()), rhs = buffer(both->product.getRhs());
  if (!lhs || !rhs)
    return std::nullopt;
  return ProductWithSum{both->product, lhs, rhs, both->ofRight};
}

std::optional<FusedProduct> FusedProduct::of(LaunchOp launch) {
  auto fused = dyn_cast_or_null<nn::FusedOp>(onlyOp(launch));
  Operation *yield = launch.getBody().front().getTerminator();
  if (!fused || fused->getNumResults() == 0 || nn::getOperandSum(fused) ||
      !llvm::equal(yield->getOperands(), fused.getResults()))
    return std::nullopt;
  Block &body = fused.getBody().front();
  auto products = llvm::to_vector(body.getOps<nn::EinsumOp>());
  Operation::operand_range results = body.getTerminator()->getOperands();
  if (products.size() != 1 || !llvm::all_of(results, goesByRows) ||
      results.front().getType() != products.front().getType())
    return std::nullopt;
  FusedProduct found;
  found.product = products.front();
  found.addsUpRows =
      llvm::any_of(results, [](Value result) { return result.getDefiningOp<nn::ReduceOp>(); });
  std::optional<unsigned> rowDims = nn::getRowDims(found.product);
  if (!rowDims)
    return std::nullopt;
  found.rowDims = *rowDims;
  auto buffer = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(resolveFused(value));
    return argument ? launch.getIns()[argument.getArgNumber()] : Value();
  };
  found.lhs = buffer(found.product.getLhs());
  found.rhs = buffer(found.product.getRhs());
  if (!found.lhs || !found.rhs)
    return std::nullopt;
  for (auto [argument, input] : llvm::zip_equal(body.getArguments(), fused.getInputs()))
    if (llvm::any_of(argument.getUsers(), [&](Operation *user) { return user != found.product; }))
      if (Value from = buffer(argument))
        if (!llvm::is_contained(found.ins, from))
          found.ins.push_back(from);
  return found;
}
