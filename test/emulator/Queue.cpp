//===- Queue.cpp - streams as queues -----------------------------------------------===//

#include "Queue.h"

#include "Emulator.h"
#include "Failure.h"
#include "Held.h"
#include "Memory.h"
#include "Recording.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>

namespace emulator {

int currentDevice();

namespace {

using Lock = std::unique_lock<std::mutex>;

struct Engine {
  std::mutex mutex;
  std::condition_variable moved;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::map<int, CUstream_st *> defaults; ///< by device
  std::mt19937_64 random;
  bool seeded = false;
  std::uint64_t progress = 0, enqueued = 0;
  int made = 0, running = 0;
  std::chrono::nanoseconds passed{0}; ///< see passTime

  std::mt19937_64 &generator() {
    if (!seeded)
      random.seed(settings().seed + 1);
    seeded = true;
    return random;
  }
};

Engine &engine() {
  static Engine *one = new Engine; // outlives every thread that may still use it
  return *one;
}

/// Whether an operation before the first one of `stream` is in the way in the queue that its stream
/// shares.
bool isHeldUp(const Engine &engine, const CUstream_st &stream) {
  const int queues = settings().queues;
  return queues > 0 &&
         std::any_of(engine.streams.begin(), engine.streams.end(), [&](const auto &other) {
           if (other.get() == &stream || other->device != stream.device ||
               other->operations.empty() || other->number % queues != stream.number % queues)
             return false;
           const auto first =
               other->operations.begin() + (other->busy && !other->operations.front().holdsQueue);
           return first != other->operations.end() &&
                  first->number < stream.operations.front().number;
         });
}

bool mayStart(const Engine &engine, const CUstream_st &stream) {
  if (stream.busy || stream.operations.empty())
    return false;
  if (stuck() != cudaSuccess)
    return true; // nothing is performed any more
  for (const PointRef &need : stream.operations.front().needs)
    if (!need->reached)
      return false;
  return !isHeldUp(engine, stream);
}

/// Of the streams whose first operation may start, the one of the highest priority; priorities
/// change now and then. So some streams run far ahead of others, which a coin for every step would
/// not give.
CUstream_st *choose(Engine &engine, CUstream_st *only) {
  if (only)
    return mayStart(engine, *only) ? only : nullptr;
  CUstream_st *best = nullptr;
  std::vector<CUstream_st *> able;
  for (const auto &stream : engine.streams)
    if (mayStart(engine, *stream)) {
      able.push_back(stream.get());
      if (!best || stream->priority > best->priority)
        best = stream.get();
    }
  if (best && engine.generator()() % 4 == 0)
    able[engine.generator()() % able.size()]->priority =
        static_cast<unsigned>(engine.generator()());
  return best;
}

void reach(Engine &engine, const PointRef &point) {
  point->reached = true;
  point->when = std::chrono::steady_clock::now() + engine.passed;
  ++engine.progress;
  engine.moved.notify_all();
}

void pop(CUstream_st &stream) {
  stream.busy = false;
  stream.operations.pop_front();
}

/// Performs the first operation of a stream, without the lock.
void perform(Engine &engine, CUstream_st &stream, Lock &lock) {
  Operation &operation = stream.operations.front();
  // The thread that completes an operation may remove it while its action is still about to return.
  const Action action = std::move(operation.action);
  const PointRef done = operation.done;
  stream.busy = true;
  bool complete = true;
  if (stuck() == cudaSuccess && action) {
    ++engine.running;
    lock.unlock();
    {
      const DeviceAccess access;
      complete = action(done);
    }
    lock.lock();
    --engine.running;
  }
  if (complete) {
    reach(engine, done);
    pop(stream);
  }
}

/// After a failure no thread completes operations that others have begun.
void giveUp(Engine &engine) {
  for (const auto &stream : engine.streams)
    if (stream->busy && engine.running == 0) {
      reach(engine, stream->operations.front().done);
      pop(*stream);
    }
}

std::string whoWaits(const Engine &engine) {
  std::string text;
  for (const auto &stream : engine.streams)
    if (!stream->operations.empty())
      text += formatted("%s stream %d %s %s", text.empty() ? "" : ",", stream->number,
                        stream->busy ? "is in" : "waits before", stream->operations.front().what);
  return text.empty() ? " no stream has anything to do" : text;
}

void waitLocked(Engine &engine, const PointRef &point, CUstream_st *only, Lock &lock) {
  std::uint64_t seen = engine.progress;
  auto since = std::chrono::steady_clock::now();
  while (!point->reached) {
    if (CUstream_st *stream = choose(engine, only)) {
      perform(engine, *stream, lock);
      continue;
    }
    if (stuck() != cudaSuccess)
      giveUp(engine);
    if (point->reached)
      return;
    engine.moved.wait_for(lock, std::chrono::milliseconds(20));
    const auto now = std::chrono::steady_clock::now();
    const double patience = settings().deadlock * (engine.running ? 10 : 1);
    if (engine.progress != seen) {
      seen = engine.progress;
      since = now;
    } else if (std::chrono::duration<double>(now - since).count() > patience) {
      recordFailure(cudaErrorLaunchTimeout, "no stream can go on:" + whoWaits(engine));
    }
  }
}

} // namespace

CUstream_st *makeStream(bool nonBlocking, bool ofGraph) {
  Engine &e = engine();
  Lock lock(e.mutex);
  e.streams.push_back(std::make_unique<CUstream_st>());
  CUstream_st *stream = e.streams.back().get();
  stream->nonBlocking = nonBlocking;
  stream->ofGraph = ofGraph;
  stream->number = ++e.made;
  stream->device = currentDevice();
  stream->priority = static_cast<unsigned>(e.generator()());
  return stream;
}

CUstream_st *streamOf(cudaStream_t stream) {
  if (stream)
    return stream;
  Engine &e = engine();
  const int device = currentDevice();
  {
    Lock lock(e.mutex);
    auto found = e.defaults.find(device);
    if (found != e.defaults.end())
      return found->second;
  }
  CUstream_st *made = makeStream(false);
  Lock lock(e.mutex);
  return e.defaults.emplace(device, made).first->second;
}

std::string streamOfAnotherDevice(cudaStream_t stream) {
  const int device = streamOf(stream)->device, current = currentDevice();
  return device == current ? ""
                           : formatted("a stream of device %d, while device %d is the current one",
                                       device, current);
}

void destroyStream(CUstream_st *stream) {
  if (PointRef tail = tailOf(stream))
    waitFor(tail);
  Engine &e = engine();
  Lock lock(e.mutex);
  e.moved.wait(lock, [&] { return !stream->busy; });
  e.streams.erase(std::remove_if(e.streams.begin(), e.streams.end(),
                                 [&](const auto &one) { return one.get() == stream; }),
                  e.streams.end());
}

int streamsHeld() {
  Lock lock(engine().mutex);
  const auto &streams = engine().streams;
  const auto ofGraphs = std::count_if(streams.begin(), streams.end(),
                                      [](const auto &stream) { return stream->ofGraph; });
  return static_cast<int>(streams.size() - engine().defaults.size()) - static_cast<int>(ofGraphs);
}

/// As `enqueue`, without a record of the call.
static void add(CUstream_st *stream, const char *what, Action action, std::vector<PointRef> needs,
                bool holdsQueue) {
  Engine &e = engine();
  Lock lock(e.mutex);
  // The legacy default stream and blocking streams wait for each other.
  const bool isDefault =
      e.defaults.count(stream->device) && e.defaults.at(stream->device) == stream;
  for (const auto &other : e.streams)
    if (other.get() != stream && other->device == stream->device && other->tail &&
        !other->tail->reached &&
        ((isDefault && !other->nonBlocking) ||
         (!stream->nonBlocking && e.defaults.count(stream->device) &&
          e.defaults.at(stream->device) == other.get())))
      needs.push_back(other->tail);
  stream->tail = std::make_shared<Point>();
  stream->operations.push_back(
      {what, std::move(action), std::move(needs), stream->tail, holdsQueue, ++e.enqueued});
  ++e.progress;
  e.moved.notify_all();
  if (!settings().deferred)
    waitLocked(e, PointRef(stream->tail), stream, lock);
}

void enqueue(cudaStream_t handle, const char *what, Action action, std::vector<PointRef> needs,
             bool holdsQueue) {
  CUstream_st *stream = streamOf(handle);
  if (recordsCalls()) {
    recordCall(stream->device, stream->number, what);
    action = nullptr;
  }
  add(stream, what, std::move(action), std::move(needs), holdsQueue);
}

PointRef tailOf(cudaStream_t handle) {
  CUstream_st *stream = streamOf(handle);
  Lock lock(engine().mutex);
  return stream->tail;
}

void waitOn(cudaStream_t stream, PointRef point) {
  enqueue(stream, "cudaStreamWaitEvent", nullptr, {std::move(point)});
}

void record(CUevent_st *event, cudaStream_t handle) {
  CUstream_st *stream = streamOf(handle);
  if (recordsCalls())
    recordCall(stream->device, stream->number, event->timing ? "a time" : "cudaEventRecord",
               std::to_string(event->number));
  add(stream, "cudaEventRecord", nullptr, {}, false);
  event->recorded = tailOf(stream);
}

bool reached(const PointRef &point) {
  Lock lock(engine().mutex);
  return point->reached;
}

void complete(const PointRef &point) {
  Engine &e = engine();
  Lock lock(e.mutex);
  if (!point->reached)
    reach(e, point);
  for (const auto &stream : e.streams)
    if (stream->busy && !stream->operations.empty() && stream->operations.front().done == point)
      pop(*stream);
  e.moved.notify_all();
}

void waitFor(const PointRef &point) {
  Engine &e = engine();
  Lock lock(e.mutex);
  waitLocked(e, point, nullptr, lock);
}

void waitForAll() {
  std::vector<PointRef> tails;
  {
    Lock lock(engine().mutex);
    for (const auto &stream : engine().streams)
      if (stream->tail && stream->device == currentDevice())
        tails.push_back(stream->tail);
  }
  for (const PointRef &tail : tails)
    waitFor(tail);
}

void passTime(double seconds) {
  Lock lock(engine().mutex);
  engine().passed += std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * seconds));
}

void poll() {
  if (!settings().deferred)
    return; // the thread that issued an operation performs it
  Engine &e = engine();
  Lock lock(e.mutex);
  if (CUstream_st *stream = choose(e, nullptr))
    perform(e, *stream, lock);
}

} // namespace emulator
