#include "runtime/execution/Trace.h"

#include "base/AtomicFile.h"
#include "base/Error.h"
#include "base/WaitCounter.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <optional>
#include <string_view>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::size_t kActions = 1 << 15; // of a stream
constexpr std::size_t kSpans = 1 << 12;

std::string jsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string textOf(const Mark &mark) { return format("%s %" PRId64, mark.name, mark.number); }

bool isWait(const StreamAction &action) { return std::strcmp(action.work.kind, "wait") == 0; }

void addName(std::string &to, const char *key, int rank, int thread, const std::string &name) {
  to += format(R"({"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}},)"
               "\n",
               key, rank, thread, jsonString(name).c_str());
}

/// A number of bytes that changes over time.
class Counter {
public:
  explicit Counter(std::int64_t bytes) : bytes(bytes) {}
  void add(double start, double end, std::int64_t more) {
    changes.push_back({start, more});
    changes.push_back({end, -more});
  }
  /// Calls `put(time, bytes)` for each time at which it changes, in order.
  template <class Put> void forEach(const Put &put) {
    std::sort(changes.begin(), changes.end());
    for (std::size_t i = 0; i < changes.size(); ++i) {
      bytes += changes[i].second;
      if (i + 1 == changes.size() || changes[i + 1].first > changes[i].first)
        put(changes[i].first, bytes);
    }
  }

private:
  std::int64_t bytes;
  std::vector<std::pair<double, std::int64_t>> changes;
};

} // namespace

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Trace::Track::Track(std::string name) : name(std::move(name)), actions(kActions) {}

Trace::Trace(Communicator &world, const Program &program)
    : world(world), persistentBytes(program.persistentBytes),
      tracks(program.streams.begin(), program.streams.end()), spans(kSpans), runs(kSpans),
      positions(kSpans * program.streams.size()) {
  world.barrier();
  origin = now();
}

void Trace::begin(Mark mark, double time) { spans[spanCount % kSpans] = {mark, time, time, time}; }

void Trace::segment(const Segment &segment, const std::vector<std::uint64_t> &from, Mark mark) {
  const std::size_t run = runCount++ % kSpans;
  runs[run] = {&segment, mark};
  std::copy(from.begin(), from.end(), &positions[run * tracks.size()]);
}

void Trace::enqueued(double time) { spans[spanCount % kSpans].enqueued = time; }

void Trace::end(double time) { spans[spanCount++ % kSpans].end = time; }

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

double Trace::horizon() const {
  double time = spanCount > kSpans ? spans[spanCount % kSpans].begin : 0;
  for (const Track &track : tracks)
    if (track.count > kActions)
      time = std::max(time, track[track.count].start);
  return time;
}

std::pair<std::uint64_t, std::uint64_t> Trace::actionsOf(std::uint64_t run,
                                                         std::size_t stream) const {
  const auto position = [&](std::uint64_t of) {
    return positions[of % kSpans * tracks.size() + stream];
  };
  return {position(run), run + 1 < runCount ? position(run + 1) : tracks[stream].count};
}

bool Trace::knows(std::uint64_t run) const {
  for (std::size_t stream = 0; stream < tracks.size(); ++stream)
    if (!tracks[stream].knows(actionsOf(run, stream).first))
      return false;
  return true;
}

std::vector<Trace::Times> Trace::timesOf(std::uint64_t run) const {
  std::vector<Times> times(tracks.size());
  for (std::size_t stream = 0; stream < tracks.size(); ++stream) {
    const auto [begin, end] = actionsOf(run, stream);
    const char *latest = nullptr;
    for (std::uint64_t i = begin; i < end; ++i) {
      const StreamAction &action = tracks[stream][i];
      if (isWait(action))
        continue;
      // A product and its epilogue kernel are two actions of one launch.
      if (latest && std::strcmp(latest, action.name) == 0)
        times[stream].back().end = action.end;
      else
        times[stream].push_back({action.start, action.end});
      latest = action.name;
    }
  }
  return times;
}

//===----------------------------------------------------------------------===//
// As events
//===----------------------------------------------------------------------===//

std::string Trace::name(const StreamAction &action) const {
  if (action.awaited)
    return format("wait for %s: %s", action.awaited, action.name);
  return action.work.variant ? format("%s (%s)", action.name, action.work.variant) : action.name;
}

void Trace::addHost(std::string &to, double from) const {
  const auto add = [&](const std::string &name, const char *kind, double start, double end) {
    to += format(R"({"name":%s,"cat":"%s","ph":"X","pid":%d,"tid":0,"ts":%.3f,"dur":%.3f},)"
                 "\n",
                 jsonString(name).c_str(), kind, world.rank(), microseconds(start),
                 (end - start) * 1e6);
  };
  for (std::uint64_t i = spanCount > kSpans ? spanCount - kSpans : 0; i < spanCount; ++i) {
    const Span &span = spans[i % kSpans];
    if (span.begin < from)
      continue;
    add(textOf(span.mark), span.mark.name, span.begin, span.end);
    add("enqueue", "enqueue", span.begin, span.enqueued);
  }
}

