//===- Pipelines.h - the three stages as C++ functions ----------*- C++ -*-===//
// The pipelines of `fsdpc`. Each function appends one stage and checks its final phase.
// Pipelines.cpp gives the order of the passes and the reasons.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_PIPELINES_H
#define PASSES_PIPELINES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Pass/PassManager.h"
#include <string>
#include <vector>

namespace mlir::fsdp {

/// Whether updates of a step may run in the next one.
enum class DeferUpdates { off, on };

/// The user's choices of distribution. Names and meanings are those of the command line.
struct PipelineOptions {
  /// `ddp`, `zero1`, `zero2`, `fsdp` or `hsdp`.
  std::string strategy = "fsdp";
  /// Axes that split the batch besides `data` and `fsdp`.
  std::vector<std::string> batchAxes;
  /// `PATTERN:SPEC` each, without contradictions for a parameter: PATTERN is a glob over parameter
  /// names, SPEC as in passes/ShardSpec.h.
  std::vector<std::string> shardPatterns;
  /// Parameters with fewer elements stay whole on every rank.
  int64_t minShardSize = 0;
  /// When a gathered unit is freed between forward and backward: `always`, `never` or
  /// `axes:A+B`.
  std::string reshard = "always";
  /// `f32` or `bf16`: of gathers and of compute, and of gradients until they are reduced.
  /// Parameters are stored in f32.
  std::string precision = "f32", reducePrecision = "f32";
  /// Microbatches of a step, and which of them reduce gradients over ranks: `each`, `last` or
  /// `auto`.
  int64_t accumulate = 1;
  std::string accumulateReduce = "auto";
  /// How often the unit of a parameter with several distant uses is reduced: for `each` use, or
  /// `once`.
  std::string tiedGradients = "each";
  /// Whether updates run before the gathers of the next step.
  DeferUpdates deferUpdates = DeferUpdates::off;
  /// The activations that backward recomputes: `none`, `full`, `selective` or `every:K`.
  std::string remat = "none";
  /// In how many chunks of rows logits, their loss and their cotangent are computed.
  int64_t lossChunks = 1;
  /// Preferred divisor of a rank's part of a vocabulary, and maximum padding of a vocabulary in
  /// percent (fsdp-pad-vocabulary).
  int64_t vocabularyMultiple = 64, mostVocabularyPadding = 5;
  /// The unit of gathers and reductions: each `unit` or each `parameter`.
  std::string buckets = "unit";
  /// Print the table of shardings to standard error; a remark for each axis of the values that a
  /// pattern names.
  bool printShardings = false;
  /// NAME or NAME=FILE.svg; empty: none.
  std::string drawSharding;
  std::string explainShardings;
  /// How many gathers may run ahead of the unit in use.
  int64_t prefetch = 1;
};

/// A model, with placements, gradients, updates and a sharding on every value.
void buildGlobalPipeline(OpPassManager &manager, const PipelineOptions &options);
/// The program of one rank, with explicit collectives and fused kernels.
void buildLocalPipeline(OpPassManager &manager, const PipelineOptions &options);
/// Launches on streams, buffers at fixed offsets; verified.
void buildScheduledPipeline(OpPassManager &manager, const PipelineOptions &options);

} // namespace mlir::fsdp

#endif // PASSES_PIPELINES_H
