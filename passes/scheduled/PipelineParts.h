//===- PipelineParts.h - the work of each rank of a pipeline ----*- C++ -*-===//
// Derived from a schedule, not from the options that it was compiled with.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULED_PIPELINEPARTS_H
#define PASSES_SCHEDULED_PIPELINEPARTS_H

#include "passes/schedule/PipelineOrder.h"
#include "passes/scheduled/BufferKinds.h"

#include <optional>
#include <set>

namespace mlir::fsdp {

/// Forward or backward of a microbatch in a stage.
struct PipelinePart {
  bool backward = false;
  int64_t stage = 0, microbatch = 0;

  bool operator==(const PipelinePart &other) const {
    return backward == other.backward && stage == other.stage && microbatch == other.microbatch;
  }
};

/// The training step of a schedule whose programs are the ranks of a pipeline. Of any other
/// schedule, no launch is a part.
class PipelineParts {
public:
  explicit PipelineParts(const ScheduleProblem &schedule);

  /// The name of the axis; empty where the schedule is of no pipeline.
  StringRef getAxis() const { return axis; }
  int64_t getMicrobatches() const { return microbatches; }

  /// The part that a launch computes; none of communication, updates and evaluation.
  std::optional<PipelinePart> of(int role, int segment, int launch) const {
    return parts.empty() ? std::nullopt : parts[role][segment][launch];
  }

  /// The order of each rank. A backward that is divided is a backward, up to the first
  /// interruption, and a weight gradient; if some are divided, one that is not interrupted has its
  /// weight gradient directly behind it, unless its stage is frozen. Empty if the launches of
  /// another part interrupt a forward, or there is no pipeline.
  std::vector<schedule::RankOrder> readOrders() const;

  /// The stages whose backward computes cotangents for the stage before alone, and no gradient of a
  /// weight.
  std::set<int64_t> findFrozenStages() const;

  /// The units whose forward `role` computes, in that order; those of the module itself have none.
  std::vector<std::string> listUnits(int role) const;

  /// The most pairs of stage and microbatch whose activations `role` keeps for backward at once:
  /// from the first launch that computes one to the last that reads one, in issue order. A value
  /// that is received is no activation of the stage. `kinds` are those of the buffers of the role.
  int64_t countAlive(int role, ArrayRef<BufferKind> kinds) const;

private:
  bool addRole(size_t role, int64_t rank);
  std::vector<std::vector<bool>> findSent(size_t role) const;
  bool hasWeightGradientsLast(size_t role) const;
  /// Calls `visit` with each part in issue order, and its segment and launch.
  void visit(int role, llvm::function_ref<void(const PipelinePart &, int, int)> visit) const;

  const ScheduleProblem &schedule;
  StringRef axis;
  std::vector<std::vector<std::vector<std::optional<PipelinePart>>>>
      parts; ///< [role][segment][launch]
  int64_t microbatches = 0;
};

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_PIPELINEPARTS_H
