//===- Timeline.cpp - the predicted step as a trace -----------------------===//
// The same events as runtime/execution/Trace.cpp writes of a run, so that both can be laid over one
// another.
//
//===----------------------------------------------------------------------===//

#include "passes/prediction/Prediction.h"

#include "llvm/Support/JSON.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

using Event = llvm::json::Object;

/// The events of one process.
class Process {
public:
  Process(llvm::json::Array &events, int64_t number) : events(events), number(number) {}

  void add(Event event) {
    event["pid"] = number;
    events.push_back(std::move(event));
  }
  void name(StringRef what, int64_t thread, std::string name) {
    add(Event{{"name", what},
              {"ph", "M"},
              {"tid", thread},
              {"args", llvm::json::Object{{"name", std::move(name)}}}});
  }

private:
  llvm::json::Array &events;
  int64_t number;
};

} // namespace

/// Nanoseconds in a trace's microseconds.
static double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

/// From the end of each gather to the start of the first launch on another stream that reads its
/// result.
static void addArrows(Process &process, const schedule::Role &role, ArrayRef<cost::LaunchRun> runs,
                      int64_t &id) {
  std::map<int, const cost::LaunchRun *> gathered; // by buffer, until it is used
  auto launchOf = [&](const cost::LaunchRun &run) -> const schedule::Launch & {
    return role.segments[run.segment].launches[run.launch];
  };
  for (const cost::LaunchRun &run : runs) {
    const schedule::Launch &launch = launchOf(run);
    for (const schedule::Access &read : launch.reads) {
      auto found = gathered.find(read.buffer);
      if (found == gathered.end() || launchOf(*found->second).stream == launch.stream)
        continue;
      const cost::LaunchRun &gather = *found->second;
      ++id;
      const double leaves = std::max((gather.start + gather.end) / 2, gather.end - 2e-9);
      process.add(Event{{"name", "gathered"},
                        {"cat", "gathered"},
                        {"ph", "s"},
                        {"id", id},
                        {"tid", launchOf(gather).stream + 1},
                        {"ts", microseconds(std::min(leaves, run.start))}});
      process.add(Event{{"name", "gathered"},
                        {"cat", "gathered"},
                        {"ph", "f"},
                        {"bp", "e"},
                        {"id", id},
                        {"tid", launch.stream + 1},
                        {"ts", microseconds(run.start)}});
      gathered.erase(found);
    }
    if (launch.kind == AllGatherOp::getOperationName())
      for (const schedule::Access &write : launch.writes)
        gathered[write.buffer] = &run;
  }
}

std::string StepSimulation::writeTimeline() const {
  llvm::json::Array events;
  int64_t id = 0;
  for (auto [index, time] : llvm::enumerate(simulation.roles)) {
    const schedule::Role &role = schedule.problem.roles[index];
    Process process(events, static_cast<int64_t>(index));
    std::string name = "predicted";
    if (simulation.roles.size() > 1)
      name += " " + role.name;
    process.name("process_name", 0,
                 name + " on " + machine.name + " with " + machine.kernels + " kernels");
    process.name("thread_name", 0, "host");
    process.add(Event{{"name", "step 1"},
                      {"cat", "step"},
                      {"ph", "X"},
                      {"tid", 0},
                      {"ts", 0.0},
                      {"dur", microseconds(simulation.step)}});
    for (auto [stream, streamName] : llvm::enumerate(role.streams))
      process.name("thread_name", static_cast<int64_t>(stream) + 1, streamName);
    for (const cost::LaunchRun &run : time.runs) {
      const schedule::Launch &launch = role.segments[run.segment].launches[run.launch];
      const cost::CollectiveTime &call = times.collectives[index][run.segment][run.launch];
      llvm::json::Object args{{"bytes", launch.cost.bytesRead + launch.cost.bytesWritten},
                              {"flops", launch.cost.productFlops},
                              {"seconds_alone", times.seconds[index][run.segment][run.launch]}};
      if (launch.collective) {
        args["bus_bytes"] = call.busBytes;
        args["link_bytes_per_s"] = call.linkBandwidth;
        args["algorithm"] = call.algorithm;
      }
      const double duration = microseconds(run.end) - microseconds(run.start);
      process.add(Event{{"name", launch.name},
                        {"cat", StringRef(launch.kind).split('.').second},
                        {"ph", "X"},
                        {"tid", launch.stream + 1},
                        {"ts", microseconds(run.start)},
                        {"dur", duration},
                        {"tdur", duration},
                        {"args", std::move(args)}});
    }
    addArrows(process, role, time.runs, id);
    for (const auto &[when, bytes] : time.alive)
      process.add(Event{{"name", "arena bytes alive"},
                        {"ph", "C"},
                        {"tid", 0},
                        {"ts", microseconds(when)},
                        {"args", llvm::json::Object{{"bytes", bytes}}}});
  }
  // A line for each event, as a trace of a run has.
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  llvm::raw_string_ostream os(text);
  llvm::interleave(events, os, [&](const llvm::json::Value &event) { os << event; }, ",\n");
  os << "\n]}\n";
  return text;
}
