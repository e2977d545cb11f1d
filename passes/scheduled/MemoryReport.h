//===- MemoryReport.h - memory and collectives of a rank --------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_MEMORYREPORT_H
#define PASSES_SCHEDULED_MEMORYREPORT_H

#include "dialect/fsdp/FSDPDialect.h"
#include "passes/scheduled/BufferKinds.h"

#include <array>

namespace mlir::fsdp {

/// One line of the list of collectives: equal calls, counted over a step or an evaluation of a
/// batch.
struct CollectiveCount {
  std::string kind; ///< mnemonic of the op
  std::vector<std::string> axes;
  int64_t bytes = 0;    ///< of the whole value, per call
  int64_t received = 0; ///< maximum bytes that a rank receives, per call
  int64_t count = 0;

  bool isLike(const CollectiveCount &other) const {
    return kind == other.kind && axes == other.axes && bytes == other.bytes &&
           received == other.received;
  }
};

/// One line of the list of work: equal launches, counted over a training step of a rank.
struct WorkCount {
  std::string kind, direction; ///< "nn.einsum", "backward"
  int64_t count = 0;           ///< launches
  schedule::LaunchCost cost;   ///< of all of them
};

/// A buffer that is alive at the peak.
struct LiveBuffer {
  std::string name, unit; ///< the unit that it belongs to; empty for those of the module itself
  BufferKind kind;
  int64_t bytes;
};

/// The buffers that are live at the peak of the arena (passes/schedule/Peak.h). All bytes of
/// `kinds` and `alignment` together are `bytes`, the lower bound of the arena.
struct MemoryPeak {
  int64_t bytes = 0;
  std::array<int64_t, kBufferKinds> kinds = {}; ///< bytes of the buffers of each kind
  int64_t alignment = 0;                        ///< bytes between them
  std::string segment, launch, stream; ///< the place of the peak; empty if nothing is launched
  std::string unit, direction;         ///< of the launch
  std::vector<LiveBuffer> buffers;     ///< the largest first
};

/// A storage whose gradients are reduced for each of several uses of a parameter
/// (`tied-gradients=each` of fsdp-partition).
struct TiedGradient {
  std::string unit;
  int64_t reductions = 0; ///< of the storage in a run of the segment that has the most
  int64_t doubled =
      0; ///< bytes that a rank receives in a training step in all of them except the first
  int64_t memory =
      0; ///< the unsharded gradients, which `once` keeps from the first use to the last
};

/// A weight that several roles own: each keeps a copy. One that no role uses is owned by all.
struct TiedCopies {
  std::string unit;
  std::vector<std::string> names; ///< of the parameters
  std::vector<std::string> roles;
  int64_t parameters = 0, optimizer = 0; ///< bytes of one copy on a rank
  bool isUsed = true;
};

/// The stages of a role in a pipeline.
struct PipelineStage {
  std::vector<std::string> units; ///< in the order of forward
  /// The most pairs of stage and microbatch whose activations are kept for backward at once.
  int64_t alive = 0;
  /// The share of the time from the first forward to the last backward of all ranks in which the
  /// role computes nothing, if transfers take no time, and a forward as long as either half of a
  /// backward: the cotangents and the weight gradients. Negative where the launches of different
  /// microbatches are not one after the other.
  double idle = -1;
};

/// Memory in bytes and work of each rank of one role.
struct RoleMemory {
  std::string name; ///< of its program
  int64_t parameters = 0, gradients = 0, optimizer = 0, gathered = 0, activations = 0, messages = 0,
          arena = 0;
  int64_t flops = 0;                                     ///< of a training step
  std::vector<CollectiveCount> collectives;              ///< of a training step
  std::vector<CollectiveCount> evaluateCollectives = {}; ///< of an evaluation step
  PipelineStage stage = {};
};

/// Memory in bytes per rank, the maximum over roles, read off a scheduled module.
struct MemoryReport {
  std::string mesh; ///< as in `fsdp=4`
  /// How attention gets all positions of split sequences; "" if none are split.
  std::string contextAttention;
  /// "zigzag" or "contiguous"; "" likewise.
  std::string contextOrder;
  int64_t ranks = 1;
  int64_t parameters = 0;  ///< shards of parameters
  int64_t gradients = 0;   ///< shards of gradients, as the optimizer reads them
  int64_t optimizer = 0;   ///< shards of the optimizer's states
  int64_t gathered = 0;    ///< the most gathered parameters that are live together
  int64_t messages = 0;    ///< the most sent and received values that are live together
  int64_t activations = 0; ///< the most of all other transient buffers that are live together
  int64_t persistent =
      0;                 ///< buffers that keep their contents from step to step, in multiples of 64
  int64_t transient = 0; ///< the rest of the arena; its parts peak at different times
  int64_t arena = 0;     ///< the allocation of a rank
  int64_t lowerBound = 0;        ///< lower bound of every plan
  MemoryPeak peak;               ///< of the role that needs most
  std::vector<RoleMemory> roles; ///< in the order of their programs; none where there is one
  /// The memory of each rank without sharding.
  int64_t replicatedParameters = 0, replicatedGradients = 0, replicatedOptimizer = 0;
  std::vector<CollectiveCount> collectives;         ///< of a training step
  std::vector<CollectiveCount> evaluateCollectives; ///< of an evaluation step
  std::vector<TiedGradient> tiedGradients;          ///< of all roles
  /// Of a training step, in the order of the first launch; of the role with most flops.
  std::vector<WorkCount> work;
  std::string workRole; ///< its name; empty where there is one
  /// The axis along which a pipeline divides the model, and the microbatches of a step; empty and 0
  /// without one.
  std::string pipelineAxis;
  int64_t microbatches = 0;
  std::vector<TiedCopies> tiedCopies;

  /// The largest idle share of a rank of the pipeline; negative where it is not known.
  double getPipelineIdle() const;
};

/// The report of `module`, which is in the scheduled phase. Plans memory first unless it is
/// planned.
MemoryReport computeMemoryReport(ModuleOp module);
/// The same from `schedule`, the translation of `module` with costs.
MemoryReport computeMemoryReport(ModuleOp module, const ScheduleProblem &schedule);

/// For each buffer of role `index` the unit that it belongs to: that of its storage, or of the
/// launch that first writes it; null for those of the module itself.
std::vector<StringAttr> findBufferUnits(const ScheduleProblem &schedule, int index);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_MEMORYREPORT_H
