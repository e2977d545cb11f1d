//===- Capture.h - streams that are captured into graphs ----------------------------===//
//
// As CUDA's documentation says ("CUDA Graphs", "Creating a Graph Using Stream Capture"): from
// cudaStreamBeginCapture on, what a stream gets becomes nodes of a graph, and nothing runs. A
// stream that waits for an event of the capture joins it. What would need the work of a capture to
// run (a wait or query of the host for a captured stream, event or device) or order it with other
// work is refused and ends the capture: it gives no graph, and each further call on its streams is
// refused.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_CAPTURE_H
#define FSDP_EMULATOR_CAPTURE_H

#include "Queue.h"
#include "cuda_runtime_api.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace emulator {

/// Enqueues the work of a node on a stream, at a launch of its graph.
using Issue = std::function<void(cudaStream_t)>;

/// A copy of one row.
struct GraphCopy {
  void *to = nullptr;
  const void *from = nullptr;
  std::size_t bytes = 0;
  cudaMemcpyKind kind = cudaMemcpyDefault;
};

} // namespace emulator

/// What cudaGraphNode_t points to.
struct CUgraphNode_st {
  cudaGraphNodeType type = cudaGraphNodeTypeKernel;
  int number = 0;                      ///< in its graph, in the order of capture
  int lane = 0;                        ///< nodes of a lane, those of one stream, run in order
  std::vector<CUgraphNode_st *> needs; ///< of its lane and of others
  emulator::Issue issue;
  emulator::GraphCopy copy{}; ///< of a copy of one row
};

/// What cudaGraph_t points to.
struct CUgraph_st {
  std::deque<CUgraphNode_st> nodes;
  int lanes = 0, device = 0;
};

namespace emulator {

/// The capture of one graph.
struct Capture {
  CUstream_st *origin = nullptr;
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::unique_ptr<CUgraph_st> graph = std::make_unique<CUgraph_st>();
  bool invalid = false, ended = false;
  struct Lane {
    int number = 0;
    std::vector<CUgraphNode_st *> needs; ///< of the stream's next node
  };
  std::map<CUstream_st *, Lane> lanes; ///< of the streams that have joined
};

/// Whether what `stream` gets becomes a node of a graph.
bool isCaptured(cudaStream_t stream);
/// The node of one operation of a captured stream; an error where the capture has become invalid.
cudaError_t addNode(cudaStream_t stream, cudaGraphNodeType type, Issue issue, GraphCopy copy = {});

/// Enqueues an operation, or adds a node where the stream is captured.
cudaError_t enqueueOrCapture(cudaStream_t stream, cudaGraphNodeType type, const char *what,
                             Action action, GraphCopy copy = {});

// Each of these returns cudaSuccess, or refuses a call that is not allowed because of a capture,
// which becomes invalid.
/// A call that may wait for the device or change its memory: for a thread that captures, and, where
/// a capture is global, for all.
cudaError_t refuseUnsafe(const char *call);
/// A wait or query of the host for a stream; null denotes the whole device.
cudaError_t refuseWaitFor(const CUstream_st *stream, const char *call);
/// Likewise for an event.
cudaError_t refuseWaitFor(const CUevent_st *event, const char *call);
/// Use of the legacy default stream, which would wait for captured streams.
cudaError_t refuseLegacy(cudaStream_t stream, const char *call);

/// Records a captured event, or waits for one. False where neither stream nor event is captured:
/// `status` then is unchanged.
bool recordCaptured(CUevent_st *event, cudaStream_t stream, unsigned flags, cudaError_t &status);
bool waitCaptured(cudaStream_t stream, CUevent_st *event, cudaError_t &status);

} // namespace emulator

#endif // FSDP_EMULATOR_CAPTURE_H
