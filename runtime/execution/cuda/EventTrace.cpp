#include "runtime/execution/cuda/EventTrace.h"

#include "base/WaitCounter.h"
#include "runtime/device/cuda/LaunchWork.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace fsdp::rt {

using namespace base;

EventTrace::EventTrace(Context &c)
    : c(c), trace(c.world(), c.program()), latest(c.program().streams.size(), "start") {
  c.at("begin the trace");
  FSDP_CHECK(c, cudaEventCreate(&base));
  launchWork = &current.work;
  launchEvent = &current.event;
  c.observe(this);
}

EventTrace::~EventTrace() {
  c.observe(nullptr);
  launchWork = nullptr;
  launchEvent = nullptr;
  for (cudaEvent_t event : events)
    cudaEventDestroy(event);
  cudaEventDestroy(base);
}

cudaEvent_t EventTrace::event(std::size_t index) {
  while (events.size() <= index) {
    cudaEvent_t made = nullptr;
    FSDP_CHECK(c, cudaEventCreate(&made));
    events.push_back(made);
  }
  return events[index];
}

void EventTrace::begin(Mark mark) {
  actions.clear();
  segments.clear();
  current = {};
  const double started = now();
  trace.begin(mark, started);
  FSDP_CHECK(c, cudaEventRecord(base, c.stream(0).handle));
  FSDP_CHECK(c, cudaEventSynchronize(base)); // or another stream could run before it
  based = (started + now()) / 2;
}

void EventTrace::segment(const Segment &segment, Mark mark) {
  next(nullptr);
  segments.push_back({&segment, mark, actions.size()});
}

void EventTrace::next(const char *name) {
  Action done = std::exchange(current, {});  // so that requesting a stream is not an action
  if (done.stream >= 0 && !done.work.kind) { // recording an event takes no time
    recorded[done.event] = {latest[static_cast<std::size_t>(done.stream)], done.stream};
  } else if (done.stream >= 0) {
    if (done.event) { // a wait
      const Recorded &awaited = recorded[done.event];
      if (awaited.stream < 0) { // of an event of an earlier step, in the first one
        current.name = name;
        return;
      }
      done.name = awaited.name;
      done.awaited = awaited.stream;
    } else {
      latest[static_cast<std::size_t>(done.stream)] = done.name;
    }
    FSDP_CHECK(c, cudaEventRecord(event(2 * actions.size() + 1), c.stream(done.stream).handle));
    actions.push_back(done);
  }
  current.name = name;
}

void EventTrace::on(int stream) {
  split();
  if (current.stream >= 0 || !current.name)
    return;
  current.stream = stream;
  FSDP_CHECK(c, cudaEventRecord(event(2 * actions.size()), c.stream(stream).handle));
}

void EventTrace::enqueued() {
  next(nullptr);
  trace.enqueued(now());
}

double EventTrace::elapsed(std::size_t index) {
  float milliseconds = 0;
  FSDP_CHECK(c, cudaEventElapsedTime(&milliseconds, base, events[index]));
  return 1e-3 * static_cast<double>(milliseconds);
}

void EventTrace::end() {
  const double done = now();
  c.at("read the trace");
  // All actions have ended by now; on a busy host the difference of the clocks is larger.
  for (std::size_t i = 0; i < actions.size(); ++i)
    based = std::min(based, done - elapsed(2 * i + 1));
  std::vector<std::uint64_t> positions(latest.size());
  auto segment = segments.begin();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    for (; segment != segments.end() && segment->first == i; ++segment) {
      for (std::size_t stream = 0; stream < positions.size(); ++stream)
        positions[stream] = trace.track(stream).added();
      trace.segment(*segment->segment, positions, segment->mark);
    }
    const Action &action = actions[i];
    const double start = based + elapsed(2 * i), end = based + elapsed(2 * i + 1);
    // A waiting stream does no work.
    const bool waits = std::string_view(action.work.kind) == "wait";
    trace.track(static_cast<std::size_t>(action.stream))
        .add({action.name, action.work, action.bytes, start, end, waits ? 0 : end - start,
              action.awaited < 0 ? nullptr
                                 : c.program().streams[static_cast<std::size_t>(action.awaited)]});
  }
  trace.end(done);
}

} // namespace fsdp::rt
