//===- FactorShards.h - the ranks that share a factor -----------*- C++ -*-===//

#ifndef DIALECT_NN_FACTORSHARDS_H
#define DIALECT_NN_FACTORSHARDS_H

#include "mlir/IR/Value.h"

namespace mlir::nn {

enum class Reduction : uint32_t;

/// What an op that is split along a factor (SplitOpInterface) can use of the ranks that share the factor, without knowing
/// meshes. Every rank has the same number of consecutive instances of the factor; those behind the last are padding.
class FactorShards {
public:
  virtual ~FactorShards() = default;

  /// `indices`, which number instances of the whole factor, as they number those of this rank: -1 for instances of
  /// other ranks.
  virtual Value renumber(Value indices) = 0;
  /// How many instances this rank has, padding not counted: a tensor<i64>.
  virtual Value count() = 0;
  /// The elementwise sum or maximum of `value` over the ranks.
  virtual Value allReduce(Value value, Reduction kind) = 0;
};

} // namespace mlir::nn

#endif // DIALECT_NN_FACTORSHARDS_H
