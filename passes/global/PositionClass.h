//===- PositionClass.h - the positions of a model's values ------*- C++ -*-===//

#ifndef PASSES_GLOBAL_POSITIONCLASS_H
#define PASSES_GLOBAL_POSITIONCLASS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntEqClasses.h"

namespace mlir::fsdp {

/// Which dimensions of the values of a step before differentiation, those inside `fsdp.checkpoint`
/// included, are the positions of a sequence: dimension 1 of inputs that are rows of tokens, the
/// one that `sequence_parallel` of a constraint marks, and all that ops run over with one factor
/// together with these.
class PositionClass {
public:
  explicit PositionClass(StepOp step);

  bool isEmpty() const { return positions.empty(); }
  bool contains(Value value, int64_t dim) const {
    auto number = numbers.find(value);
    return number != numbers.end() && positions.contains(classes[number->second + dim]);
  }
  /// The dimension of `value` that runs over positions, the first of several; -1 if there is none.
  int64_t find(Value value) const;

private:
  void addValues(Operation *op);
  void join(Operation *op);

  DenseMap<Value, unsigned> numbers; ///< of dimension 0; the others follow
  unsigned size = 0;                 ///< dimensions of all values
  llvm::IntEqClasses classes;
  llvm::DenseSet<unsigned> positions;
};

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_POSITIONCLASS_H
