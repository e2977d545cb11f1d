//===- Stream.h - streams and events with CUDA's meaning -------------------===//
//
// A stream is a thread that performs the actions pushed to it in order. The host thread pushes into
// a ring of fixed-size slots, without allocation, and waits only if the ring is full. An event is a
// position in a stream.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_DEVICE_STREAM_H
#define FSDP_RUNTIME_DEVICE_STREAM_H

#include "base/Failure.h"
#include "base/WaitCounter.h"
#include "runtime/device/Work.h"
#include "runtime/program/Limits.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

namespace fsdp::rt {

/// Bytes of closure (kernel, captures, one pointer for each slice) that a launch can hold.
constexpr std::size_t kClosureBytes = 448;
/// Whether `Action` is copied into a slot: a struct of values and pointers, of at most these bytes.
template <class Action>
constexpr bool isClosure =
    sizeof(Action) <= kClosureBytes && alignof(Action) <= 16 && __is_trivially_copyable(Action);
static_assert(sizeof(Gemm) + 2 * limits::kMaxKernelArguments * sizeof(void *) <= kClosureBytes,
              "a product and its epilogue kernel fit, with captured masks");

/// Called on a stream's thread after each action, when set.
struct StreamObserver {
  void (*notify)(void *user, const StreamAction &action) = nullptr;
  void *user = nullptr;
};

class FlightTrack;
class Stream;
class Workers;

/// The latest position of a stream that was recorded (none yet: nothing to wait for). Used by the
/// host thread only.
struct Event {
  Stream *stream = nullptr;
  std::uint64_t position = 0;
  const char *launch = nullptr; ///< the launch enqueued last, for traces
};

class Stream {
public:
  /// Starts the thread. `rank` is that of errors; the first error is stored in `failure`. Actions
  /// are recorded in `track`, if it is not null. `workers` help with them, if they are not null.
  Stream(std::string name, int rank, base::Failure &failure, FlightTrack *track = nullptr,
         Workers *workers = nullptr);
  /// Closes.
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  const std::string &name() const { return name_; }

  /// Enqueues `action()`; `launch` must outlive it (a literal). `work` and `bytes` are for
  /// observers. Throws `Aborted` when the job has failed.
  template <class Action>
  void push(const char *launch, const Action &action, Work work = {}, std::size_t bytes = 0) {
    static_assert(isClosure<Action>, "capture less, values and pointers only");
    push(
        launch, &action, sizeof(Action), [](void *closure) { (*static_cast<Action *>(closure))(); },
        work, bytes);
  }
  /// Enqueues `perform(closure)` of a copy of the `size` bytes of `closure` (`isClosure`).
  void push(const char *launch, const void *closure, std::size_t size, void (*perform)(void *),
            Work work, std::size_t bytes) {
    latestLaunch_ = launch;
    enqueue(launch, closure, size, perform, work, bytes, nullptr);
  }

  /// Sets `event` to the position after everything enqueued so far.
  void record(Event &event) { event = {this, enqueued(), latestLaunch_}; }
  /// Actions enqueued after this start when the stream of `event` has reached the position that
  /// `event` has *now*; later records of the event have no effect on this.
  void wait(const Event &event);
  /// Blocks the caller until everything enqueued is done. Throws `Aborted` when the job has failed.
  void synchronize() { synchronize(enqueued()); }
  /// The same for the first `position` of it.
  void synchronize(std::uint64_t position);

  std::uint64_t enqueued() const { return enqueued_.value(); }
  std::uint64_t completed() const { return completed_.value(); }
  /// Performs no more actions after the current one; a current wait ends soon.
  void stop();
  /// Stops and joins the thread. Streams that may wait for each other must all be closed before the
  /// first of them is destroyed.
  void close();
  /// Set while the stream is idle.
  void observe(StreamObserver observer) { observer_ = observer; }

private:
  struct Slot {
    void (*perform)(void *);
    const char *launch;
    const Stream *awaited; ///< for a wait: the stream that it waits for
    Work work;
    std::size_t bytes;
    alignas(16) unsigned char closure[kClosureBytes];
  };
  static constexpr std::size_t kSlots = 512;

  void enqueue(const char *launch, const void *closure, std::size_t size, void (*perform)(void *),
               Work work, std::size_t bytes, const Stream *awaited);

  Slot &acquire();
  void await(base::WaitCounter &progress, std::uint64_t target);
  void run();
  void perform(Slot &slot);

  std::string name_;
  int rank_;
  base::Failure &failure_;
  FlightTrack *track_;
  Workers *workers_;
  StreamObserver observer_;
  const char *latestLaunch_ = "start"; ///< the launch enqueued last
  std::unique_ptr<Slot[]> slots_;
  base::WaitCounter enqueued_, completed_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_STREAM_H
