//===- ScheduleFindings.h - what scheduling a module shows ------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_SCHEDULEFINDINGS_H
#define PASSES_SCHEDULED_SCHEDULEFINDINGS_H

#include "passes/scheduled/ScheduleProblem.h"

#include <optional>

namespace mlir::fsdp {

/// What `buildVerifiedPipeline` finds out.
struct ScheduleFindings {
  /// The translation of the module that was verified, without costs, if it has one role for each
  /// program.
  std::optional<ScheduleProblem> verified;
  /// Whether the schedule may be another one with a larger `prefetch`.
  bool isLimited = false;
};

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_SCHEDULEFINDINGS_H
