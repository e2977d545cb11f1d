//===- Trace.h - when each launch ran ---------------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_EXECUTION_TRACE_H
#define FSDP_RUNTIME_EXECUTION_TRACE_H

#include "base/OutputPath.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Work.h"
#include "runtime/program/Program.h"

#include <cstdint>
#include <string>
#include <utility>
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
    /// How many actions it was given; not while another thread adds to it.
    std::uint64_t added() const { return count; }

  private:
    friend Trace;
    bool knows(std::uint64_t action) const { return action + actions.size() >= count; }
    const StreamAction &operator[](std::uint64_t action) const {
      return actions[action % actions.size()];
    }

    std::string name;
    std::vector<StreamAction> actions; ///< a ring
    std::uint64_t count = 0;
  };

  /// Begins. Every rank makes its own at the same time: a clock starts at 0 when all have. `world`
  /// outlives the trace and is over all ranks. Every stream of `program` has a track.
  Trace(Communicator &world, const Program &program);
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  Track &track(std::size_t stream) { return tracks[stream]; }

  // Times are seconds of `now()`.

  /// The host begins with what it calls `mark`: one or several segments.
  void begin(Mark mark, double time);
  /// It enqueues `segment` next: of each track, what follows its first `positions[i]` actions. The
  /// trace shows a span from the first to the last of its launches where it has a mark of its own,
  /// as a microbatch.
  void segment(const Segment &segment, const std::vector<std::uint64_t> &positions, Mark mark = {});
  /// All is enqueued.
  void enqueued(double time);
  /// All is done.
  void end(double time);

  /// Writes what is still known in full to `path`, as trace events for Perfetto or
  /// chrome://tracing: a process for each rank, a thread for its host and each of its streams;
  /// `cat` is the kind of work, `tdur` the time worked, `args` has the bytes that a launch names
  /// and its flops where they are known. A wait is named after the stream and the launch that it
  /// waits for. Where the program has the tables (runtime/program/SegmentTrace.h), arrows lead from
  /// gathers to their first uses, and a counter has the bytes of the arena that are alive. Every
  /// rank calls it, with idle streams; rank 0 writes.
  void write(const base::OutputPath &path);

private:
  /// What the host did.
  struct Span {
    Mark mark;
    double begin, enqueued, end;
  };
  /// A segment that it enqueued.
  struct Run {
    const Segment *segment;
    Mark mark;
  };
  struct Time {
    double start, end;
  };
  using Times = std::vector<Time>;

  /// The first moment from which every track knows everything.
  double horizon() const;
  /// The range of actions on `stream` that run number `run` enqueued.
  std::pair<std::uint64_t, std::uint64_t> actionsOf(std::uint64_t run, std::size_t stream) const;
  bool knows(std::uint64_t run) const;
  /// When each launch of a run ran, by stream.
  std::vector<Times> timesOf(std::uint64_t run) const;
  std::string name(const StreamAction &action) const;

  std::string events() const;
  void addHost(std::string &to, double from) const;
  void addTracks(std::string &to, double from) const;
  void addRuns(std::string &to) const;
  void addSpan(std::string &to, const Mark &mark, const std::vector<Times> &times,
               std::uint64_t id) const;
  void addArrows(std::string &to, const SegmentTrace &plan, const Times &launches,
                 std::uint64_t &id) const;
  double microseconds(double time) const { return (time - origin) * 1e6; }

  Communicator &world;
  double origin;
  std::int64_t persistentBytes;
  std::vector<Track> tracks;
  // Rings.
  std::vector<Span> spans;
  std::uint64_t spanCount = 0;
  std::vector<Run> runs;
  std::vector<std::uint64_t> positions; ///< of each run, one for each track
  std::uint64_t runCount = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_TRACE_H
