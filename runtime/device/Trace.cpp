//===- Trace.cpp ----------------------------------------------------------===//

#include "runtime/device/Trace.h"

#include "runtime/files/AtomicFile.h"
#include "runtime/Error.h"
#include "runtime/device/WaitCounter.h"

#include <algorithm>
#include <cinttypes>
#include <optional>
#include <string_view>

namespace fsdp::rt {

namespace {

constexpr std::size_t kActions = 1 << 15; // of a stream
constexpr std::size_t kSteps = 1 << 12;

/// The characters of a JSON string.
std::string quoted(const char *text) {
  std::string result = "\"";
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\')
      result += '\\';
    if (static_cast<unsigned char>(*text) >= 0x20)
      result += *text;
  }
  return result + '"';
}

void addName(std::string &to, const char *what, int rank, int thread, const std::string &name) {
  to += format(R"({"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}},)"
               "\n",
               what, rank, thread, quoted(name.c_str()).c_str());
}

} // namespace

Trace::Track::Track(std::string name) : name(std::move(name)), actions(kActions) {}

Trace::Trace(Communicator &world, const std::vector<std::string> &streams)
    : world(world), tracks(streams.begin(), streams.end()), steps(kSteps) {
  world.barrier();
  origin = now();
}

void Trace::step(std::int64_t number, double begin, double enqueued, double end) {
  steps[stepCount++ % kSteps] = {number, begin, enqueued, end};
}

double Trace::horizon() const {
  double time = stepCount > kSteps ? steps[stepCount % kSteps].begin : 0;
  for (const Track &track : tracks)
    if (track.count > kActions)
      time = std::max(time, track.actions[track.count % kActions].start);
  return time;
}

std::string Trace::events() const {
  const int rank = world.rank();
  const double from = horizon();
  // Times are microseconds.
  const auto span = [&](const char *name, const char *kind, int thread, double start, double end) {
    return format(R"({"name":%s,"cat":"%s","ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f)",
                  quoted(name).c_str(), kind, rank, thread, (start - origin) * 1e6,
                  (end - start) * 1e6);
  };
  std::string text;
  addName(text, "process_name", rank, 0, "rank " + std::to_string(rank));
  addName(text, "thread_name", rank, 0, "host");
  for (std::uint64_t i = stepCount > kSteps ? stepCount - kSteps : 0; i < stepCount; ++i) {
    const Step &step = steps[i % kSteps];
    if (step.begin < from)
      continue;
    const std::string name = format("step %" PRId64, step.number);
    text += span(name.c_str(), "step", 0, step.begin, step.end) + "},\n";
    text += span("enqueue", "enqueue", 0, step.begin, step.enqueued) + "},\n";
  }
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const Track &track = tracks[t];
    const int thread = static_cast<int>(t) + 1;
    addName(text, "thread_name", rank, thread, track.name);
    for (std::uint64_t i = track.count > kActions ? track.count - kActions : 0; i < track.count;
         ++i) {
      const StreamAction &action = track.actions[i % kActions];
      if (action.start < from)
        continue;
      text += span(action.name, action.work.kind, thread, action.start, action.end);
      text += format(R"(,"tdur":%.3f,"args":{"bytes":%zu,"flops":%.17g}},)"
                     "\n",
                     action.processor * 1e6, action.bytes, action.work.flops);
    }
  }
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
    // The last event has no comma behind it.
    if (file)
      put(std::string_view(theirs).substr(0, bytes - (rank + 1 == world.size() ? 2 : 0)));
  }
  if (file) {
    put("\n]}\n");
    file->commit();
  }
}

} // namespace fsdp::rt
