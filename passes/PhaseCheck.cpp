#include "passes/PhaseCheck.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult mlir::fsdp::requirePhase(ModuleOp module, Phase phase, StringRef work) {
  const Phase got = getPhase(module);
  if (got == phase)
    return success();
  InFlightDiagnostic error = module.emitError()
                             << work << ", got the " << stringifyPhase(got) << " phase; ";
  if (got > phase)
    return error << "give it the IR of '--emit=" << stringifyPhase(phase) << "'";
  return error << "run '" << (phase == Phase::local ? "fsdp-partition" : "fsdp-schedule")
               << "' first";
}
