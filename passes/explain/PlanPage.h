//===- PlanPage.h - a plan as a page of HTML --------------------*- C++ -*-===//
// docs/explain.md. The page is one file that loads nothing: markup, style and script are the files
// page.html, style.css and script.js, and the data of the plan is embedded once, as JSON.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_EXPLAIN_PLANPAGE_H
#define PASSES_EXPLAIN_PLANPAGE_H

#include "passes/explain/ShardingPictures.h"
#include "passes/prediction/Prediction.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// The contents of a page besides the step.
struct PlanPage {
  std::string title;
  std::string command;      ///< that compiles the plan, quoted for a shell
  llvm::json::Value report; ///< as `--report` writes it
  std::vector<ShardingPicture> shardings;
};

/// The page of `module`, the verified scheduled module that `simulation` is of.
std::string writePage(const PlanPage &page, ModuleOp module, const StepSimulation &simulation);

} // namespace mlir::fsdp

#endif // PASSES_EXPLAIN_PLANPAGE_H
