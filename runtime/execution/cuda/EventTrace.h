//===- EventTrace.h - times of the actions of a device ----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_EXECUTION_CUDA_EVENTTRACE_H
#define FSDP_RUNTIME_EXECUTION_CUDA_EVENTTRACE_H

#include "runtime/execution/Trace.h"
#include "runtime/execution/cuda/Context.h"

#include <cstdint>
#include <map>
#include <vector>

namespace fsdp::rt {

/// Times each action of one rank by a pair of events around it on its stream, relative to one event
/// that is recorded when the host begins, and reads them when all work is done. The times are those
/// of the device: an action that is enqueued before the stream is idle includes no wait for the
/// host. An action ends when the next one is issued; one with a product and an epilogue kernel is
/// two.
class EventTrace final : public ActionObserver {
public:
  /// Begins with idle streams. Every rank constructs one at the same time.
  explicit EventTrace(Context &c);
  /// The device must be idle.
  ~EventTrace() override;
  EventTrace(const EventTrace &) = delete;
  EventTrace &operator=(const EventTrace &) = delete;

  /// The host begins with `mark`, on idle streams.
  void begin(Mark mark);
  /// `segment` is issued next; a trace names it where it has a `mark`.
  void segment(const Segment &segment, Mark mark = {});
  /// All work is issued.
  void enqueued();
  /// All work is done.
  void end();

  void next(const char *name) override;
  void on(int stream) override;
  void touch(std::size_t bytes) override {
    split();
    current.bytes += bytes;
  }

  void write(const base::OutputPath &path) { trace.write(path); }

private:
  static constexpr char kUnsaid[] = "fused"; ///< nothing has been noted

  struct Action {
    const char *name = nullptr;
    int stream = -1;
    std::size_t bytes = 0;
    Work work{kUnsaid};
    cudaEvent_t event = nullptr; ///< that it records or waits for
    int awaited = -1;            ///< the stream that it waits for
  };

  /// The launch before an event.
  struct Recorded {
    const char *name = nullptr;
    int stream = -1;
  };

  /// A segment, and how many actions were issued before it.
  struct Issued {
    const Segment *segment;
    Mark mark;
    std::size_t first;
  };

  /// If the current action has noted a launch, the next one is a separate action.
  void split() {
    if (current.stream >= 0 && current.work.kind != kUnsaid)
      next(current.name);
  }

  cudaEvent_t event(std::size_t index);
  /// Seconds from `base` to the event.
  double elapsed(std::size_t index);

  Context &c;
  Trace trace;
  Action current;
  std::vector<Action> actions;      ///< since `begin`
  std::vector<Issued> segments;     ///< since `begin`
  std::vector<const char *> latest; ///< the latest launch of each stream
  std::map<cudaEvent_t, Recorded> recorded;
  std::vector<cudaEvent_t> events; ///< of action i: 2 i at its start and 2 i + 1 at its end
  cudaEvent_t base = nullptr;      ///< at `begin`
  double based = 0;                ///< its time in seconds of the host
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_EVENTTRACE_H
