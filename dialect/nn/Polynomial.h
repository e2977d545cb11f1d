//===- Polynomial.h - elementwise arithmetic in one form --------*- C++ -*-===//

#ifndef DIALECT_NN_POLYNOMIAL_H
#define DIALECT_NN_POLYNOMIAL_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>
#include <vector>

namespace mlir::nn {

/// A sum of products of values with constant coefficients: chains of additions, subtractions and
/// multiplications that compute the same value have the same one, in any order. Casts between
/// floats are ignored, as kernels do not round intermediate values.
class Polynomial {
public:
  /// Values, with repetition, in one order; none for a constant.
  using Product = std::vector<const void *>;

  Polynomial() = default;
  explicit Polynomial(double constant);
  /// That of a chain of arithmetic, which ends at `isVariable` values, at arguments of blocks and
  /// at all other ops. `variables` gets the values where it ends.
  static Polynomial of(Value value, llvm::function_ref<bool(Value)> isVariable,
                       llvm::SmallVectorImpl<Value> &variables);
  static Polynomial variable(Value value);

  /// The coefficients are the same to a relative `tolerance`.
  bool isNear(const Polynomial &other, double tolerance) const;

  Polynomial operator+(const Polynomial &other) const;
  Polynomial operator*(const Polynomial &other) const;
  Polynomial operator*(double factor) const { return *this * Polynomial(factor); }

private:
  std::map<Product, double> coefficients;
};

/// `value` behind casts between floats.
Value behindCasts(Value value);

} // namespace mlir::nn

#endif // DIALECT_NN_POLYNOMIAL_H
