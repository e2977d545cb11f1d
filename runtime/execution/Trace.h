//===- Trace.h - timelines of launches --------------------------*- C++ -*-===//

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

/// Records the latest actions of each stream of a rank, in memory that is allocated by the
/// constructor, so that a traced step allocates nothing. The target adds the actions.
class Trace {
public:
  /// The actions of one stream. One thread at a time adds to it.
  class Track {
  public:
    explicit Track(std::string name);
    void add(const StreamAction &action) { actions[count++ % actions.size()] = action; }
    /// The number of added actions; not while another thread adds one.
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

  /// Begins a trace. Every rank constructs one at the same time; the clock is 0 when all have.
  /// `world` is over all ranks and outlives the trace. Every stream of `program` has a track.
  Trace(Communicator &world, const Program &program);
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  Track &track(std::size_t stream) { return tracks[stream]; }

  // Times are seconds of `now()`.

  /// The host begins the work `mark`: one or several segments.
  void begin(Mark mark, double time);
  /// It enqueues `segment` next: in each track, the actions after the first `positions[i]`. If the
  /// segment has its own `mark`, as a microbatch, the trace shows a span from the first to the last
  /// of its launches.
  void segment(const Segment &segment, const std::vector<std::uint64_t> &positions, Mark mark = {});
  /// All work is enqueued.
  void enqueued(double time);
  /// All work is done.
  void end(double time);

  /// Writes the actions that are still recorded completely to `path`, as trace events for Perfetto
  /// or chrome://tracing: a process for each rank, a thread for its host and each of its streams;
  /// `cat` is the kind of work, `tdur` the processor time, `args` has the bytes of a launch and its
  /// flops if known. A wait is named after the stream and the launch that it waits for. If the
  /// program has the tables (runtime/program/Program.h), arrows connect gathers with their
  /// first uses, and a counter shows the live bytes of the arena. Called by every rank, with idle
  /// streams; rank 0 writes.
  void write(const base::OutputPath &path);

private:
  /// A piece of work of the host.
  struct Span {
    Mark mark;
    double begin, enqueued, end;
  };
  /// An enqueued segment.
  struct Run {
    const Segment *segment;
    Mark mark;
  };
  struct Time {
    double start, end;
  };
  using Times = std::vector<Time>;

  /// The first time from which all actions of every track are recorded.
  double horizon() const;
  /// The range of actions on `stream` that run number `run` enqueued.
  std::pair<std::uint64_t, std::uint64_t> actionsOf(std::uint64_t run, std::size_t stream) const;
  bool knows(std::uint64_t run) const;
  /// The times of each launch of a run, by stream.
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
