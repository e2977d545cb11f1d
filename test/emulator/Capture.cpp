//===- Capture.cpp - streams that are captured into graphs --------------------------===//

#include "Capture.h"

#include "Failure.h"
#include "Held.h"
#include "Recording.h"

#include <algorithm>
#include <mutex>
#include <set>

namespace emulator {

int currentDevice();

namespace {

/// Of captures, and of what streams and events know of them.
std::mutex mutex;
using Lock = std::lock_guard<std::mutex>;

/// Those that have not ended.
std::vector<std::shared_ptr<Capture>> &captures() {
  static auto *all = new std::vector<std::shared_ptr<Capture>>;
  return *all;
}

cudaError_t invalidate(Capture &capture, cudaError_t error, const std::string &text) {
  capture.invalid = true;
  return refuse(error, text);
}

cudaError_t refuseInvalid(const char *call) {
  return refuse(cudaErrorStreamCaptureInvalidated,
                formatted("%s: an earlier call has ended the capture of this stream", call));
}

void addNeeds(std::vector<CUgraphNode_st *> &needs, const std::vector<CUgraphNode_st *> &more) {
  for (CUgraphNode_st *node : more)
    if (std::find(needs.begin(), needs.end(), node) == needs.end())
      needs.push_back(node);
}

/// Whether each node that other streams have got last comes before the next one of the origin.
bool isJoined(const Capture &capture) {
  std::set<const CUgraphNode_st *> before;
  std::vector<const CUgraphNode_st *> open;
  const auto add = [&](const CUgraphNode_st *node) {
    if (before.insert(node).second)
      open.push_back(node);
  };
  for (const CUgraphNode_st *node : capture.lanes.at(capture.origin).needs)
    add(node);
  while (!open.empty()) {
    const CUgraphNode_st *node = open.back();
    open.pop_back();
    for (const CUgraphNode_st *need : node->needs)
      add(need);
  }
  for (const auto &[stream, lane] : capture.lanes)
    for (const CUgraphNode_st *node : lane.needs)
      if (!before.count(node))
        return false;
  return true;
}

} // namespace

bool isCaptured(cudaStream_t handle) {
  const Lock lock(mutex);
  return handle && handle->capture;
}

cudaError_t addNode(cudaStream_t stream, cudaGraphNodeType type, Issue issue, GraphCopy copy) {
  const Lock lock(mutex);
  Capture &capture = *stream->capture;
  if (capture.invalid)
    return refuseInvalid("an operation");
  Capture::Lane &lane = capture.lanes.at(stream);
  std::deque<CUgraphNode_st> &nodes = capture.graph->nodes;
  nodes.push_back({type, int(nodes.size()), lane.number, lane.needs, std::move(issue), copy});
  lane.needs = {&nodes.back()};
  return cudaSuccess;
}

cudaError_t enqueueOrCapture(cudaStream_t stream, cudaGraphNodeType type, const char *what,
                             Action action, GraphCopy copy) {
  if (isCaptured(stream))
    return addNode(stream, type, [=](cudaStream_t lane) { enqueue(lane, what, action); }, copy);
  if (cudaError_t error = refuseLegacy(stream, what))
    return error;
  enqueue(stream, what, std::move(action));
  return result();
}

cudaError_t refuseUnsafe(const char *call) {
  const Lock lock(mutex);
  for (const auto &capture : captures())
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        (capture->thread == std::this_thread::get_id() ||
         capture->mode == cudaStreamCaptureModeGlobal))
      return invalidate(*capture, cudaErrorStreamCaptureUnsupported,
                        formatted("%s is not permitted while a stream is captured", call));
  return cudaSuccess;
}

cudaError_t refuseWaitFor(const CUstream_st *stream, const char *call) {
  const Lock lock(mutex);
  for (const auto &capture : captures())
    if (stream ? stream->capture == capture : capture->graph->device == currentDevice())
      return invalidate(*capture, cudaErrorStreamCaptureUnsupported,
                        formatted("%s: nothing of a captured stream runs", call));
  return cudaSuccess;
}

cudaError_t refuseWaitFor(const CUevent_st *event, const char *call) {
  const Lock lock(mutex);
  if (!event->capture)
    return cudaSuccess;
  return invalidate(*event->capture, cudaErrorCapturedEvent,
                    formatted("%s of an event that was last recorded in a captured stream", call));
}

