//===- Queue.h - streams as queues -------------------------------------------------===//
//
// A stream is a queue of operations. One may start when it is first, the operations that it waits
// for are complete, and no operation of its stream runs. Inline, the caller performs each at once.
// Deferred, nothing runs until some host thread waits for something; that thread then performs
// operations of all streams, whichever random priorities prefer among those that may start. With
// the setting `queues`, streams of a device share hardware queues, in which an operation starts
// after those before it, of other streams too, have started.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_QUEUE_H
#define FSDP_EMULATOR_QUEUE_H

#include "cuda_runtime.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct CUgraphNode_st;

namespace emulator {

struct Capture;

/// A moment on a stream.
struct Point {
  bool reached = false; ///< guarded by the engine
  std::chrono::steady_clock::time_point when;
};
using PointRef = std::shared_ptr<Point>;

/// Performs an operation. True when it is complete; false when `complete` will be called for its
/// point.
using Action = std::function<bool(const PointRef &)>;

struct Operation {
  const char *what;
  Action action;
  std::vector<PointRef> needs;
  PointRef done;
  bool holdsQueue = false;  ///< until it is complete; others until they have started
  std::uint64_t number = 0; ///< in the order of all streams
};

} // namespace emulator

/// What cudaStream_t points to.
struct CUstream_st {
  std::deque<emulator::Operation> operations;
  bool busy = false, nonBlocking = false, ofGraph = false;
  emulator::PointRef tail; ///< of the last operation enqueued, null if none was
  unsigned priority = 0;
  int number = 0, device = 0;
  std::shared_ptr<emulator::Capture> capture; ///< of which the stream is a part, else null
};

/// What cudaEvent_t points to.
struct CUevent_st {
  emulator::PointRef recorded; ///< null before the first record
  bool timing = true;
  int device = 0, number = 0;
  /// Where it was last recorded in a captured stream: the capture, and the nodes that it denotes.
  std::shared_ptr<emulator::Capture> capture{};
  std::vector<CUgraphNode_st *> nodes{};
};

namespace emulator {

/// Null denotes the legacy default stream of the current device.
CUstream_st *streamOf(cudaStream_t stream);
/// "", or that the stream is not of the current device, as that of a launch must be.
std::string streamOfAnotherDevice(cudaStream_t stream);
/// `ofGraph`: of an executable graph, not of the program.
CUstream_st *makeStream(bool nonBlocking, bool ofGraph = false);
void destroyStream(CUstream_st *stream);

/// Adds an operation. Inline, returns when it is complete.
void enqueue(cudaStream_t stream, const char *what, Action action, std::vector<PointRef> needs = {},
             bool holdsQueue = false);
/// The point of the last operation of a stream, null if there was none.
PointRef tailOf(cudaStream_t stream);
/// Later operations on `stream` start after `point`.
void waitOn(cudaStream_t stream, PointRef point);
void record(CUevent_st *event, cudaStream_t stream);

bool reached(const PointRef &point);
void complete(const PointRef &point);
/// Performs what may start until the point is reached. A failure if nothing moves for a while.
void waitFor(const PointRef &point);
void waitForAll();
/// From now on the times of events are later by this much.
void passTime(double seconds);
/// Performs one operation that may start, if there is one.
void poll();

} // namespace emulator

#endif // FSDP_EMULATOR_QUEUE_H
