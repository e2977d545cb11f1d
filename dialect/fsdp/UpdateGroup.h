//===- UpdateGroup.h - the updates of a launch ------------------*- C++ -*-===//

#ifndef DIALECT_FSDP_UPDATEGROUP_H
#define DIALECT_FSDP_UPDATEGROUP_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The updates of `launch`, of different storages: none, one, or those of a group.
SmallVector<OptimizerStepOp> getUpdates(LaunchOp launch);

/// True for updates of two storages that one launch may perform: by the same rule, with the same
/// rate, scale and condition, both in their own step or both deferred.
bool mayShareLaunch(OptimizerStepOp one, OptimizerStepOp other);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_UPDATEGROUP_H
