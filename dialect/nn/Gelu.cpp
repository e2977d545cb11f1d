//===- Gelu.cpp -----------------------------------------------------------===//

#include "dialect/nn/Gelu.h"

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Polynomial.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace mlir::nn;

/// Constants of models are rounded to f32, and backward multiplies some of them.
static constexpr double kTolerance = 1e-6;

/// a and b.
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

bool mlir::nn::isGelu(Value value, Value x) {
  SmallVector<Value> variables;
  const Polynomial got = Polynomial::of(value, [&](Value each) { return each == x; }, variables);
  const std::optional<Polynomial> tanh = findTanh(variables, x);
  const Polynomial p = Polynomial::variable(x);
  return tanh && got.isNear((p + p * *tanh) * 0.5, kTolerance);
}

/// d GELU'(x) = d/2 (1 + t + x (1 - t^2) (a + 3 b x^2)), where t is the tanh.
bool mlir::nn::isGeluGradient(Value value, Value d, Value x) {
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

/// The values from which elementwise ops compute `value`, itself excluded, as far as they are of
/// interest: no form of GELU has more.
static SmallVector<Value> operandsOf(Value value) {
  constexpr size_t most = 64;
  llvm::SetVector<Value> values;
  values.insert(behindCasts(value));
  for (size_t next = 0; next < values.size() && values.size() < most; ++next)
    if (Operation *op = values[next].getDefiningOp(); op && isElementwise(op))
      for (Value operand : op->getOperands())
        values.insert(behindCasts(operand));
  return SmallVector<Value>(std::next(values.begin()), values.end());
}

std::optional<Gelu> mlir::nn::findGelu(Value value) {
  Operation *last = behindCasts(value).getDefiningOp();
  if (!last || !isa<arith::MulFOp, arith::AddFOp>(last))
    return std::nullopt;
  const SmallVector<Value> operands = operandsOf(value);
  for (Value each : operands) {
    auto tanh = each.getDefiningOp<math::TanhOp>();
    if (!tanh)
      continue;
    for (Value x : operandsOf(tanh)) {
      if (isa_and_nonnull<arith::ConstantOp>(x.getDefiningOp()))
        continue;
      if (isGelu(value, x))
        return Gelu{x, nullptr};
      SmallVector<Value> variables; // among them the cotangent
      Polynomial::of(value, [&](Value other) { return other == x; }, variables);
      for (Value cotangent : variables)
        if (cotangent != x && cotangent != each && isGeluGradient(value, cotangent, x))
          return Gelu{x, cotangent};
    }
  }
  return std::nullopt;
}
