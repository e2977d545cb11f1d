//===- HeldReceives.h - receives that the host enqueues when they are needed ----===//
#ifndef FSDP_RUNTIME_COMM_CUDA_HELDRECEIVES_H
#define FSDP_RUNTIME_COMM_CUDA_HELDRECEIVES_H

#include <cuda_runtime.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>

namespace fsdp::rt {

/// Receives of one rank that its program has issued and its host has not yet enqueued.
///
/// [Note: held receives] Programs issue a receive ahead of the work that needs its message. CUDA
/// cannot enqueue a wait for an event that another host is still to record, so that the host of a
/// receiver in Loopback has to wait for that of the sender: at the receive, it would delay work for
/// which the sender itself waits. So the receive is held, and with it the events that its stream
/// records after it. The host enqueues them, and may wait then, where another stream waits for one
/// of these events, the same stream does anything but wait and receive, or the host waits for the
/// device. Work that was enqueued before does not depend on a receive that is held, so a wait of
/// its stream is enqueued at once. With NCCL a receive is an operation of its stream and needs none
/// of this, except in the first run of a plan: scratch memory grows then, for which the host waits
/// for the device, and with it for receives whose senders may wait for work that this host enqueues
/// later.
class HeldReceives {
public:
  /// `action`: the current one of the rank, for errors; that of a receive while it is enqueued.
  explicit HeldReceives(std::atomic<const char *> &action) : action_(action) {}

  bool isEmpty() const { return streams_.empty(); }
  /// Whether the next receive of `stream` is to be held: because of those before it, or because the
  /// plan runs for the first time.
  bool mustHold(cudaStream_t stream) const { return firstRun_ || streams_.count(stream); }
  void setFirstRun(bool firstRun) { firstRun_ = firstRun; }
  /// Holds a receive; `enqueue` enqueues it on `stream`, and throws if that fails.
  void hold(cudaStream_t stream, std::function<void()> enqueue);
  /// Records `event` on `stream` by `enqueue`, after the receives that are held.
  void record(cudaStream_t stream, cudaEvent_t event, std::function<void()> enqueue);
  /// Before another stream waits for `event`: enqueues the entries that are held, up to its record.
  void releaseUntil(cudaEvent_t event);
  /// Enqueues all that is held on `stream`, or on all streams.
  void release(cudaStream_t stream);
  void releaseAll();

private:
  struct Entry {
    std::function<void()> enqueue;
    cudaEvent_t event; ///< null for a receive
    const char *action;
  };
  void add(cudaStream_t stream, std::function<void()> enqueue, cudaEvent_t event);
  /// Enqueues entries until `isLast` returns true for one, which is enqueued too.
  template <class IsLast> void release(cudaStream_t stream, IsLast isLast);

  std::atomic<const char *> &action_;
  bool firstRun_ = false;
  std::map<cudaStream_t, std::deque<Entry>> streams_; ///< that hold something
  std::map<cudaEvent_t, cudaStream_t> events_;        ///< whose latest record is held
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_HELDRECEIVES_H
