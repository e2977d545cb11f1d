//===- LibraryEpilogue.cpp ------------------------------------------------===//

#include "dialect/nn/LibraryEpilogue.h"

#include "dialect/nn/Gelu.h"
#include "dialect/nn/Polynomial.h"
#include "dialect/nn/RowProduct.h"

using namespace mlir;
using namespace mlir::nn;

/// True if `repeat` has one element for each column of a product with `rows` dimensions of rows.
static bool isOfColumns(RepeatOp repeat, unsigned rows) {
  Notation pattern = repeat.getPattern();
  return ArrayRef<NotationDim>(pattern.operands.front()) ==
             ArrayRef<NotationDim>(pattern.result).drop_front(rows) &&
         isa<BlockArgument>(repeat.getInput());
}

namespace {

/// The terms of a sum, of which each kind may be there once.
struct Sum {
  EinsumOp product;
  unsigned rows;
  Value bias = nullptr, residual = nullptr;
  bool hasProduct = false;

  bool add(Value value) {
    if (value == product.getResult())
      return !std::exchange(hasProduct, true);
    if (value.getType() != product.getType())
      return false;
    if (isa<BlockArgument>(value))
      return !std::exchange(residual, value);
    if (auto repeat = value.getDefiningOp<RepeatOp>())
      return isOfColumns(repeat, rows) && !std::exchange(bias, repeat.getInput());
    auto both = value.getDefiningOp<arith::AddFOp>();
    return both && add(both.getLhs()) && add(both.getRhs());
  }
};

} // namespace

/// The results that are not sums over rows of the first, which a kernel may compute from it.
static SmallVector<Value> resultsBeforeSums(FusedOp fused) {
  SmallVector<Value> results(fused.getBody().front().getTerminator()->getOperands());
  while (results.size() > 1) {
    auto reduce = results.back().getDefiningOp<ReduceOp>();
    if (!reduce || behindCasts(reduce.getInput()) != results.front())
      break;
    results.pop_back();
  }
  return results;
}

std::optional<LibraryEpilogue> mlir::nn::getLibraryEpilogue(Operation *op) {
  auto fused = dyn_cast<FusedOp>(op);
  if (!fused)
    return std::nullopt;
  Block &body = fused.getBody().front();
  auto products = llvm::to_vector(body.getOps<EinsumOp>());
  if (products.size() != 1)
    return std::nullopt;
  EinsumOp product = products.front();
  const std::optional<unsigned> rows = getRowDims(product);
  const SmallVector<Value> results = resultsBeforeSums(fused);
  if (!rows || results.empty() || results.size() > 2 ||
      !llvm::all_of(results, [&](Value result) { return result.getType() == product.getType(); }))
    return std::nullopt;

  LibraryEpilogue epilogue;
  epilogue.results = results.size();
  auto take = [&](Value value) {
    Sum sum{product, *rows};
    if (!sum.add(value) || !sum.hasProduct)
      return false;
    epilogue.bias = sum.bias, epilogue.residual = sum.residual;
    return true;
  };
  if (results.size() == 1 && take(results.front()))
    return epilogue.bias || epilogue.residual ? std::optional(epilogue) : std::nullopt;
  // GELU of one of the values; a residual before it is no combination that libraries are used for.
  for (Operation &inner : body)
    for (Value value : inner.getResults())
      if ((results.size() == 1 || value == results.front()) && value != results.back() &&
          isGelu(results.back(), value) && take(value) && !epilogue.residual) {
        epilogue.function = LibraryEpilogue::gelu;
        return epilogue;
      }
  if (results.size() == 1)
    for (BlockArgument argument : body.getArguments())
      if (argument.getType() == product.getType() &&
          isGeluGradient(results.front(), product.getResult(), argument)) {
        epilogue.function = LibraryEpilogue::geluGradient;
        epilogue.argument = argument;
        epilogue.bias = epilogue.residual = nullptr;
        return epilogue;
      }
  return std::nullopt;
}
