#include "runtime/execution/cuda/SegmentGraphs.h"
#include "base/EnvironmentFlag.h"
#include "base/Error.h"
#include "runtime/execution/cuda/Context.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace fsdp::rt {

using namespace base;

std::unique_ptr<SegmentGraphs> SegmentGraphs::make(Context &c) {
  const std::optional<bool> asked =
      environmentFlag("FSDP_GRAPH", "launches each segment of a step as one CUDA graph");
  // NCCL requires that all ranks capture a collective or none does.
  if (!c.isSetOnAll("FSDP_GRAPH", asked.value_or(false)))
    return nullptr;
  if (c.hasRoles())
    throw Error("FSDP_GRAPH=1 captures programs that are the same on every rank, but the ranks of "
                "this one run different programs, the stages of a pipeline: unset it",
                kExitBadCommandLine)
        .byAll();
  if (c.sharesDevice() && c.worldSize() > 1)
    throw Error("FSDP_GRAPH=1 got --communicator=loopback, in whose collectives the hosts of the "
                "ranks wait for one another, which no graph repeats: unset it, or use nccl",
                kExitBadCommandLine)
        .byAll();
  return std::make_unique<SegmentGraphs>(c);
}

SegmentGraphs::Graph::~Graph() {
  if (executable)
    cudaGraphExecDestroy(executable);
  if (graph)
    cudaGraphDestroy(graph);
  for (cudaEvent_t event : outputs)
    cudaEventDestroy(event);
}

SegmentGraphs::~SegmentGraphs() {
  // After a failure the device may wait for other ranks, and freeing for the device.
  if (std::uncaught_exceptions() > 0 || c_.failure().raised())
    for (auto &[segment, graph] : graphs_)
      static_cast<void>(graph.release());
  c_.graphOutputs_.clear();
}

void SegmentGraphs::run(const Segment &segment, bool traced) {
  if (firstRun_ || traced) {
    segment.run(c_);
    return;
  }
  std::unique_ptr<Graph> &graph = graphs_[&segment];
  if (!graph || graph->workspaceBytes != c_.workspaceBytes()) {
    if (graph) // it may still run
      c_.synchronize();
    graph = captured(segment);
  } else {
    setInputs(*graph);
  }
  launch(*graph);
}

cudaStream_t SegmentGraphs::first() const { return c_.streams_[0]; }

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

/// Later work of every stream starts after the work enqueued on the first one so far.
void SegmentGraphs::fork() {
  FSDP_CHECK(c_, cudaEventRecord(c_.ends_[0], first()));
  for (std::size_t stream = 1; stream < c_.streams_.size(); ++stream)
    FSDP_CHECK(c_, cudaStreamWaitEvent(c_.streams_[stream], c_.ends_[0], 0));
}

/// Later work of the first stream starts after the work enqueued on every other one so far.
void SegmentGraphs::join() {
  for (std::size_t stream = 1; stream < c_.streams_.size(); ++stream) {
    FSDP_CHECK(c_, cudaEventRecord(c_.ends_[stream], c_.streams_[stream]));
    FSDP_CHECK(c_, cudaStreamWaitEvent(first(), c_.ends_[stream], 0));
  }
}

std::unique_ptr<SegmentGraphs::Graph> SegmentGraphs::captured(const Segment &segment) {
  auto made = std::make_unique<Graph>();
  c_.at("capture a segment");
  // Copies record no events for the host meanwhile: see [Note: events of a capture].
  std::vector<HostCopies> copies;
  for (StreamWorkspace &workspace : c_.workspaces_)
    copies.push_back(std::exchange(workspace.copies, {}));
  c_.collectives_->beginCapture();
  SegmentCapture capture;
  c_.capture_ = &capture;
  // Calls of the monitor's thread and of ranks in other threads are not those of this capture.
  FSDP_CHECK(c_, cudaStreamBeginCapture(first(), cudaStreamCaptureModeThreadLocal));
  fork();
  segment.run(c_);
  c_.at("capture a segment");
  join();
  FSDP_CHECK(c_, cudaStreamEndCapture(first(), &made->graph));
  c_.capture_ = nullptr;
  made->outputs = std::move(capture.outputs);
  made->collectives = c_.collectives_->endCapture();
  findInputs(capture, *made);
  for (std::size_t stream = 0; stream < copies.size(); ++stream)
    c_.workspaces_[stream].copies = copies[stream];
  // Segments that are enqueued stream by stream may wait for these events, but for none of a
  // capture.
  for (int event : capture.recorded)
    FSDP_CHECK(c_, cudaEventRecord(c_.event(event), first()));
  FSDP_CHECK(c_, cudaGraphInstantiate(&made->executable, made->graph, 0));
  made->workspaceBytes = c_.workspaceBytes();
  return made;
}

/// The copies from pinned memory, in the order in which the segment asked for the batches.
void SegmentGraphs::findInputs(const SegmentCapture &capture, Graph &graph) const {
  std::size_t count = 0;
  FSDP_CHECK(c_, cudaGraphGetNodes(graph.graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count)
    FSDP_CHECK(c_, cudaGraphGetNodes(graph.graph, nodes.data(), &count));
  std::map<const void *, InputCopy> copies;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    FSDP_CHECK(c_, cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeMemcpy)
      continue;
    cudaMemcpy3DParms copy = {};
    if (cudaGraphMemcpyNodeGetParams(node, &copy) != cudaSuccess) { // of a library
      cudaGetLastError();
      continue;
    }
    copies[copy.srcPtr.ptr] = {-1, node, copy.srcPtr.ptr, copy.dstPtr.ptr, copy.extent.width};
  }
  for (const SegmentCapture::StagedInput &staged : capture.inputs) {
    const auto found = copies.find(staged.address);
    if (found == copies.end())
      throw Error(format("a captured segment has no copy of input %d, expected one", staged.input))
          .at(c_.rank(), c_.action());
    found->second.input = staged.input;
    graph.inputs.push_back(found->second);
  }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void SegmentGraphs::setInputs(Graph &graph) {
  c_.at("stage inputs");
  for (InputCopy &copy : graph.inputs) {
    const void *from = c_.staged(copy.input);
    if (from == copy.from)
      continue;
    FSDP_CHECK(c_, cudaGraphExecMemcpyNodeSetParams1D(graph.executable, copy.node, copy.to, from,
                                                      copy.bytes, cudaMemcpyHostToDevice));
    copy.from = from;
  }
}

void SegmentGraphs::launch(Graph &graph) {
  c_.at("launch a graph");
  join();
  c_.collectives_->launching(graph.collectives);
  FSDP_CHECK(c_, cudaGraphLaunch(graph.executable, first()));
  c_.collectives_->launched(graph.collectives);
  if (!graph.inputs.empty()) { // the host waits for it before it replaces the batches
    const HostCopies &copies = c_.workspaces_[0].copies;
    FSDP_CHECK(c_, cudaEventRecord(copies.fromHost[copies.place], first()));
  }
  fork();
  c_.graphOutputs_.insert(c_.graphOutputs_.end(), graph.outputs.begin(), graph.outputs.end());
}

} // namespace fsdp::rt
