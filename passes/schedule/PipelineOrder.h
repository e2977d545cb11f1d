//===- PipelineOrder.h - the actions of each rank of a pipeline -*- C++ -*-===//
//
// A pipeline divides the model into stages, and the batch of a step into microbatches. This is the
// order in which each rank runs its parts of both, as plain data, with the time and the memory that
// follow from it.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULE_PIPELINEORDER_H
#define PASSES_SCHEDULE_PIPELINEORDER_H

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace mlir::fsdp::schedule {

/// One value of `--pipeline-schedule`.
struct PipelineSchedule {
  enum class Kind {
    gpipe,                 ///< all forwards, then all backwards
    oneForwardOneBackward, ///< `1f1b`
    interleaved,           ///< 1f1b over several chunks of the model on each rank
    zeroBubble             ///< `zb`: ZB-H1 of "Zero Bubble Pipeline Parallelism" (2401.10241)
  };
  Kind kind = Kind::oneForwardOneBackward;
  int64_t chunks = 1; ///< stages of each rank; 1 unless interleaved

  /// The most chunks that parsePipelineSchedule accepts.
  static constexpr int64_t kMaxChunks = 1024;
};

/// Parses `gpipe`, `1f1b`, `zb` or `interleaved:V` into `schedule`. Returns an empty text, or the
/// fault; then `schedule` does not change.
std::string parsePipelineSchedule(std::string_view text, PipelineSchedule &schedule);

/// The work of a rank on one microbatch in one stage.
struct PipelineAction {
  enum class Kind {
    forward,
    backward, ///< all of it or, if weight gradients are actions too, the cotangents
    weightGradient
  };
  Kind kind = Kind::forward;
  /// Counts through the model: stages 0 to ranks * chunks - 1. Stage s is on rank s % ranks.
  int64_t stage = 0;
  int64_t microbatch = 0;

  bool operator==(const PipelineAction &other) const { return key() == other.key(); }
  bool operator<(const PipelineAction &other) const { return key() < other.key(); }
  /// "backward of microbatch 3 in stage 1"
  std::string describe() const;

private:
  std::tuple<Kind, int64_t, int64_t> key() const { return {kind, stage, microbatch}; }
};

/// The actions of one rank, in issue order.
using RankOrder = std::vector<PipelineAction>;

/// The order of each of `ranks` ranks. Within a stage, forwards, backwards and weight gradients are
/// each in the order of the microbatches, so that all schedules add up gradients alike. A rank uses
/// activations of another rank in the order in which that rank computes them, and cotangents too.
/// With `interleaved`, `microbatches` must be a multiple of `ranks`.
std::vector<RankOrder> orderPipeline(const PipelineSchedule &schedule, int64_t ranks,
                                     int64_t microbatches);

/// How long each action of a stage takes, in any unit. Where weight gradients are no actions, a
/// backward takes `backward + weightGradient`.
struct PipelineDurations {
  int64_t forward = 1, backward = 1, weightGradient = 1;
};

/// When each action runs, in the unit of the durations.
struct PipelineTimes {
  struct Run {
    int64_t start = 0, end = 0;
  };
  std::vector<std::vector<Run>> runs; ///< [rank][action]
  /// The end of the last action of all; the first one starts at 0.
  int64_t makespan = 0;
  std::vector<int64_t> idle; ///< [rank]: the part of `makespan` in which it runs nothing
  /// Actions that can never start, by rank: nothing else is set.
  std::string fault;
};

/// Runs each action as soon as the actions before it on its rank and those whose results it uses
/// are complete; transfers take no time. The durations are positive. `frozen`: the stages without
/// weight gradients, whose backwards take `backward`.
PipelineTimes timePipeline(const std::vector<RankOrder> &orders, const PipelineDurations &durations,
                           const std::set<int64_t> &frozen = {});

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_PIPELINEORDER_H
