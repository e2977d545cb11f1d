//===- PhaseCheck.h - whether every op belongs to the phase -----*- C++ -*-===//

#ifndef PASSES_PHASECHECK_H
#define PASSES_PHASECHECK_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The result of verifyPhase, an analysis: passes that move no ops preserve it for the next one,
/// as a walk over a large program takes long.
struct PhaseCheck {
  explicit PhaseCheck(ModuleOp module) : result(verifyPhase(module, getPhase(module))) {}

  LogicalResult result;
};

/// Fails, emitting on `module`, unless it is in `phase`, local or scheduled. `work`: the caller's,
/// with the phase, as in "schedules the local phase".
LogicalResult requirePhase(ModuleOp module, Phase phase, StringRef work);

} // namespace mlir::fsdp

#endif // PASSES_PHASECHECK_H
