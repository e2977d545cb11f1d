// The trace of actions with known times: names, arrows, spans and the counter.
#include "runtime/execution/Trace.h"
#include "runtime/job/Bootstrap.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr MeshAxis kAxes[] = {{"fsdp", 1}};
constexpr const char *kStreams[] = {"gather", "compute"};
enum : std::uint8_t { kGather, kCompute };

// Launches: 0 gathers 100 bytes, 1 computes 30 from them, 2 works on these in place, 3 uses them.
constexpr std::uint8_t kOrder[] = {kGather, kCompute, kCompute, kCompute};
constexpr BufferLife kLives[] = {{100, 0, 1}, {30, 1, 3}, {5, 2, 2}};
constexpr GatherUse kUses[] = {{0, 1}};

struct TraceTest : testing::Test {
  TraceTest() {
    program.streams = kStreams;
    program.persistentBytes = 1000;
    planned.trace = {kOrder, kLives, kUses};
  }

  /// Lets `body` fill a trace and returns the events that it writes. Times are in microseconds.
  nlohmann::json events(const std::function<void(Trace &)> &body) {
    TemporaryFile file;
    const int status = runRanks(Mesh(Table<MeshAxis>(kAxes)), JobOptions(), [&](Job &job) {
      std::unique_ptr<Communicator> world = job.communicator(0);
      Trace trace(*world, program);
      body(trace);
      trace.write(OutputPath(file.path));
      return 0;
    });
    EXPECT_EQ(status, 0);
    return nlohmann::json::parse(file.read())["traceEvents"];
  }

  static StreamAction action(const char *name, double start, double end, const char *kind = "fused",
                             const char *awaited = nullptr) {
    return {name, {kind, 0}, 0, start * 1e-6, end * 1e-6, 0, awaited};
  }

  /// One run of `planned` that begins at `time` and takes 100.
  static void addRun(Trace &trace, double time) {
    trace.track(kGather).add(action("u all_gather", time, time + 20, "all_gather"));
    trace.track(kCompute).add(action("u all_gather", time, time + 25, "wait", "gather"));
    trace.track(kCompute).add(action("product", time + 30, time + 40, "gemm"));
    trace.track(kCompute).add(
        action("product", time + 40, time + 50)); // the kernel that goes on with it
    trace.track(kCompute).add(action("negate", time + 50, time + 60));
    trace.track(kCompute).add(action("use", time + 70, time + 100));
  }

  /// The results of `of` for the events of a phase.
  template <class Of>
  static auto select(const nlohmann::json &events, const std::string &phase, const Of &of) {
    std::vector<decltype(of(events[0]))> found;
    for (const auto &event : events)
      if (event["ph"] == phase)
        found.push_back(of(event));
    return found;
  }

  Program program{};
  Segment planned{"train", nullptr};
};

TEST_F(TraceTest, ShowsThePlanOfASegment) {
  double zero = 0;
  const auto found = events([&](Trace &trace) {
    trace.begin({"step", 7}, 0);
    trace.segment(planned, {0, 0});
    trace.enqueued(3e-6);
    addRun(trace, 10);
    trace.end(200e-6);
  });
  std::map<std::string, std::pair<double, double>> spans;
  for (const auto &event : found)
    if (event["ph"] == "X") {
      spans[event["name"]] = {event["ts"], event["dur"]};
      if (event["name"] == "step 7")
        zero = event["ts"];
      EXPECT_EQ(event["pid"], 0);
    }
  EXPECT_NEAR(spans["step 7"].second, 200, 0.01);
  EXPECT_NEAR(spans["enqueue"].second, 3, 0.01);
  ASSERT_TRUE(spans.count("wait for gather: u all_gather")) << found;
  EXPECT_NEAR(spans["wait for gather: u all_gather"].second, 25, 0.01);

  // The arrow leaves at the end of the gather and arrives at the begin of its use.
  const auto numbers = [&](const auto &event) {
    return std::make_tuple(event["id"].template get<int>(), event["tid"].template get<int>(),
                           int(std::lround(event["ts"].template get<double>() - zero)));
  };
  using Rows = std::vector<std::tuple<int, int, int>>;
  EXPECT_EQ(select(found, "s", numbers), (Rows{{1, kGather + 1, 30}}));
  EXPECT_EQ(select(found, "f", numbers), (Rows{{1, kCompute + 1, 40}}));
  for (const auto &event : found)
    if (event["ph"] == "s")
      EXPECT_LT(event["ts"].get<double>(), zero + 30) << "it is bound to an event that it lies in";

  // The gathered bytes live until the end of the product's kernel.
  const auto bytes = [&](const auto &event) {
    return std::make_pair(int(std::lround(event["ts"].template get<double>() - zero)),
                          event["args"]["bytes"].template get<int>());
  };
  EXPECT_EQ(select(found, "C", bytes),
            (std::vector<std::pair<int, int>>{
                {10, 1100}, {40, 1130}, {60, 1035}, {70, 1030}, {110, 1000}}));
  EXPECT_TRUE(select(found, "b", bytes).empty()) << "no segment has a mark";
}