cudaError_t refuseLegacy(cudaStream_t stream, const char *call) {
  if (stream)
    return cudaSuccess;
  const Lock lock(mutex);
  for (const auto &capture : captures())
    if (capture->graph->device == currentDevice())
      for (const auto &[captured, lane] : capture->lanes)
        if (!captured->nonBlocking)
          return invalidate(*capture, cudaErrorStreamCaptureImplicit,
                            formatted("%s: the default stream waits for a captured one", call));
  return cudaSuccess;
}

bool recordCaptured(CUevent_st *event, cudaStream_t handle, unsigned flags, cudaError_t &status) {
  const bool external = flags & cudaEventRecordExternal;
  if (!isCaptured(handle)) {
    if (external) {
      status =
          refuse(cudaErrorInvalidValue, "cudaEventRecordExternal on a stream that is not captured");
      return true;
    }
    const Lock lock(mutex);
    event->capture = nullptr;
    event->nodes.clear();
    return false;
  }
  if (external) {
    status = addNode(handle, cudaGraphNodeTypeEventRecord,
                     [event](cudaStream_t stream) { record(event, stream); });
    return true;
  }
  const Lock lock(mutex);
  if (handle->capture->invalid) {
    status = refuseInvalid("cudaEventRecord");
    return true;
  }
  event->capture = handle->capture;
  event->nodes = handle->capture->lanes.at(handle).needs;
  status = cudaSuccess;
  return true;
}

bool waitCaptured(cudaStream_t handle, CUevent_st *event, cudaError_t &status) {
  CUstream_st *stream = streamOf(handle);
  const Lock lock(mutex);
  if (!stream->capture && !event->capture)
    return false;
  status = cudaSuccess;
  Capture &capture = stream->capture ? *stream->capture : *event->capture;
  if (capture.invalid && !capture.ended)
    status = refuseInvalid("cudaStreamWaitEvent");
  else if (!event->capture)
    status = invalidate(capture, cudaErrorStreamCaptureIsolation,
                        "a captured stream waits for an event that was recorded outside of its "
                        "capture");
  else if (event->capture->ended)
    status = invalidate(capture, cudaErrorCapturedEvent,
                        "a wait for an event that was last recorded in a capture that has ended");
  else if (stream->capture && stream->capture != event->capture)
    status = invalidate(capture, cudaErrorStreamCaptureMerge,
                        "a captured stream waits for an event of another capture");
  else if (!handle)
    status = invalidate(capture, cudaErrorStreamCaptureImplicit,
                        "the default stream waits for an event of a capture");
  if (status != cudaSuccess)
    return true;
  if (!stream->capture) {
    stream->capture = event->capture;
    capture.lanes[stream].number = capture.graph->lanes++;
  }
  addNeeds(capture.lanes[stream].needs, event->nodes);
  return true;
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (cudaError_t error = result())
    return error;
  if (!stream)
    return refuse(cudaErrorStreamCaptureUnsupported, "capture of the legacy default stream");
  if (recordsCalls())
    return refuse(cudaErrorNotSupported, "capture is not emulated with `calls`");
  const Lock lock(mutex);
  if (stream->capture)
    return refuse(cudaErrorIllegalState, "the stream is captured already");
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  capture->graph->device = stream->device;
  capture->lanes[stream].number = capture->graph->lanes++;
  stream->capture = capture;
  captures().push_back(capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  *graph = nullptr;
  const Lock lock(mutex);
  if (!stream || !stream->capture)
    return refuse(cudaErrorIllegalState, "the stream is not captured");
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream)
    return invalidate(*capture, cudaErrorStreamCaptureUnmatched,
                      "the capture was begun on another stream");
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return refuse(cudaErrorStreamCaptureWrongThread, "the capture was begun by another thread");
  const bool joined = isJoined(*capture);
  for (auto &[member, lane] : capture->lanes)
    member->capture = nullptr;
  capture->ended = true;
  std::vector<std::shared_ptr<Capture>> &all = captures();
  all.erase(std::find(all.begin(), all.end(), capture));
  if (capture->invalid)
    return refuseInvalid("cudaStreamEndCapture");
  if (!joined)
    return refuse(cudaErrorStreamCaptureUnjoined,
                  "a stream has work in the capture for which the first stream does not wait");
  *graph = capture->graph.release();
  ++graphsHeld;
  return result();
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
  if (cudaError_t error = refuseLegacy(stream, "cudaStreamIsCapturing"))
    return error;
  const Lock lock(mutex);
  *status = !stream || !stream->capture ? cudaStreamCaptureStatusNone
            : stream->capture->invalid  ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
  return result();
}
