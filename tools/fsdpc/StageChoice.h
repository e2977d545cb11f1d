//===- StageChoice.h - stages of a pipeline by the cost model ---*- C++ -*-===//
// `--stages=auto` on a machine: the plan with stages of about equal flops is compiled, the time of
// each unit is read off it (passes/prediction/StageCosts.h), and the units are cut again.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_STAGECHOICE_H
#define TOOLS_FSDPC_STAGECHOICE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tools/fsdpc/Options.h"

namespace fsdpc {

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
