//===- ShardingRules.h - the rules of the ops of a program ------*- C++ -*-===//

#ifndef PASSES_SHARDING_SHARDINGRULES_H
#define PASSES_SHARDING_SHARDINGRULES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace mlir::fsdp {

/// The sharding rules of ops. A rule follows from the name, the properties and the types of its op,
/// so the equal ops of the layers of a model share one. All ops that were looked up must exist
/// until the last lookup.
class ShardingRules {
public:
  /// The rule of `op`, at one address for all ops of equal name, properties and types; null for an
  /// op without one.
  const nn::ShardingRule *get(Operation *op);

private:
  /// Compares ops by the name, types and properties from which their rules follow.
  struct Kind : DenseMapInfo<Operation *> {
    static unsigned getHashValue(Operation *op);
    static bool isEqual(Operation *one, Operation *other);
  };

  DenseMap<Operation *, std::unique_ptr<nn::ShardingRule>, Kind> ofKind;
  DenseMap<Operation *, const nn::ShardingRule *> ofOp;
};

} // namespace mlir::fsdp

#endif // PASSES_SHARDING_SHARDINGRULES_H
