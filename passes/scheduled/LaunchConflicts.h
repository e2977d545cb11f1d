//===- LaunchConflicts.h - launches whose order matters ---------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_LAUNCHCONFLICTS_H
#define PASSES_SCHEDULED_LAUNCHCONFLICTS_H

#include "passes/scheduled/SegmentPlan.h"

namespace mlir::fsdp {

/// True where one of the launches writes elements of a buffer that the other reads or writes. The
/// step state is not looked at.
bool haveConflict(const PlannedLaunch &a, const PlannedLaunch &b);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_LAUNCHCONFLICTS_H
