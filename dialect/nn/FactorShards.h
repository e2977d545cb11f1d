//===- FactorShards.h - the ranks that share a factor -----------*- C++ -*-===//

#ifndef DIALECT_NN_FACTORSHARDS_H
#define DIALECT_NN_FACTORSHARDS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

namespace mlir::nn {

enum class Reduction : uint32_t;

/// The ranks that share a factor, for an op that is split along it (SplitOpInterface) and is
/// independent of meshes. Every rank has the same number of consecutive instances of the factor;
/// those after the last are padding.
class FactorShards {
public:
  virtual ~FactorShards() = default;

  /// `indices` into the whole factor, converted to indices into this rank's part: -1 for instances
  /// of other ranks.
  virtual Value renumber(Value indices) = 0;
  /// The number of instances of this rank without padding: a tensor<i64>.
  virtual Value count() = 0;
  /// The number in the whole factor of this rank's first instance: a tensor<i64>.
  virtual Value offset() = 0;
  /// The number of instances of the whole factor.
  virtual int64_t getSize() const = 0;
  /// `value`, of which dimension `dim` is the factor, with `fill` in the padding along it, if there
  /// is any.
  virtual Value masked(Value value, int64_t dim, double fill) = 0;
  /// False if one rank has all instances, followed by padding.
  virtual bool isShared() const = 0;
  /// The number of ranks that share the factor, and the names of the axes that number them.
  virtual int64_t getRanks() const = 0;
  virtual ArrayAttr getAxes() const = 0;
  /// The parts of all ranks, of which dimension `dim` is the factor, one behind the other.
  virtual Value gather(Value part, int64_t dim) = 0;
  /// This rank's part, along `dim`, of the elementwise sum of `value` over the ranks.
  virtual Value scatterSum(Value value, int64_t dim) = 0;
  /// The `value` of the rank that is `distance` before this one; of the last ranks before the
  /// first.
  virtual Value ofRankBefore(Value value, int64_t distance) = 0;
  /// The elementwise sum or maximum of `value` over the ranks.
  virtual Value allReduce(Value value, Reduction kind) = 0;
  /// The elementwise sum of `value` over the ranks that have instances before those of this one, or
  /// after them; 0 if there is no such rank.
  virtual Value sumOfOthers(Value value, bool behind) = 0;
};

} // namespace mlir::nn

#endif // DIALECT_NN_FACTORSHARDS_H
