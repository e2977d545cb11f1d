//===- Decisions.h - the options that can be auto ---------------*- C++ -*-===//
// One row for each option whose value the cost model can choose. PlanChoice.h chooses them.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_DECISIONS_H
#define TOOLS_FSDPC_DECISIONS_H

#include "passes/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"

#include <variant>

namespace fsdpc {

struct OpenDecision;
struct PlanCosts;

/// The value of a field of PipelineOptions while its option is `auto`.
inline constexpr const char *kAutomaticWord = "auto";
inline constexpr int64_t kAutomaticCount = -1;
/// The most microbatches of a pipeline: all of a step are in the program, one after the other, so
/// that compilation takes time and memory in proportion.
inline constexpr int64_t kMaxPipelineMicrobatches = 1024;
/// The value of `--context-attention=auto` where a machine is named (Options::choosesAttention):
/// else the pass chooses by a rule.
inline constexpr const char *kFastestWord = "fastest";

struct Decision {
  using Pipeline = mlir::fsdp::PipelineOptions;

  const char *option; ///< without dashes: "remat"
  std::variant<std::string Pipeline::*, int64_t Pipeline::*> field;
  mlir::fsdp::Phase phase;         ///< the first phase whose IR depends on it
  std::vector<std::string> values; ///< the candidates, in the order of preference among equals
  /// The same for a configured model, where that matters.
  std::vector<std::string> (*findValues)(mlir::ModuleOp model, const Pipeline &pipeline) = nullptr;
  /// The reason for the value that `plan` has; null or empty if the others are slower.
  std::string (*explain)(const OpenDecision &choice, const PlanCosts &plan,
                         const Pipeline &pipeline) = nullptr;
  const char *openWord = kAutomaticWord; ///< the value while it is open
  bool leads = false;                    ///< ChoiceProblem::leading

  /// The value as on the command line.
  std::string get(const Pipeline &pipeline) const;
  void set(Pipeline &pipeline, const std::string &value) const;
  bool isOpen(const Pipeline &pipeline) const { return get(pipeline) == openWord; }
};

/// An open decision, and its candidates.
struct OpenDecision {
  const Decision *decision;
  std::vector<std::string> values;
};

/// Whether some parameters of `model` are gathered, so that --reshard-after-forward applies.
bool gathersParameters(mlir::ModuleOp model, const mlir::fsdp::PipelineOptions &pipeline);

/// All decisions, those of early phases first.
const std::vector<Decision> &getDecisions();
/// The decision of --`option`, which must have one.
const Decision &getDecision(llvm::StringRef option);

} // namespace fsdpc

#endif // TOOLS_FSDPC_DECISIONS_H
