//===- Trace.h - when each launch ran ---------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DEVICE_TRACE_H
#define FSDP_RUNTIME_DEVICE_TRACE_H

#include "runtime/comm/Communicator.h"
#include "runtime/files/OutputPath.h"
#include "runtime/device/Work.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Keeps the latest actions of each stream of a rank, in memory that is taken at once: a step that
/// is traced is still a step that allocates nothing. Who notices what a stream does is the target's
/// business.
class Trace {
public:
  /// The actions of one stream. One thread at a time adds to it.
  class Track {
  public:
    explicit Track(std::string name);
    void add(const StreamAction &action) { actions[count++ % actions.size()] = action; }

  private:
    friend Trace;
    std::string name;
    std::vector<StreamAction> actions; ///< a ring
    std::uint64_t count = 0;
  };

  /// Begins. Every rank makes its own at the same time: a clock starts at 0 when all have. `world`
  /// outlives the trace and is over all ranks.
  Trace(Communicator &world, const std::vector<std::string> &streams);
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  Track &track(std::size_t stream) { return tracks[stream]; }

  /// Notes a step of the host: enqueued from `begin` to `enqueued`, done at `end`, in seconds of
  /// `now()`.
  void step(std::int64_t number, double begin, double enqueued, double end);

  /// Writes the steps that are still known in full to `path`, as trace events for Perfetto or
  /// chrome://tracing: a process for each rank, a thread for its host and each of its streams;
  /// `cat` is the kind of work, `tdur` the time worked, `args` has the bytes that a launch names and
  /// its flops where they are known. Every rank calls it, with idle streams; rank 0 writes.
  void write(const OutputPath &path);

private:
  struct Step {
    std::int64_t number;
    double begin, enqueued, end;
  };

  /// The first moment from which every track knows everything.
  double horizon() const;
  std::string events() const;

  Communicator &world;
  double origin;
  std::vector<Track> tracks;
  std::vector<Step> steps; ///< a ring
  std::uint64_t stepCount = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_TRACE_H
