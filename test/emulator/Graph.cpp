//===- Graph.cpp - launches of graphs ------------------------------------------------===//
//
// A launch enqueues each node on the stream of its lane, behind the nodes that it needs and what
// the launching stream had before; what that stream gets later starts behind all of them. So with
// `deferred` nodes run in any order that their edges allow. Launches of one executable graph run
// one after the other.
//
//===----------------------------------------------------------------------===//

#include "Capture.h"

#include "Failure.h"
#include "Held.h"
#include "Memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/// What cudaGraphExec_t points to.
struct CUgraphExec_st {
  const CUgraph_st *graph = nullptr;
  std::vector<CUgraphNode_st> nodes; ///< with edges into the graph's
  std::vector<CUstream_st *> lanes;
};

namespace emulator {
std::atomic<std::uint64_t> graphLaunchCount{0};
static std::atomic<std::uint64_t> instantiations{0};

void countGraphsAtExit() {
  std::atexit([] {
    std::fflush(nullptr);
    std::fprintf(stderr, "cuda emulator: %llu graphs, launched %llu times\n",
                 static_cast<unsigned long long>(instantiations),
                 static_cast<unsigned long long>(graphLaunchCount));
  });
}
} // namespace emulator

using namespace emulator;

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, std::size_t *count) {
  if (!graph)
    return refuse(cudaErrorInvalidValue, "nodes of a null graph");
  if (nodes)
    for (std::size_t i = 0; i < *count; ++i) // those behind the last one are null
      nodes[i] = i < graph->nodes.size() ? &graph->nodes[i] : nullptr;
  *count = nodes ? std::min(*count, graph->nodes.size()) : graph->nodes.size();
  return result();
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
  *type = node->type;
  return result();
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *parameters) {
  if (node->type != cudaGraphNodeTypeMemcpy || node->copy.bytes == 0)
    return refuse(cudaErrorInvalidValue, "the node is not a copy of one row");
  const GraphCopy &copy = node->copy;
  *parameters = {};
  parameters->srcPtr = {const_cast<void *>(copy.from), copy.bytes, copy.bytes, 1};
  parameters->dstPtr = {copy.to, copy.bytes, copy.bytes, 1};
  parameters->extent = {copy.bytes, 1, 1};
  parameters->kind = copy.kind;
  return result();
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  if (cudaError_t error = refuseUnsafe("cudaGraphInstantiate"))
    return error;
  if (!graph || flags)
    return refuse(cudaErrorInvalidValue, "instantiation of a null graph, or with flags");
  auto made = std::make_unique<CUgraphExec_st>();
  made->graph = graph;
  made->nodes.assign(graph->nodes.begin(), graph->nodes.end());
  for (int lane = 0; lane < graph->lanes; ++lane)
    made->lanes.push_back(makeStream(/*nonBlocking=*/true, /*ofGraph=*/true));
  *executable = made.release();
  ++instantiations;
  ++graphsHeld;
  return result();
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               void *to, const void *from, std::size_t bytes,
                                               cudaMemcpyKind kind) {
  const auto number = static_cast<std::size_t>(node->number);
  if (number >= executable->graph->nodes.size() || &executable->graph->nodes[number] != node)
    return refuse(cudaErrorInvalidValue, "a node of another graph");
  if (node->type != cudaGraphNodeTypeMemcpy || node->copy.bytes == 0 || bytes == 0)
    return refuse(cudaErrorInvalidValue,
                  "the node is not a copy of one row, or would copy nothing");
  if (allocationOf(from).kind != allocationOf(node->copy.from).kind ||
      allocationOf(to).kind != allocationOf(node->copy.to).kind)
    return refuse(cudaErrorInvalidValue, "a copy between other kinds of memory than before");
  if (const std::string wrong = checkCopy(to, from, bytes, kind); !wrong.empty())
    return refuse(cudaErrorInvalidValue, "copy of " + wrong);
  CUgraphNode_st &mine = executable->nodes[number];
  mine.copy = {to, from, bytes, kind};
  mine.issue = [copy = mine.copy](cudaStream_t stream) {
    cudaMemcpyAsync(copy.to, copy.from, copy.bytes, copy.kind, stream);
  };
  return result();
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (cudaError_t error = result())
    return error;
  if (isCaptured(stream))
    return refuse(cudaErrorNotSupported, "a launch in a capture is not emulated");
  if (const std::string other = streamOfAnotherDevice(stream); !other.empty())
    return refuse(cudaErrorInvalidResourceHandle, "a graph: launched on " + other);
  ++graphLaunchCount;
  if (const PointRef before = tailOf(stream))
    for (CUstream_st *lane : executable->lanes)
      waitOn(lane, before);
  std::vector<PointRef> done(executable->nodes.size());
  for (const CUgraphNode_st &node : executable->nodes) {
    CUstream_st *lane = executable->lanes[std::size_t(node.lane)];
    for (const CUgraphNode_st *need : node.needs)
      if (need->lane != node.lane)
        waitOn(lane, done[std::size_t(need->number)]);
    node.issue(lane);
    done[std::size_t(node.number)] = tailOf(lane);
  }
  for (CUstream_st *lane : executable->lanes)
    if (const PointRef last = tailOf(lane))
      waitOn(stream, last);
  return result();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  for (CUstream_st *lane : executable->lanes)
    destroyStream(lane);
  delete executable;
  --graphsHeld;
  return result();
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  --graphsHeld;
  return result();
}
