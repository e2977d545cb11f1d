//===- Pipelines.h - the three stages as C++ functions ----------*- C++ -*-===//
// The pipelines of `fsdpc`. Each function appends one stage and checks its final phase.
// Pipelines.cpp gives the order of the passes and the reasons.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_PIPELINES_H
#define PASSES_PIPELINES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Pass/PassManager.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp {

struct ScheduleProblem;

/// The user's choices of distribution. Names and meanings are those of the command line.
struct PipelineOptions {
#define FSDP_WORD(field, flag, initial, words, description) std::string field = initial;
#define FSDP_FLAG(field, flag, description) bool field = false;
#define FSDP_TEXT(field, flag, initial, form, check, description) std::string field = initial;
#define FSDP_COUNT(type, field, flag, initial, letter, description) int64_t field = initial;
#include "passes/PipelineOptions.def"
  /// Axes that split the batch besides `data` and `fsdp`.
  std::vector<std::string> batchAxes;
  /// `PATTERN:SPEC` each, without contradictions for a parameter: PATTERN is a glob over parameter
  /// names, SPEC as in passes/sharding/ShardSpec.h.
  std::vector<std::string> shardPatterns;
  /// Print the table of shardings to standard error; a remark for each axis of the values that a
  /// pattern names.
  bool printShardings = false;
  /// NAME or NAME=FILE.svg; empty: none.
  std::string drawSharding;
  std::string explainShardings;
};

/// The first part of the next one: a model with placements and all ops of forward, which are then
/// divided into stages.
void buildForwardPipeline(OpPassManager &manager, const PipelineOptions &options);
/// A model, with placements, gradients, updates and a sharding on every value.
void buildGlobalPipeline(OpPassManager &manager, const PipelineOptions &options);
/// The program of one rank, with explicit collectives and fused kernels.
void buildLocalPipeline(OpPassManager &manager, const PipelineOptions &options);
/// Launches on streams, buffers at fixed offsets; verified.
void buildScheduledPipeline(OpPassManager &manager, const PipelineOptions &options);
/// The same; `verified` becomes the translation of the module that was verified, without costs, if
/// it has one role for each program. Sets `isLimited` if the schedule may be another one with a
/// larger `prefetch`.
void buildVerifiedPipeline(OpPassManager &manager, const PipelineOptions &options,
                           std::optional<ScheduleProblem> &verified, bool &isLimited);

} // namespace mlir::fsdp

#endif // PASSES_PIPELINES_H
