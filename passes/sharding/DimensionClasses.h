//===- DimensionClasses.h - dimensions of equal size ------------*- C++ -*-===//

#ifndef PASSES_SHARDING_DIMENSIONCLASSES_H
#define PASSES_SHARDING_DIMENSIONCLASSES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "passes/sharding/ShardingRules.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"
#include <string>

namespace mlir::fsdp {

/// The dimensions of the parameters of a module and of the values of its steps, in classes: an op
/// that runs over dimensions of several tensors with one factor puts these into one class, all
/// reads and gradients of a parameter are one tensor. So if one dimension is padded, exactly those
/// of its class are.
class DimensionClasses {
public:
  /// One class. It may be padded unless there is an obstacle.
  struct Class {
    int64_t size = 0;
    /// Integers number its elements: rows of a table, classes of a loss.
    bool indexed = false;
    /// The most ranks that have parts of one value along it (shardings are read where the steps
    /// have them), with the ranks that store a parameter along it.
    int64_t parts = 1;
    /// An op that cannot take padding along it, and its requirement: "needs all of it"; null if
    /// there is none.
    Operation *obstacle = nullptr;
    std::string need;
    /// The parameters that have it, and the dimension.
    SmallVector<std::pair<ParamOp, int64_t>, 2> params;
  };

  explicit DimensionClasses(ModuleOp module);

  ArrayRef<Class> getClasses() const { return classes; }
  /// The class of dimension `dim` of `value`, a value of a step.
  const Class &lookup(Value value, int64_t dim) const {
    return classes[equal[values.lookup(value) + dim]];
  }

private:
  /// The dimensions of a tensor have consecutive numbers.
  unsigned addTensor(RankedTensorType type);
  void joinTensors(Value value, StringAttr param);
  void add(Operation *op);
  void addRule(Operation *op);
  void addUse(Operation *op, const nn::ShardingRule &rule, Value value,
              const nn::TensorFactors &tensor, SmallVectorImpl<int64_t> &dimOfFactor);
  void refuse(unsigned dim, Operation *op, StringRef need);

  ShardingRules rules;
  DenseMap<Value, unsigned> values;
  DenseMap<StringAttr, unsigned> params;
  std::vector<Class> dims; ///< the facts about each dimension alone
  llvm::IntEqClasses equal;
  std::vector<Class> classes;
};

/// The shapes that ranks compute with if these differ from the types: values of steps of which
/// `padded` of a parameter pads a dimension.
class PaddedShapes {
public:
  /// Emits an error and fails where two parameters pad one class to different sizes, or an op
  /// cannot take the padding.
  static FailureOr<PaddedShapes> read(ModuleOp module);

  /// The shape of `global`, padded.
  ArrayRef<int64_t> lookup(Value global) const {
    auto found = shapes.find(global);
    return found == shapes.end() ? cast<RankedTensorType>(global.getType()).getShape()
                                 : ArrayRef(found->second);
  }
  bool isPadded(Value global, int64_t dim) const {
    return lookup(global)[dim] != cast<RankedTensorType>(global.getType()).getDimSize(dim);
  }
  /// The size of factor `factor` of `op`, which has `rule`, padded.
  int64_t lookup(Operation *op, const nn::ShardingRule &rule, int64_t factor) const;
  /// True where a factor of `op` is padded.
  bool pads(Operation *op, const nn::ShardingRule &rule) const {
    return llvm::any_of(llvm::seq<int64_t>(0, rule.factors.size()), [&](int64_t factor) {
      return lookup(op, rule, factor) != rule.factors[factor].size;
    });
  }

private:
  DenseMap<Value, SmallVector<int64_t>> shapes;
};

} // namespace mlir::fsdp

#endif // PASSES_SHARDING_DIMENSIONCLASSES_H
