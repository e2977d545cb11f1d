//===- Passes.h - the passes and the pipeline -------------------*- C++ -*-===//

#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Pass/Pass.h"
#include "passes/CountOption.h"
#include <optional>

namespace mlir::fsdp {

struct ScheduleProblem;

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// As `createVerifySchedulePass()`; `verified` becomes the translation that was verified, if it has
/// one role for each program.
std::unique_ptr<Pass> createVerifySchedulePass(std::optional<ScheduleProblem> &verified);

/// As `createSchedulePass(options)`; sets `isLimited` if the order may be another one with a larger
/// `prefetch`.
std::unique_ptr<Pass> createSchedulePass(SchedulePassOptions options, bool &isLimited);

/// Registers every pass and the pipelines `fsdp-to-global`, `fsdp-to-local` and
/// `fsdp-to-scheduled` (Pipelines.cpp).
void registerPasses();

} // namespace mlir::fsdp

#endif // PASSES_PASSES_H
