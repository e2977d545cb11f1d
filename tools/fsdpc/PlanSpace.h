//===- PlanSpace.h - the plans that `plan` chooses from ---------*- C++ -*-===//
// The plans of a model on a number of devices, and lower bounds of their memory and time that need
// no compilation.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_PLANSPACE_H
#define TOOLS_FSDPC_PLANSPACE_H

#include "tools/fsdpc/Options.h"
#include "tools/fsdpc/StageChoice.h"
#include <set>

namespace fsdpc {

/// The request to `plan`, besides the options of the compiler.
struct PlanRequest {
  int64_t devices = 0;
  size_t best = 10;           ///< plans that are wanted
  bool takesEstimates = true; ///< of pipelines, among these
  /// The numbers of devices of --scaling, and the batches of --batch-sweep, both rising; empty for
  /// none, and for batches that double.
  std::vector<int64_t> scaling, batches;
  bool sweepsBatch = false;
  std::string svg; ///< the destination of curves; empty for none
  /// Options of which the command line sets one value, without dashes; others are chosen.
  std::set<std::string> fixed;

  void declare(CLI::App &app);
  /// Reads the given options from the parsed `app`, and prepares `options` for a search. Throws
  /// UsageError for options that a search excludes.
  void apply(const CLI::App &app, Options &options);
  bool fixes(const std::string &option) const { return fixed.count(option) > 0; }
  bool isSeries() const { return sweepsBatch || !scaling.empty(); }
  /// The number of devices of the given batch.
  int64_t getReferenceDevices() const { return devices ? devices : scaling.front(); }
  /// The options of the command line that a plan's options replace.
  static const std::vector<std::string> &getChosenOptions();
};

/// One plan.
struct PlanSpec {
  MeshAxes mesh;
  std::string strategy;
  std::string tied = "each", remat = "none";
  int64_t accumulate = 1, prefetch = 1;
  std::string schedule;        ///< of a mesh with the axis of stages
  std::vector<int64_t> stages; ///< units of each; empty: of equal flops

  int64_t sizeOf(llvm::StringRef axis) const;
  int64_t stageRanks() const;
  bool hasStages() const { return stageRanks() > 1; }
  int64_t countStages() const; ///< of all ranks along the axis
  /// The same plan of the ranks of one stage, which have all layers then.
  PlanSpec withoutStages() const;
  int64_t batchShards() const { return sizeOf("data") * sizeOf("fsdp"); }
  /// The shards of each tensor that the strategy splits.
  int64_t storageShards() const { return sizeOf("fsdp") * sizeOf("context"); }
  /// The options, each with its value: "--mesh=fsdp=8 --strategy=fsdp ...".
  std::string describe() const;
  Options apply(const Options &options) const;
};

/// The properties of a model in the global phase that the bounds need.
struct ModelTotals {
  double trainable = 0, frozen = 0; ///< elements of parameters
  double elementBytes = 4;          ///< of the narrowest parameter
  int64_t states = 0;               ///< numbers that the optimizer keeps for each element
  int64_t samples = 0;              ///< of a step, on all ranks together; 0: unknown
  bool usesTensor = false;          ///< some parameter or value is split over axis `tensor`
  bool isPlaced = false;            ///< the model places parameters itself
  bool hasPositions = false;        ///< it has sequences that axis `context` can split
  std::vector<UnitWork> units;      ///< that stages divide; none: the model has no stages
};
ModelTotals measureModel(mlir::ModuleOp model, const std::string &name, const Options &options);

/// Every mesh with the strategies that make sense on it: `ddp` where nothing stores shards,
/// `zero1`, `zero2` and `fsdp`, which is `hsdp` where another axis replicates the shards. Axis
/// `tensor` stays in a node, and so does `context` unless samples are fewer than devices; with
/// `context`, parameters are split unless the request gives another strategy. Meshes with more
/// batch shards than samples are left out, and so are those without `context` if the options give a
/// kind of attention over it; likewise those without shards if they give --min-shard-size. The
/// meshes with stages are those of their devices with the axis in front; a schedule that the
/// request gives leaves no others.
std::vector<PlanSpec> findLayouts(const PlanRequest &request, const Options &options,
                                  const ModelTotals &model,
                                  const mlir::fsdp::cost::Machine &machine);

/// The values that are tried of the option of a decision, in the order of preference among equals;
/// numbers where it has numbers.
std::vector<std::string> findValues(const PlanRequest &request, const Options &options,
                                    const char *option);
std::vector<int64_t> findCounts(const PlanRequest &request, const Options &options,
                                const char *option);
/// Those of `accumulations` that give each rank of `plan` samples and, of a pipeline, each of its
/// ranks a microbatch, with multiples of these ranks where the request leaves the choice open.
std::vector<int64_t> findMicrobatches(const PlanSpec &plan, const PlanRequest &request,
                                      llvm::ArrayRef<int64_t> accumulations,
                                      const ModelTotals &model);

/// No plan of this mesh, strategy and microbatches has a smaller arena: the shards of parameters,
/// of the optimizer's state, and of sums of gradients, in bytes of a rank.
int64_t boundMemory(const PlanSpec &plan, const Options &options, const ModelTotals &model);
/// No plan like this is faster: the bytes that each rank sends for parameters, and for gradients,
/// over the links of the group. In seconds.
double boundCommunication(const PlanSpec &plan, const Options &options, const ModelTotals &model,
                          const mlir::fsdp::cost::Machine &machine);
/// The seconds of the transfers that take a microbatch from each stage's ranks to the next one's.
struct StageTransfers {
  double sum = 0, slowest = 0;
};
/// The transfers of a plan with stages, as long as for the median of the bytes that units pass on.
StageTransfers timeTransfers(const PlanSpec &plan, const Options &options, const ModelTotals &model,
                             const mlir::fsdp::cost::Machine &machine);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PLANSPACE_H
