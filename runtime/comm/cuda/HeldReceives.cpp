#include "runtime/comm/cuda/HeldReceives.h"

#include <utility>

namespace fsdp::rt {

void HeldReceives::add(cudaStream_t stream, std::function<void()> enqueue, cudaEvent_t event) {
  streams_[stream].push_back({std::move(enqueue), event, action_.load(std::memory_order_relaxed)});
}

void HeldReceives::hold(cudaStream_t stream, std::function<void()> enqueue) {
  add(stream, std::move(enqueue), nullptr);
}

void HeldReceives::record(cudaStream_t stream, cudaEvent_t event, std::function<void()> enqueue) {
  releaseUntil(event); // its record before this one
  if (!streams_.count(stream))
    return enqueue();
  add(stream, std::move(enqueue), event);
  events_[event] = stream;
}

template <class IsLast> void HeldReceives::release(cudaStream_t stream, IsLast isLast) {
  const auto found = streams_.find(stream);
  if (found == streams_.end())
    return;
  const char *current = action_.load(std::memory_order_relaxed);
  for (bool last = false; !last && !found->second.empty();) {
    const Entry entry = std::move(found->second.front());
    found->second.pop_front();
    last = isLast(entry);
    action_.store(entry.action, std::memory_order_relaxed);
    entry.enqueue();
    if (entry.event)
      events_.erase(entry.event);
  }
  action_.store(current, std::memory_order_relaxed);
  if (found->second.empty())
    streams_.erase(found);
}

void HeldReceives::releaseUntil(cudaEvent_t event) {
  if (events_.empty())
    return;
  if (const auto found = events_.find(event); found != events_.end())
    release(found->second, [event](const Entry &entry) { return entry.event == event; });
}

void HeldReceives::release(cudaStream_t stream) {
  if (!streams_.empty())
    release(stream, [](const Entry &) { return false; });
}

void HeldReceives::releaseAll() {
  while (!streams_.empty())
    release(streams_.begin()->first);
}

} // namespace fsdp::rt