TEST_F(TraceTest, SegmentsWithMarksAreSpansThatMayOverlap) {
  const auto found = events([&](Trace &trace) {
    trace.begin({"step", 1}, 0);
    trace.segment(planned, {0, 0}, {"microbatch", 1});
    trace.segment(planned, {1, 5}, {"microbatch", 2});
    trace.enqueued(1e-6);
    addRun(trace, 0);
    addRun(trace, 90); // begins before the last launch of the first one ends
    trace.end(200e-6);
  });
  const auto name = [](const auto &event) { return event["name"].template get<std::string>(); };
  const auto time = [&](const auto &event) { return event["ts"].template get<double>(); };
  const auto id = [&](const auto &event) { return event["id"].template get<int>(); };
  EXPECT_EQ(select(found, "b", name), (std::vector<std::string>{"microbatch 1", "microbatch 2"}));
  EXPECT_EQ(select(found, "b", id), select(found, "e", id));
  const auto begins = select(found, "b", time), ends = select(found, "e", time);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_NEAR(ends[0] - begins[0], 100, 0.01);
  EXPECT_NEAR(ends[1] - begins[0], 190, 0.01);
  EXPECT_LT(begins[1], ends[0]);
  // Each run has its arrow, and bytes of both count while both are under way.
  EXPECT_EQ(select(found, "s", id).size(), 2u);
  EXPECT_NE(select(found, "s", id)[0], select(found, "s", id)[1]);
  EXPECT_EQ(select(found, "s", id), select(found, "f", id));
  int most = 0;
  for (int bytes : select(found, "C", [](const auto &event) {
         return event["args"]["bytes"].template get<int>();
       }))
    most = std::max(most, bytes);
  EXPECT_EQ(most, 1000 + 30 + 100);
}

TEST_F(TraceTest, ARunThatFailedHasNoArrows) {
  const auto found = events([&](Trace &trace) {
    trace.begin({"step", 1}, 0);
    trace.segment(planned, {0, 0});
    trace.track(kGather).add(action("u all_gather", 0, 20));
    trace.track(kCompute).add(action("product", 30, 40));
    trace.end(200e-6);
  });
  for (const auto &event : found) {
    EXPECT_NE(event["ph"], "s");
    EXPECT_NE(event["ph"], "C");
  }
}

TEST_F(TraceTest, ASegmentWithoutTablesHasItsActionsOnly) {
  const Segment plain{"train", nullptr};
  const auto found = events([&](Trace &trace) {
    trace.begin({"step", 1}, 0);
    trace.segment(plain, {0, 0});
    addRun(trace, 0);
    trace.end(200e-6);
  });
  const auto phase = [](const auto &event) { return event["ph"].template get<std::string>(); };
  EXPECT_EQ(select(found, "X", phase).size(), 2u + 6u);
  EXPECT_TRUE(select(found, "C", phase).empty());
}

TEST_F(TraceTest, DropsWholeRunsAndContinues) {
  constexpr int kRuns = 10000; // five actions each of compute, of which 32768 are kept
  const auto found = events([&](Trace &trace) {
    for (int run = 0; run < kRuns; ++run) {
      trace.begin({run % 2 ? "evaluate" : "step", run}, run * 100e-6);
      trace.segment(planned, {std::uint64_t(run), 5 * std::uint64_t(run)});
      trace.enqueued(run * 100e-6);
      addRun(trace, run * 100);
      trace.end((run + 1) * 100e-6);
    }
  });
  const auto name = [](const auto &event) { return event["name"].template get<std::string>(); };
  std::map<std::string, int> count;
  double last = -1e30;
  for (const auto &event : found) {
    ++count[event["ph"]];
    if (event["ph"] == "C") {
      EXPECT_GE(event["ts"].get<double>(), last);
      last = event["ts"];
      EXPECT_GE(event["args"]["bytes"].get<int>(), 1000);
      EXPECT_LE(event["args"]["bytes"].get<int>(), 1130);
    }
  }
  EXPECT_GT(count["s"], 4000);
  EXPECT_LE(count["s"], 32768 / 5 + 1);
  EXPECT_EQ(count["s"], count["f"]);
  EXPECT_EQ(select(found, "X", name).back(), "use");
  const auto names = select(found, "X", name);
  EXPECT_TRUE(std::count(names.begin(), names.end(), "evaluate 9999"));
  EXPECT_TRUE(std::count(names.begin(), names.end(), "step 9998"));
  EXPECT_FALSE(std::count(names.begin(), names.end(), "step 0"));
}

} // namespace
