//===- ShardingEntries.h - how a model writes a sharding --------*- C++ -*-===//

#ifndef DSL_SHARDINGENTRIES_H
#define DSL_SHARDINGENTRIES_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace fsdp::dsl {

/// One entry of a sharding: `tensor+data?`.
struct ShardingEntry {
  llvm::SmallVector<mlir::StringAttr> axes;
  bool open = false;
};

/// The entries of `sharding` for a value of this rank; calls `fail`, which throws, with an error
/// message.
llvm::SmallVector<ShardingEntry>
parseShardingEntries(mlir::Builder &builder, const std::string &sharding, int64_t rank,
                     llvm::function_ref<void(const std::string &)> fail);

} // namespace fsdp::dsl

#endif // DSL_SHARDINGENTRIES_H
