//===- Passes.h - the passes and the pipeline -------------------*- C++ -*-===//

#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Pass/Pass.h"
#include "passes/CountOption.h"

namespace mlir::fsdp {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// Registers every pass and the pipelines `fsdp-to-global`, `fsdp-to-local` and
/// `fsdp-to-scheduled` (Pipelines.cpp).
void registerPasses();

} // namespace mlir::fsdp

#endif // PASSES_PASSES_H
