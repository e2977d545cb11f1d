//===- ModelSizes.h - sizes of a model that depend on data ------*- C++ -*-===//

#ifndef PASSES_GLOBAL_MODELSIZES_H
#define PASSES_GLOBAL_MODELSIZES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/DenseMap.h"
#include <vector>

namespace mlir::fsdp {

/// The sizes that ops run over, each a size of the model or one of the data: how many samples a
/// batch has, how long a sequence is. A size of the data comes from a dimension of an input, and no
/// parameter has it. The sharding rules give the origin: a factor is one size in each of its
/// operands and results, and a dimension of several factors is their
/// product. Where an op splits a size of the data that was not merged before, the most major part
/// is the data's and the others are the model's: windows of a sequence.
class ModelSizes {
public:
  /// The sizes of `ops`, each of which follows the ops whose results it uses.
  explicit ModelSizes(ArrayRef<Operation *> ops);

  /// The sizes that dimension `dim` of `value` is the product of, major to minor.
  SmallVector<unsigned> ofDimension(Value value, int64_t dim) const {
    return expand(dims.lookup(value)[dim]);
  }
  /// The same for factor `factor` of `op`, which has a sharding rule.
  SmallVector<unsigned> ofFactor(Operation *op, int64_t factor) const {
    return expand({factors.lookup(op)[factor]});
  }
  int64_t getSize(unsigned size) const { return sizes[size].value; }
  bool isOfData(unsigned size) const { return sizes[size].fromInput && !sizes[size].fromParameter; }

private:
  using List = SmallVector<unsigned, 2>;
  struct Size {
    int64_t value = 1;
    mutable unsigned same;          ///< an equal size, towards the representative; itself if none
    SmallVector<unsigned, 2> parts; ///< its factors, if known; only of a representative
    bool fromInput = false, fromParameter = false;
  };
  /// The op derives the sizes on the right from those on the left.
  struct Dependence {
    SmallVector<unsigned> from, to;
  };

  unsigned add(int64_t value);
  unsigned find(unsigned size) const;
  SmallVector<unsigned> expand(ArrayRef<unsigned> list) const;
  void join(unsigned a, unsigned b);
  void match(ArrayRef<unsigned> left, ArrayRef<unsigned> right);
  void addResults(Operation *op);
  void addRule(Operation *op);
  void inherit();

  std::vector<Size> sizes;
  std::vector<Dependence> dependences;
  std::vector<unsigned>
      minorParts; ///< of sizes that an op splits: all but the most major one of each
  DenseMap<Value, SmallVector<List, 4>> dims;
  DenseMap<Operation *, SmallVector<unsigned, 6>> factors;
  DenseMap<StringAttr, SmallVector<List, 4>> params;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_MODELSIZES_H
