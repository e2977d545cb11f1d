//===- Polynomial.cpp -----------------------------------------------------===//

#include "dialect/nn/Polynomial.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::nn;

Polynomial::Polynomial(double constant) {
  if (constant != 0)
    coefficients[{}] = constant;
}

Polynomial Polynomial::variable(Value value) {
  Polynomial result;
  result.coefficients[{value.getAsOpaquePointer()}] = 1;
  return result;
}

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial sum = *this;
  for (const auto &[product, coefficient] : other.coefficients)
    sum.coefficients[product] += coefficient;
  return sum;
}

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  for (const auto &[left, a] : coefficients)
    for (const auto &[right, b] : other.coefficients) {
      Product product = left;
      product.insert(product.end(), right.begin(), right.end());
      llvm::sort(product);
      result.coefficients[product] += a * b;
    }
  return result;
}

bool Polynomial::isNear(const Polynomial &other, double tolerance) const {
  auto isIn = [&](const Polynomial &from, const Polynomial &to) {
    return llvm::all_of(from.coefficients, [&](const auto &entry) {
      auto found = to.coefficients.find(entry.first);
      const double there = found == to.coefficients.end() ? 0 : found->second;
      return std::abs(entry.second - there) <= tolerance * std::abs(entry.second);
    });
  };
  return isIn(*this, other) && isIn(other, *this);
}

Value mlir::nn::behindCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Of chains that get longer the rest is a variable: no function of interest is as long.
static constexpr size_t kMaxTerms = 64;

Polynomial Polynomial::of(Value value, llvm::function_ref<bool(Value)> isVariable,
                          SmallVectorImpl<Value> &variables) {
  value = behindCasts(value);
  auto operand = [&](Operation *op, unsigned number) {
    return of(op->getOperand(number), isVariable, variables);
  };
  if (Operation *op = isVariable(value) ? nullptr : value.getDefiningOp()) {
    SplatElementsAttr splat;
    if (matchPattern(value, m_Constant(&splat)))
      if (auto number = dyn_cast<FloatAttr>(splat.getSplatValue<Attribute>()))
        return Polynomial(number.getValueAsDouble());
    if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op)) {
      const Polynomial left = operand(op, 0), right = operand(op, 1);
      if (left.coefficients.size() * right.coefficients.size() <= kMaxTerms)
        return isa<arith::AddFOp>(op)   ? left + right
               : isa<arith::SubFOp>(op) ? left + right * -1
                                        : left * right;
    }
    if (isa<arith::NegFOp>(op))
      return operand(op, 0) * -1;
  }
  if (!llvm::is_contained(variables, value))
    variables.push_back(value);
  return variable(value);
}
