//===- UnitRuns.h - the units of a model in the order of forward -*- C++ -*-===//

#ifndef PASSES_GLOBAL_UNITRUNS_H
#define PASSES_GLOBAL_UNITRUNS_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// Consecutive ops of one unit in forward. A unit that is used in several places has several runs.
/// A read belongs to the op that uses it; a constraint, which computes nothing, to its operand:
/// that of a manual region is in front of it.
struct UnitRun {
  StringAttr unit;
  int64_t flops = 0;
  SmallVector<Operation *> ops = {};
};

/// The runs of a step before differentiation.
SmallVector<UnitRun> collectUnitRuns(StepOp step);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_UNITRUNS_H
