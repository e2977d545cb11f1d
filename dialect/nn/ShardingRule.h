//===- ShardingRule.h - the iteration space of an op as factors -*- C++ -*-===//

#ifndef DIALECT_NN_SHARDINGRULE_H
#define DIALECT_NN_SHARDINGRULE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace mlir::nn {

/// How an op combines its instances along one factor.
enum class FactorKind {
  parallel,     ///< independent; appears in every result
  sumReduction, ///< summed away for the results that lack it: a split leaves partial sums there. A
                ///< term is 0 where one operand is: padding is masked in one (`annihilator`)
  maxReduction, ///< maximized away likewise: a split leaves partial maxima
  combined,     ///< read as a whole, but a split op combines the parts over ranks itself
                ///< (SplitOpInterface): the results that lack it are complete
  whole,        ///< the op needs all of it in one place
};

/// How an op acts on operands that are scaled or are sums. With `a`, `b` of the types of the
/// operands and a number c:
enum class Linearity {
  none,        ///< no known property
  additive,    ///< f(a + b) = f(a) + f(b), and no element of a is repeated: sums may be completed
               ///< after it
  rounding,    ///< the same up to rounding: casts between floats
  linearMap,   ///< f(a + b) = f(a) + f(b), elements of a may be repeated
  homogeneous, ///< f(c a) = c f(a)
  choice,      ///< f(s, a + b, c + d) = f(s, a, c) + f(s, b, d): the first operand chooses
  product,     ///< f(c a, b) = f(a, c b) = c f(a, b)
  quotient,    ///< f(c a, c b) = f(a, b), f(c a, b) = c f(a, b)
};

/// One dimension of the iteration space of an op. `name` is the notation's
/// (`b` in "bsd,df->bsf") or `dN` for ops without notation.
struct Factor {
  std::string name;
  int64_t size = 1;
  FactorKind kind = FactorKind::parallel;
  /// Integers in an operand are indices of its instances (rows of a table, classes), and the op has
  /// SplitOpInterface: on a part of the instances another op replaces it.
  bool indexed = false;
};

/// The factors one dimension of a tensor runs over, major to minor. Empty for a
/// broadcast dimension of size one.
using DimFactors = SmallVector<int64_t, 2>;
/// One entry per dimension of a tensor.
using TensorFactors = SmallVector<DimFactors, 4>;

/// True if a dimension of `tensor` runs over `factor`; if a tensor has one.
bool runsOver(const TensorFactors &tensor, int64_t factor);
bool anyRunsOver(ArrayRef<TensorFactors> tensors, int64_t factor);

/// How the dimensions of the operands and results of an op relate. Only ranked
/// tensor operands have entries with dimensions; others have an empty one.
struct ShardingRule {
  SmallVector<Factor, 6> factors;
  SmallVector<TensorFactors, 3> operands;
  SmallVector<TensorFactors, 1> results;
  /// The operand whose zeros make every term of its sums zero, if the other operands are finite; -1
  /// if any operand does (a product). Sums of other terms have no `sumReduction`.
  int64_t annihilator = -1;

  /// Appends a parallel factor for each dimension of `type`, d0, d1, ...; returns those of the
  /// dimensions.
  TensorFactors addDims(RankedTensorType type);

  /// The rule of an elementwise op: dimension i of every operand and result of
  /// the rank of the result is factor i; scalars (rank 0) carry none.
  static ShardingRule elementwise(Operation *op);

  /// The index of the factor called `name`, or -1.
  int64_t lookup(StringRef name) const;

  /// Calls `visit` with each operand and result of `op`, in order, and the factors of it.
  void forEachTensor(Operation *op,
                     llvm::function_ref<void(Value, const TensorFactors &)> visit) const;

  /// Fails, emitting on `op`, unless sizes multiply to the dimensions of every
  /// operand and result.
  LogicalResult verify(Operation *op) const;
};

} // namespace mlir::nn

#endif // DIALECT_NN_SHARDINGRULE_H
