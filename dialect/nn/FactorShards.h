//===- FactorShards.h - the ranks that share a factor -----------*- C++ -*-===//

#ifndef DIALECT_NN_FACTORSHARDS_H
#define DIALECT_NN_FACTORSHARDS_H

#include "mlir/IR/Value.h"

namespace mlir::nn {

enum class Reduction : uint32_t;

/// What an op that is split along a factor (SplitOpInterface) can use of the ranks that share the
/// factor, without knowing meshes. Every rank has the same number of consecutive instances of the
/// factor; those behind the last are padding.
class FactorShards {
public:
  virtual ~FactorShards() = default;

  /// `indices`, which number instances of the whole factor, as they number those of this rank: -1
  /// for instances of other ranks.
  virtual Value renumber(Value indices) = 0;
  /// How many instances this rank has, padding not counted: a tensor<i64>.
  virtual Value count() = 0;
  /// The number in the whole factor of this rank's first instance: a tensor<i64>.
  virtual Value offset() = 0;
  /// How many instances the whole factor has.
  virtual int64_t getSize() const = 0;
  /// `value`, of which dimension `dim` is the factor, with `fill` in the padding along it, if there
  /// is any.
  virtual Value masked(Value value, int64_t dim, double fill) = 0;
  /// False where one rank has all instances, and padding behind them.
  virtual bool isShared() const = 0;
  /// The elementwise sum or maximum of `value` over the ranks.
  virtual Value allReduce(Value value, Reduction kind) = 0;
  /// The elementwise sum of `value` over the ranks that have instances before those of this one, or
  /// behind them; 0 where there is no such rank.
  virtual Value sumOfOthers(Value value, bool behind) = 0;
};

} // namespace mlir::nn

#endif // DIALECT_NN_FACTORSHARDS_H