void Trace::addTracks(std::string &to, double from) const {
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const Track &track = tracks[t];
    const int thread = static_cast<int>(t) + 1;
    addName(to, "thread_name", world.rank(), thread, track.name);
    for (std::uint64_t i = track.count > kActions ? track.count - kActions : 0; i < track.count;
         ++i) {
      const StreamAction &action = track[i];
      if (action.start < from)
        continue;
      to += format(R"({"name":%s,"cat":"%s","ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,)"
                   R"("tdur":%.3f,"args":{"bytes":%zu,"flops":%.17g}},)"
                   "\n",
                   jsonString(name(action)).c_str(), action.work.kind, world.rank(), thread,
                   microseconds(action.start), (action.end - action.start) * 1e6,
                   action.processor * 1e6, action.bytes, action.work.flops);
    }
  }
}

/// A span that may overlap others, from the first launch to the last.
void Trace::addSpan(std::string &to, const Mark &mark, const std::vector<Times> &times,
                    std::uint64_t id) const {
  double start = 0, end = 0;
  bool isEmpty = true;
  for (const Times &stream : times)
    for (const Time &launch : stream) {
      start = isEmpty ? launch.start : std::min(start, launch.start);
      end = isEmpty ? launch.end : std::max(end, launch.end);
      isEmpty = false;
    }
  for (const auto &[phase, time] : {std::make_pair('b', start), std::make_pair('e', end)})
    if (!isEmpty)
      to += format(
          R"({"name":%s,"cat":"%s","ph":"%c","id":%)" PRIu64 R"(,"pid":%d,"tid":0,"ts":%.3f},)"
          "\n",
          jsonString(textOf(mark)).c_str(), mark.name, phase, id, world.rank(), microseconds(time));
}

/// From the end of a gather to the begin of its first use. Both ends are within their events.
void Trace::addArrows(std::string &to, const SegmentTrace &plan, const Times &launches,
                      std::uint64_t &id) const {
  const auto add = [&](const char *phase, int launch, double time) {
    to += format(R"({"name":"gathered","cat":"gathered",%s,"id":%)" PRIu64
                 R"(,"pid":%d,"tid":%d,"ts":%.3f},)"
                 "\n",
                 phase, id, world.rank(), plan.streams[static_cast<std::size_t>(launch)] + 1,
                 microseconds(time));
  };
  constexpr double kRounded = 2e-9; // above the rounding of printed times
  for (const GatherUse &arrow : plan.uses) {
    const Time &gather = launches[static_cast<std::size_t>(arrow.gather)];
    const double arrives = launches[static_cast<std::size_t>(arrow.use)].start;
    const double leaves = std::max((gather.start + gather.end) / 2, gather.end - kRounded);
    ++id;
    add(R"("ph":"s")", arrow.gather, std::min(leaves, arrives));
    add(R"("ph":"f","bp":"e")", arrow.use, arrives);
  }
}

/// Spans, arrows and live bytes of the runs of segments.
void Trace::addRuns(std::string &to) const {
  std::uint64_t id = static_cast<std::uint64_t>(world.rank()) << 32; // unique to this rank
  Counter alive(persistentBytes);
  for (std::uint64_t run = runCount > kSpans ? runCount - kSpans : 0; run < runCount; ++run) {
    if (!knows(run))
      continue;
    const Run &made = runs[run % kSpans];
    const std::vector<Times> times = timesOf(run);
    if (made.mark.name)
      addSpan(to, made.mark, times, ++id);
    const SegmentTrace &plan = made.segment->trace;
    std::vector<std::size_t> next(tracks.size());
    Times launches;
    for (const std::uint8_t stream : plan.streams)
      if (next[stream] < times[stream].size())
        launches.push_back(times[stream][next[stream]++]);
    // Launches are identified by their order, so all must be recorded, and no others.
    bool isComplete = launches.size() == plan.streams.size();
    for (std::size_t stream = 0; stream < tracks.size(); ++stream)
      isComplete &= next[stream] == times[stream].size();
    if (!isComplete)
      continue;
    addArrows(to, plan, launches, id);
    for (const BufferLife &life : plan.lives) {
      const double start = launches[static_cast<std::size_t>(life.first)].start;
      alive.add(start, std::max(start, launches[static_cast<std::size_t>(life.last)].end),
                life.bytes);
    }
  }
  alive.forEach([&](double time, std::int64_t bytes) {
    to += format(
        R"({"name":"arena bytes alive","ph":"C","pid":%d,"tid":0,"ts":%.3f,"args":{"bytes":%)" PRId64
        "}},\n",
        world.rank(), microseconds(time), bytes);
  });
}

std::string Trace::events() const {
  const double from = horizon();
  std::string text;
  addName(text, "process_name", world.rank(), 0, "rank " + std::to_string(world.rank()));
  addName(text, "thread_name", world.rank(), 0, "host");
  addHost(text, from);
  addTracks(text, from);
  addRuns(text);
  return text;
}

void Trace::write(const OutputPath &path) {
  const std::string mine = events();
  std::string theirs;
  std::optional<AtomicFile> file;
  const auto put = [&](std::string_view text) { file->write(text.data(), text.size()); };
  if (world.rank() == 0) {
    file.emplace(path);
    put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  }
  for (int rank = 0; rank < world.size(); ++rank) {
    theirs = rank == world.rank() ? mine : std::string();
    std::uint64_t bytes = theirs.size();
    world.broadcast(&bytes, sizeof(bytes), rank);
    theirs.resize(bytes);
    world.broadcast(theirs.data(), bytes, rank);
    // The last event has no comma after it.
    if (file)
      put(std::string_view(theirs).substr(0, bytes - (rank + 1 == world.size() ? 2 : 0)));
  }
  if (file) {
    put("\n]}\n");
    file->commit();
  }
}

} // namespace fsdp::rt
