//===- CollectiveGroup.h - the collectives of a launch ----------*- C++ -*-===//

#ifndef DIALECT_FSDP_COLLECTIVEGROUP_H
#define DIALECT_FSDP_COLLECTIVEGROUP_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The collectives of `launch` that ranks meet in: none, one, or those of a group.
SmallVector<CollectiveOpInterface> getCollectives(LaunchOp launch);

/// True for ops of which a launch may hold several. Every transport performs a group of them in one
/// call.
bool mayBeGrouped(Operation *op);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_COLLECTIVEGROUP_H
