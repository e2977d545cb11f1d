//===- SegmentGraphs.h - segments as CUDA graphs --------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_SEGMENTGRAPHS_H
#define FSDP_RUNTIME_EXECUTION_CUDA_SEGMENTGRAPHS_H

#include "runtime/comm/cuda/Collectives.h"
#include "runtime/execution/cuda/SegmentCapture.h"
#include "runtime/program/Program.h"

#include <cuda_runtime.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace fsdp::rt {

class Context;

/// Enqueues the segments of a rank as CUDA graphs: each is captured once and launched every time.
///
/// [Note: constants of a graph] A graph repeats the calls of its capture: kernels with the same
/// arguments, copies between the same addresses. Of a step, all that changes from one to the next
/// is in the arena (step number, learning rate, powers of Adam's constants, scale of the loss,
/// counters of random numbers, number of samples, limits), which kernels read, except for one
/// thing: the pinned memory from which inputs are copied, as batches alternate between two places
/// and microbatches follow one another. These copies get their source before each launch. Scratch
/// memory that grows moves: a segment whose graph was captured before is captured again.
///
/// [Note: runs without capture] The first run of a plan is enqueued stream by stream: scratch
/// memory grows, cuBLASLt prepares its products, communicators are created and inputs get their
/// pinned memory, none of which a capture permits. So is every run that is traced, as events of a
/// graph measure no time. Waits of the host are between segments.
///
/// [Note: events of a capture] All streams are forked from the first one and joined to it at the
/// end, and a graph starts when everything enqueued before it is done; so a wait for an event that
/// was recorded before the segment is left out. Events that the host or the monitor's thread waits
/// for must be recorded by launches of the graph: those after outputs and collectives are external
/// (cudaEventRecordExternal), and belong to the graph.
class SegmentGraphs {
public:
  /// Null unless the environment has FSDP_GRAPH=1. Every rank calls it. Errors: another value than
  /// 0 or 1, ranks that differ in it, and programs and transports that cannot be captured.
  static std::unique_ptr<SegmentGraphs> make(Context &c);

  explicit SegmentGraphs(Context &c) : c_(c) {}
  ~SegmentGraphs();
  SegmentGraphs(const SegmentGraphs &) = delete;
  SegmentGraphs &operator=(const SegmentGraphs &) = delete;

  /// The following segments are those of `plan`.
  void begin(const ExecutionPlan &plan) { firstRun_ = begun_.insert(&plan).second; }
  /// Enqueues a segment, with `traced` action by action.
  void run(const Segment &segment, bool traced);

private:
  /// A copy from pinned memory whose source changes.
  struct InputCopy {
    int input;
    cudaGraphNode_t node;
    const void *from;
    void *to;
    std::size_t bytes;
  };
  struct Graph {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    std::vector<InputCopy> inputs;
    std::vector<cudaEvent_t> outputs;
    CapturedCollectives collectives;
    std::size_t workspaceBytes = 0; ///< all scratch memory when it was captured

    Graph() = default;
    ~Graph();
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;
  };

  std::unique_ptr<Graph> captured(const Segment &segment);
  void findInputs(const SegmentCapture &capture, Graph &graph) const;
  void setInputs(Graph &graph);
  void launch(Graph &graph);
  void fork();
  void join();
  cudaStream_t first() const;

  Context &c_;
  bool firstRun_ = false;
  std::set<const ExecutionPlan *> begun_;
  std::map<const Segment *, std::unique_ptr<Graph>> graphs_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_SEGMENTGRAPHS_H
