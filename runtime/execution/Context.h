//===- Context.h - the context of a generated program ---------------------===//
//
// One per rank: the arena, the streams, the events, the communicators. With -DFSDP_RECORD the same
// source runs against the recording one (Record.h) instead.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CONTEXT_H
#define FSDP_RUNTIME_EXECUTION_CONTEXT_H

#ifdef FSDP_RECORD
#include "runtime/execution/Record.h"
#else

#include "runtime/device/InputSource.h"
#include "runtime/device/Stream.h"
#include "runtime/device/Workers.h"
#include "runtime/job/Job.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"

#include <deque>
#include <memory>
#include <vector>

namespace fsdp::rt {

/// Host side of one rank. Functions are called from the host thread unless documented otherwise.
class Context {
public:
  /// Starts the streams' threads. `events`: how many event numbers the program uses.
  Context(Job &job, Table<const char *> streams, int events);
  ~Context();

  Job &job() const { return job_; }
  int rank() const { return job_.rank(); }
  /// Threads that compute at one kernel, at most.
  int threads() const { return static_cast<int>(workers_.threads()); }
  int worldSize() const { return job_.worldSize(); }
  const Mesh &mesh() const { return job_.mesh(); }
  /// This rank's coordinate on a mesh axis.
  int coordinate(int axis) const { return mesh().coordinate(rank(), axis); }

  std::byte *base() const { return base_; }
  /// Address of a slice. Reading it on the host needs synchronize() first.
  template <class T> T *data(ArenaSpan<T> slice) const {
    return reinterpret_cast<T *>(base_ + slice.offset);
  }

  Stream &stream(int index) const { return *streams_[index]; }
  int streamCount() const { return static_cast<int>(streams_.size()); }
  Event &event(int index) { return events_[index]; }
  /// Communicator `index` for use by `stream`; without a stream, to query its rank and size. Error:
  /// one of transfers that another stream uses.
  Communicator &comm(int index, int stream = 0);
  /// This rank's index in communicator `index`.
  int rankIn(int index) const { return communicators_[index * streams_.size()]->rank(); }
  /// Over all ranks; for the host thread (start, export, end), never on a stream.
  Communicator &world() const { return *communicators_.back(); }

  /// Waits for every stream. Throws `Aborted` when the job has failed.
  void synchronize();
  /// The actions enqueued on `stream` so far write outputs.
  void leftOutput(int stream) { streams_[stream]->record(outputEvents_[stream]); }
  /// Waits for the actions that write outputs. Throws as synchronize().
  void awaitOutputs();

  /// End of the highest range that any launch so far has touched, in bytes.
  std::size_t peakBytes() const { return peakBytes_; }
  /// Performs `launch`: writes the addresses of the ranges, those read and then those written, to
  /// `addresses`, and counts them as touched; then pushes the `size` bytes of `closure`, which
  /// `addresses` are part of, to a stream.
  void enqueue(int stream, const char *name, Table<ByteRange> read, Table<ByteRange> written,
               void **addresses, const void *closure, std::size_t size, void (*perform)(void *),
               Work work);
  /// Calls the observer after every action on a stream. Waits for the stream first.
  void observe(int stream, StreamObserver observer);

  /// The source of `load_input`, called on a stream's thread. Set before a plan is enqueued.
  InputSource *inputs = nullptr;
  /// The numbers that `output` writes, by index. Set by the driver before the first step.
  float *outputs = nullptr;
  /// The sums and weights that it writes, likewise.
  WeightedSum *sums = nullptr;
  /// See ShardOf; likewise.
  const UpdateSetting *updateSettings = nullptr;

private:
  Job &job_;
  std::byte *base_;
  std::size_t peakBytes_ = 0;
  std::vector<Event> events_;
  std::vector<Event> outputEvents_; ///< by stream
  /// One for each stream; of transfers one alone. Then that over all ranks.
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<int> streamOf_; ///< of communicators of transfers, once used
  Workers workers_;           ///< help the streams
  std::vector<std::unique_ptr<Stream>> streams_;
};

} // namespace fsdp::rt

#endif // FSDP_RECORD
#endif // FSDP_RUNTIME_EXECUTION_CONTEXT_H
