//===- PlanCompiler.h - memory and time of plans ----------------*- C++ -*-===//
// Compiles a model with one set of options after the other, and simulates each
// (passes/prediction). Common parts of plans are compiled once. Models whose number of blocks is an
// option can be estimated by models of few blocks.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANCOMPILER_H
#define TOOLS_FSDPC_PLANCOMPILER_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/prediction/Prediction.h"
#include "passes/scheduled/MemoryReport.h"
#include "passes/scheduled/ScheduleFindings.h"
#include "tools/fsdpc/Options.h"
#include "tools/fsdpc/PlanCosts.h"

#include <functional>

namespace fsdpc {

/// Operations, summed over the plans of a search, up to which every plan is compiled.
inline constexpr int64_t kExhaustiveWork = 20'000;

/// The work of compiling `module` for a plan.
int64_t countOperations(mlir::ModuleOp module);

/// A model whose plans are compiled.
struct PlanModel {
  PlanModel(mlir::ModuleOp module, std::string name) : module(module), name(std::move(name)) {}
  PlanModel(PlanModel &&) = default;

  mlir::ModuleOp module;
  std::string name;
  int64_t blocks = 0; ///< of the whole model; 0 if it cannot be described with fewer
  /// The same model with fewer blocks; null if that is not a valid model.
  std::function<mlir::OwningOpRef<mlir::ModuleOp>(int64_t blocks)> describe = nullptr;

  /// The model of `blocks`, described once.
  mlir::ModuleOp withBlocks(int64_t blocks);
  /// Whether plans of it can be estimated, and it has enough blocks that this saves work.
  bool isEstimable();

private:
  std::map<int64_t, mlir::OwningOpRef<mlir::ModuleOp>> smaller;
};

/// A model with sizes that are options of its program.
struct SizedModel {
  /// The value of --`option`; nothing if the model has no such option, as a model in a file.
  std::function<std::optional<int64_t>(llvm::StringRef option)> find;
  /// Calls `use` with the model of another value, or as it is where `option` is empty. Throws
  /// ModelError where the model refuses the value.
  std::function<void(llvm::StringRef option, int64_t value,
                     llvm::function_ref<void(PlanModel &)> use)>
      with;
};

/// The properties of a plan that do not depend on a machine.
struct PlanFacts {
  mlir::fsdp::MemoryReport memory;
  mlir::fsdp::ModelWork work;

  static PlanFacts of(mlir::ModuleOp scheduled);
  /// `schedule` is the translation of `scheduled` with costs.
  static PlanFacts of(mlir::ModuleOp scheduled, const mlir::fsdp::ScheduleProblem &schedule);
};

/// The costs of the plan `scheduled` with these facts.
PlanCosts costsOf(const PlanFacts &facts, const mlir::fsdp::Prediction &prediction);
PlanCosts costsOf(mlir::ModuleOp scheduled, const mlir::fsdp::cost::Machine &machine);

/// A scheduled module, null if the plan must be compiled again, and its properties.
struct CompiledPlan {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  PlanFacts facts = {};
};

/// The plans of a module on one mesh that differ in the options of Decisions.h only. The IR of the
/// last plan is kept for those that share its early phases.
class PlanCompiler {
public:
  PlanCompiler(mlir::ModuleOp module, std::string name, MeshAxes mesh, Options options);
  /// Throws as configure and lower do. Warnings are kept for takeScheduled.
  PlanCosts compile(const mlir::fsdp::PipelineOptions &pipeline);
  /// The plan if `pipeline` was compiled last, after emitting the diagnostics of its compilation;
  /// else one without a module.
  CompiledPlan takeScheduled(const mlir::fsdp::PipelineOptions &pipeline);

private:
  /// A module at the end of a phase, the options with which it was compiled, and its diagnostics.
  struct Lowered {
    mlir::OwningOpRef<mlir::ModuleOp> module;
    mlir::fsdp::PipelineOptions pipeline;
    std::vector<mlir::Diagnostic> diagnostics = {};
    void emit(); ///< the diagnostics
  };
  mlir::ModuleOp lowerTo(mlir::fsdp::Phase phase, const mlir::fsdp::PipelineOptions &pipeline);
  bool hasSchedule(const mlir::fsdp::PipelineOptions &pipeline) const;

  mlir::ModuleOp module;
  std::string name;
  MeshAxes mesh;
  Options options;
  std::optional<mlir::fsdp::cost::Machine> machine;
  std::map<mlir::fsdp::Phase, Lowered> lowered;
  // Of the scheduled module in `lowered`.
  mlir::fsdp::ScheduleFindings findings;
  PlanFacts facts;
  std::optional<PlanCosts> costs;
};

/// The plans of a model on one mesh, compiled or, on request, estimated. Refused plans have no
/// costs, and are refused silently.
class PlanEvaluator {
public:
  PlanEvaluator(PlanModel &model, const MeshAxes &mesh, const Options &options, bool estimates);
  std::optional<PlanCosts> evaluate(const mlir::fsdp::PipelineOptions &pipeline);
  /// Why the last refused plan is refused, without the advice to the user.
  const std::string &getRefusal() const { return refusal; }
  /// Without estimating.
  std::optional<PlanCosts> compile(const mlir::fsdp::PipelineOptions &pipeline);
  /// The same, but throws after printing the reason where the compiler refuses the plan.
  PlanCosts compileOrThrow(const mlir::fsdp::PipelineOptions &pipeline);
  /// Whether `estimate` of `pipeline` gives a third, larger model its arena to the byte. Its arena
  /// of the whole model is then taken to be exact.
  bool hasLinearArena(const mlir::fsdp::PipelineOptions &pipeline, const PlanCosts &estimate);
  /// Of the whole model.
  CompiledPlan takeScheduled(const mlir::fsdp::PipelineOptions &pipeline);

private:
  std::optional<PlanCosts> compileBlocks(int64_t blocks,
                                         const mlir::fsdp::PipelineOptions &pipeline);

  PlanModel &model;
  MeshAxes mesh;
  Options options;
  bool estimates;
  std::string refusal;
  std::map<int64_t, PlanCompiler> compilers; ///< by blocks; the whole model is 0
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANCOMPILER_H
