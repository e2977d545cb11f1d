//===- EventTrace.cpp -----------------------------------------------------===//

#include "runtime/device/cuda/EventTrace.h"

#include "runtime/device/WaitCounter.h"
#include "runtime/comm/cuda/Collectives.h"
#include "runtime/device/cuda/LaunchWork.h"

#include <string_view>
#include <utility>

namespace fsdp::rt {

namespace {

std::vector<std::string> namesOf(Table<const char *> streams) {
  return std::vector<std::string>(streams.begin(), streams.end());
}

} // namespace

EventTrace::EventTrace(Context &c) : c(c), trace(c.world(), namesOf(c.program().streams)) {
  c.at("begin the trace");
  FSDP_CHECK(c, cudaEventCreate(&base));
  launchWork = &current.work;
  c.observe(this);
}

EventTrace::~EventTrace() {
  c.observe(nullptr);
  launchWork = nullptr;
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

void EventTrace::begin() {
  actions.clear();
  current = {};
  started = now();
  FSDP_CHECK(c, cudaEventRecord(base, c.stream(0).handle));
  FSDP_CHECK(c, cudaEventSynchronize(base)); // or another stream could be ahead of it
  based = (started + now()) / 2;
}

void EventTrace::next(const char *name) {
  const Action done = std::exchange(current, {}); // asking for a stream is no action meanwhile
  // Recording an event is an action without a kind.
  if (done.stream >= 0 && done.work.kind) {
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
  issued = now();
}

double EventTrace::seconds(std::size_t index) {
  float milliseconds = 0;
  FSDP_CHECK(c, cudaEventElapsedTime(&milliseconds, base, events[index]));
  return based + 1e-3 * static_cast<double>(milliseconds);
}

void EventTrace::end(std::int64_t step) {
  const double done = now();
  c.at("read the trace");
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action &action = actions[i];
    const double start = seconds(2 * i), end = seconds(2 * i + 1);
    // A stream that waits for another one does nothing.
    const bool waits = std::string_view(action.work.kind) == "wait";
    trace.track(static_cast<std::size_t>(action.stream))
        .add({action.name, action.work, action.bytes, start, end, waits ? 0 : end - start});
  }
  if (step)
    trace.step(step, started, issued, done);
}

} // namespace fsdp::rt
