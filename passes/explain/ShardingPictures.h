//===- ShardingPictures.h - the shardings of a step as pictures -*- C++ -*-===//

#ifndef PASSES_EXPLAIN_SHARDINGPICTURES_H
#define PASSES_EXPLAIN_SHARDINGPICTURES_H

#include "dialect/fsdp/FSDPDialect.h"

#include <string>
#include <vector>

namespace mlir::fsdp {

/// Values of a step that have one type and one sharding.
struct ShardingPicture {
  std::string svg; ///< for a page of HTML, of bounded size whatever the mesh
  std::vector<std::string> names;
  bool ofParameters = false; ///< that the step reads
  int64_t bytes = 0;         ///< of one of them, on one rank
};

/// The pictures for the training step of `module`, which is in the global phase with shardings; the
/// largest first. Emits an error and fails if a value has no sharding.
FailureOr<std::vector<ShardingPicture>> drawShardings(ModuleOp module);

} // namespace mlir::fsdp

#endif // PASSES_EXPLAIN_SHARDINGPICTURES_H
