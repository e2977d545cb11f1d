//===- LibraryEpilogue.cpp ------------------------------------------------===//

#include "dialect/nn/LibraryEpilogue.h"

#include "dialect/nn/Polynomial.h"
#include "dialect/nn/RowProduct.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mlir::nn;

/// Constants of models are rounded to f32, and backward multiplies some of them.
static constexpr double kTolerance = 1e-6;

/// The coefficients of GELU(x) = x/2 (1 + tanh(a x + b x^3)).
static const double kLinear = std::sqrt(2 / M_PI), kCubic = 0.044715 * kLinear;

/// The variable among `variables` that is tanh(a x + b x^3), as a polynomial; none if none is.
static std::optional<Polynomial> findTanh(ArrayRef<Value> variables, Value x) {
  const Polynomial p = Polynomial::variable(x), expected = p * kLinear + p * p * p * kCubic;
  auto isX = [&](Value value) { return value == x; };
  for (Value variable : variables)
    if (auto tanh = variable.getDefiningOp<math::TanhOp>()) {
      SmallVector<Value> inner;
      if (Polynomial::of(tanh.getOperand(), isX, inner).isNear(expected, kTolerance))
        return Polynomial::variable(variable);
    }
  return std::nullopt;
}

static bool isGelu(Value value, Value x) {
  SmallVector<Value> variables;
  const Polynomial got = Polynomial::of(value, [&](Value each) { return each == x; }, variables);
  const std::optional<Polynomial> tanh = findTanh(variables, x);
  const Polynomial p = Polynomial::variable(x);
  return tanh && got.isNear((p + p * *tanh) * 0.5, kTolerance);
}

/// d GELU'(x) = d/2 (1 + t + x (1 - t^2) (a + 3 b x^2)), where t is the tanh.
static bool isGeluGradient(Value value, Value d, Value x) {
  SmallVector<Value> variables;
  const Polynomial got =
      Polynomial::of(value, [&](Value each) { return each == d || each == x; }, variables);
  const std::optional<Polynomial> tanh = findTanh(variables, x);
  if (!tanh)
    return false;
  const Polynomial p = Polynomial::variable(x), t = *tanh, one(1);
  const Polynomial slope = Polynomial(kLinear) + p * p * (3 * kCubic);
  return got.isNear(Polynomial::variable(d) * (one + t + p * (one + t * t * -1) * slope) * 0.5,
                    kTolerance);
}

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
