//===- StageChoice.h - stages of a pipeline by the cost model ---*- C++ -*-===//
// `--stages=auto` on a machine: the plan with stages of about equal flops is compiled, the time of
// each unit is read off it (passes/prediction/StageCosts.h), and the units are cut again.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_STAGECHOICE_H
#define TOOLS_FSDPC_STAGECHOICE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/fsdpc/Options.h"

#include <optional>
#include <string>
#include <vector>

namespace fsdpc {

/// The work that a pipeline divides into stages: a run of a unit in the order of forward
/// (passes/global/UnitRuns.h).
struct UnitWork {
  std::string unit;
  double flops = 0;    ///< of forward
  double elements = 0; ///< of the parameters of the unit, its share by flops
  /// Bytes that later units take from this one and those before, of all samples of a step.
  double passedOn = 0;
};

/// The runs of the units of `model`, which is not configured; none where it has no stages: it is
/// refused, or has manual regions.
std::vector<UnitWork> findUnitWork(mlir::ModuleOp model, const std::string &name,
                                   const Options &options);

/// The stages of a plan by the times of its units in the plan with stages of about equal flops.
struct TimedStages {
  std::vector<int64_t> sizes, equal;         ///< units of each stage: by time, by flops
  std::string reason;                        ///< "stages 5,3: the dearest takes 4.1 ms ..."
  mlir::OwningOpRef<mlir::ModuleOp> plan;    ///< with stages of equal flops, scheduled
  std::vector<mlir::Diagnostic> diagnostics; ///< of its compilation
};
/// Nothing where `model` has a pipeline by hand. Throws as configure and lower do.
std::optional<TimedStages> timeStages(mlir::ModuleOp model, const std::string &name,
                                      const MeshAxes &mesh, const Options &options);
/// "5,3"
std::string listStages(llvm::ArrayRef<int64_t> sizes);

/// Replaces `--stages=auto` of `options`, those of a plan for `mesh`, by the choice for `model`,
/// which is not configured, and prints a remark on standard error as `tool`. Returns the choice
/// with its reason: "stages 5,3: the dearest takes 4.1 ms of a microbatch on h100x8, ..."; empty
/// where the cost model chooses nothing. Where the plan was compiled for that, and no more is
/// needed of it, it becomes `scheduled`. Throws as configure and lower do.
std::string cutStages(mlir::ModuleOp model, const std::string &name, const MeshAxes &mesh,
                      const std::string &tool, Options &options,
                      mlir::OwningOpRef<mlir::ModuleOp> &scheduled);

} // namespace fsdpc

#endif // TOOLS_FSDPC_STAGECHOICE_H
