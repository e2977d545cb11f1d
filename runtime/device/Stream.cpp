#include "runtime/device/Stream.h"
#include "base/Thread.h"
#include "runtime/device/FlightTrack.h"
#include "runtime/device/Workers.h"

#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {
// How often a thread that waits looks whether the job has failed.
constexpr double kPollInterval = 0.05;
} // namespace

Stream::Stream(std::string name, int rank, Failure &failure, FlightTrack *track, Workers *workers)
    : name_(std::move(name)), rank_(rank), failure_(failure), track_(track), workers_(workers),
      slots_(new Slot[kSlots]()) {
  if (track_)
    track_->label(name_.c_str());
  thread_ = startThread("stream '" + name_ + "'", [this] { run(); });
}

Stream::~Stream() { close(); }

void Stream::stop() {
  if (!stop_.exchange(true))
    enqueued_.advance(); // wakes the thread, which checks stop_ first
}

void Stream::close() {
  stop();
  if (thread_.joinable())
    thread_.join();
}

// Waits, on the host thread or a stream's thread, for a stream to reach a position.
void Stream::await(WaitCounter &progress, std::uint64_t target) {
  while (!progress.waitFor(target, kPollInterval)) {
    failure_.check();
    if (stop_.load(std::memory_order_relaxed))
      throw Aborted("the stream is closing");
  }
}

void Stream::enqueue(const char *launch, const void *closure, std::size_t size,
                     void (*perform)(void *), Work work, std::size_t bytes, const Stream *awaited) {
  Slot &slot = acquire();
  slot.launch = launch;
  slot.awaited = awaited;
  slot.work = work;
  slot.bytes = bytes;
  slot.perform = perform;
  std::memcpy(slot.closure, closure, size);
  enqueued_.advance();
}

Stream::Slot &Stream::acquire() {
  failure_.check();
  std::uint64_t next = enqueued();
  if (next >= kSlots)
    await(completed_, next - kSlots + 1);
  return slots_[next % kSlots];
}

void Stream::wait(const Event &event) {
  if (!event.stream || event.stream == this)
    return; // nothing recorded, or the same stream
  WaitCounter *progress = &event.stream->completed_;
  struct Wait {
    Stream *stream;
    WaitCounter *progress;
    std::uint64_t target;
  } wait{this, progress, event.position};
  enqueue(
      event.launch, &wait, sizeof(wait),
      [](void *closure) {
        const Wait &at = *static_cast<Wait *>(closure);
        at.stream->await(*at.progress, at.target);
      },
      Work{"wait", 0}, 0, event.stream);
}

void Stream::synchronize(std::uint64_t position) {
  await(completed_, position);
  failure_.check();
}

void Stream::run() {
  Workers::setOfThread(workers_);
  for (std::uint64_t done = 0;; ++done) {
    while (!enqueued_.waitFor(done + 1, 1.0)) {
    }
    if (stop_.load())
      return;
    perform(slots_[done % kSlots]);
    completed_.advance();
  }
}

// After a failure the remaining actions are skipped, so that no thread waits for them.
void Stream::perform(Slot &slot) {
  if (failure_.raised())
    return;
  const double start = observer_.notify ? now() : 0;
  const auto worked = [] { return processorSeconds() + Workers::helpedSeconds(); };
  const double ran = observer_.notify ? worked() : 0;
  try {
    const std::uint64_t kept =
        !track_        ? 0
        : slot.awaited ? track_->begin(FlightAction::Wait, slot.launch, slot.awaited->name_.c_str())
                       : track_->begin(FlightAction::Launch, slot.launch);
    slot.perform(slot.closure);
    // An action that throws, or ends because the job has failed, stays unfinished.
    if (track_ && !failure_.raised())
      track_->end(kept);
  } catch (const Aborted &) {
    return;
  } catch (const Error &error) {
    failure_.raise(error.at(rank_, slot.launch));
    return;
  } catch (const std::exception &error) {
    failure_.raise(Error(error.what()).at(rank_, slot.launch));
    return;
  } catch (...) {
    failure_.raise(Error("an exception of unknown type").at(rank_, slot.launch));
    return;
  }
  if (observer_.notify)
    observer_.notify(observer_.user,
                     {slot.launch, slot.work, slot.bytes, start, now(), worked() - ran,
                      slot.awaited ? slot.awaited->name_.c_str() : nullptr});
}

} // namespace fsdp::rt
