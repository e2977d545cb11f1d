//===- CyclicCheckerTest.cpp - schedules over the segment graph -----------===//
//
// Each right schedule, and twins in which one thing is wrong.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Checker.h"
#include "test/unit/passes/CyclicProblems.h"
#include "test/unit/passes/Findings.h"

#include <gtest/gtest.h>

using namespace mlir::fsdp::schedule;

namespace {

struct Twin {
  const char *what;
  void (*breakIt)(Problem &);
  Fault fault;
  const char *message;
};

void expectRefused(Problem (*makeRight)(), const std::vector<Twin> &twins) {
  EXPECT_EQ(describeAll(checkSchedule(makeRight())), "");
  for (const Twin &twin : twins) {
    Problem problem = makeRight();
    twin.breakIt(problem);
    std::vector<Finding> findings = checkSchedule(problem);
    bool named = false;
    for (const Finding &finding : findings)
      named |= finding.fault == twin.fault && finding.message == twin.message;
    EXPECT_TRUE(named) << twin.what << "\nexpected: " << twin.message
                       << "\ngot: " << describeAll(findings);
  }
}

TEST(CyclicCheckerTest, Accumulation) {
  expectRefused(
      makeAccumulation,
      {{"the gather of the next step does not wait for the update",
        [](Problem &p) { launchOf(p, "first", "gather").awaits = {1}; }, Fault::race,
        "'update' writes bytes [0, 64) of 'weights' while 'gather' may read them; let the second "
        "wait "
        "for an event that the first, of the run of segment 'last' before, records"},
       {"the update does not say when it is complete",
        [](Problem &p) { launchOf(p, "last", "update").records.clear(); }, Fault::race,
        "'update' writes bytes [0, 64) of 'weights' while 'gather' may read them; let the second "
        "wait "
        "for an event that the first, of the run of segment 'last' before, records"},
       {"a gather into the bytes that the segment before still reads",
        [](Problem &p) { launchOf(p, "middle", "gather").awaits = {0}; }, Fault::overlap,
        "'whole of first' and 'whole of middle' share bytes [192, 320) of the arena, but 'use' "
        "reads "
        "'whole of first' while 'gather' may write 'whole of middle'; let the second wait for an "
        "event "
        "that the first, of the run of segment 'first' before, records, or move one buffer"},
       {"a gather over what the same segment, a run before, still reads",
        [](Problem &p) { launchOf(p, "middle", "gather").awaits = {0}; }, Fault::race,
        "'use' reads bytes [0, 128) of 'whole of middle' while 'gather' may write them; let the "
        "second "
        "wait for an event that the first, of the run of segment 'middle' before, records"},
       {"the first microbatch adds to what nothing has written",
        [](Problem &p) {
          launchOf(p, "first", "add") = launchOf(p, "middle", "add");
          launchOf(p, "first", "add").reads[0].buffer = 5;
        },
        Fault::unwritten,
        "'add' reads bytes [0, 64) of 'sum', which no launch has written where the program starts "
        "with "
        "segment 'first'"},
       {"an edge from evaluation to the middle of a step",
        [](Problem &p) { segmentOf(p, "evaluate").next.push_back(1); }, Fault::unwritten,
        "'add' reads bytes [0, 64) of 'sum', which no launch has written where segment 'middle' "
        "follows "
        "'evaluate'"},
       {"an accumulator on the gathered parameters",
        [](Problem &p) { bufferOf(p, "sum").offset = 192; }, Fault::overlap,
        "'add' reads bytes [0, 64) of 'sum', but 'gather' has overwritten them with 'whole of "
        "middle'; move one buffer, or read earlier"},
       {"an update in each microbatch",
        [](Problem &p) { launchOf(p, "middle", "add").updates = {"s"}; }, Fault::updated,
        "'update' updates storage 's' in the step in which 'add' has updated it; update it once "
        "before "
        "each advance"},
       {"a step that is never advanced",
        [](Problem &p) { launchOf(p, "last", "advance").step = StepUse::none; }, Fault::updated,
        "'update' updates storage 's' again, but nothing advances the step between; end the step "
        "with "
        "'fsdp.advance'"},
       {"the number of the step is advanced by each microbatch",
        [](Problem &p) { launchOf(p, "first", "use").step = StepUse::advances; }, Fault::advanced,
        "'use' uses the step's number after 'use' has advanced it; advance last"},
       {"a reduction on the communicator of the gathers: the order of the two is open",
        [](Problem &p) { launchOf(p, "middle", "reduce").collective->communicator = 0; },
        Fault::collectives,
        "'reduce' and 'gather' communicate on communicator 'gather over [fsdp]' in no fixed "
        "order; "
        "let the second wait for an event that the first, of the run of segment 'middle' before, "
        "records"},
       {"a segment that nothing leads to",
        [](Problem &p) {
          p.roles[0].walks.pop_back();
          segmentOf(p, "last").next = {0};
        },
        Fault::segments,
        "segment 'evaluate' of role 'all' is never reached: no walk begins with it and no reached "
        "segment has it as 'next'"}});
}

TEST(CyclicCheckerTest, DeferredUpdate) {
  expectRefused(
      makeDeferredUpdate,
      {{"the gradient is not carried into the next step",
        [](Problem &p) {
          launchOf(p, "step", "reduce").records.clear();
          launchOf(p, "step", "check").waits.clear();
        },
        Fault::race,
        "'reduce' writes bytes [0, 64) of 'kept' while 'update' may read them; let the second wait "
        "for "
        "an event that the first, of the run of segment 'step' before, records"},
       {"the gather does not wait for the update",
        [](Problem &p) { launchOf(p, "step", "gather").waits.clear(); }, Fault::race,
        "'update' writes bytes [0, 64) of 'weights' while 'gather' may read them; let the second "
        "wait "
        "for the first"},
       {"the update is done again after the drain",
        [](Problem &p) { launchOf(p, "drain", "off").clears.clear(); }, Fault::updated,
        "'update' updates storage 's' in the step in which 'update' has updated it; update it once "
        "before each advance"},
       {"an update of the step before as one of its own",
        [](Problem &p) { launchOf(p, "step", "update").deferred = false; }, Fault::updated,
        "'update' updates storage 's' if a condition of an earlier step holds; mark it "
        "'deferred'"},
       {"an update of its own step as one of the step before",
        [](Problem &p) {
          Launch update = launchOf(p, "step", "update");
          update.waits = {4};
          update.awaits.clear();
          update.updates = {"t"};
          Segment &step = segmentOf(p, "step");
          step.launches.insert(step.launches.begin() + 5, update);
        },
        Fault::updated,
        "'update' updates storage 't' if a condition of its own step holds; remove 'deferred'"},
       {"an update under no condition after the drain",
        [](Problem &p) { launchOf(p, "step", "update").condition = -1; }, Fault::updated,
        "'update' updates storage 's' in the step in which 'update' has updated it; update it once "
        "before each advance"},
       {"the drain is followed by a drain before the next step",
        [](Problem &p) {
          launchOf(p, "drain", "off").writes[0] = {2, 0, 1};
          launchOf(p, "drain", "off").clears.clear();
          segmentOf(p, "drain").next = {1, 2};
        },
        Fault::updated,
        "'update' updates storage 's' again, but nothing advances the step between; end the step "
        "with "
        "'fsdp.advance'"},
       {"the program starts with a gradient that nothing has computed",
        [](Problem &p) { bufferOf(p, "kept").filled = false; }, Fault::unwritten,
        "'update' reads bytes [0, 64) of 'kept', which no launch has written where the program "
        "starts "
        "with segment 'step'"}});
}

TEST(CyclicCheckerTest, Pipeline) {
  expectRefused(
      makePipeline,
      {{"the second stage receives something else",
        [](Problem &p) { launchOf(p, "steady", "forward", 1).collective->type = "bf16"; },
        Fault::collectives,
        "on communicator 'forward', role 'first' issues 'forward' (permute of 16 f32, 64 bytes) as "
        "number 0 of segment 'fill', but it is matched with number 0 of segment 'steady': role "
        "'second' "
        "issues 'forward' (permute of 16 bf16, 64 bytes)"},
       {"the second stage does not receive the last one",
        [](Problem &p) { launchOf(p, "drain", "forward", 1).collective.reset(); },
        Fault::collectives,
        "as number 0 on communicator 'forward' in segment 'steady', role 'first' issues 'forward' "
        "(permute of 16 f32, 64 bytes), but role 'second' issues nothing before the end of segment "
        "'drain', which is joined"},
       {"the second stage falls behind with every microbatch",
        [](Problem &p) { launchOf(p, "steady", "forward", 1).collective.reset(); },
        Fault::collectives,
        "segment 'steady' begins on communicator 'forward' with 1 collectives pending where it "
        "follows "
        "'fill', but with 2 collectives pending, of which role 'first' issues 'forward' (permute "
        "of 16 f32, 64 bytes) and role 'second' nothing where it follows 'steady'; let all roles "
        "issue the same number on every path"},
       {"a join before the second stage has received",
        [](Problem &p) {
          for (int role : {0, 1})
            segmentOf(p, "fill", role).joined = true;
        },
        Fault::collectives,
        "as number 0 on communicator 'forward' in segment 'fill', role 'first' issues 'forward' "
        "(permute of 16 f32, 64 bytes), but role 'second' issues nothing"},
       {"a segment that only one stage joins",
        [](Problem &p) { segmentOf(p, "steady", 1).joined = true; }, Fault::segments,
        "segment 'steady' of role 'first' is not joined at its end, but of role 'second' it is"},
       {"the first stage takes back in a microbatch what is given only after the next one was sent",
        [](Problem &p) {
          // In fill already, and before it sends again.
          Launch take = launchOf(p, "drain", "back");
          segmentOf(p, "drain").launches.clear();
          take.writes[0] = {1, 0, 32};
          take.stream = 1;
          segmentOf(p, "fill").launches.insert(segmentOf(p, "fill").launches.begin(), take);
          launchOf(p, "fill", "forward").waits = {1};
        },
        Fault::deadlock,
        "'forward' of role 'first' waits for 'back' of role 'first', which waits for 'use' of role "
        "'second', which waits for 'forward' of role 'first': none of them ever starts"},
       {"each stage first sends, and takes only then: in fill one, in steady the other",
        [](Problem &p) {
          Launch take = launchOf(p, "drain", "back"), give = launchOf(p, "steady", "back", 1);
          take.stream = 1;
          segmentOf(p, "fill").launches.push_back(take);
          segmentOf(p, "drain").launches.clear();
          give.reads.clear();
          give.waits.clear();
          std::vector<Launch> &second = segmentOf(p, "steady", 1).launches;
          second = {give, second[0]};
          second[1].stream = give.stream;
          second[1].writes.clear();
        },
        Fault::deadlock,
        "'forward' of role 'first' waits for 'back' of role 'first', which waits for 'forward' of "
        "role "
        "'first': none of them ever starts"},
       {"another number of microbatches", [](Problem &p) { p.roles[1].walks[0].times[1] = 2; },
        Fault::segments,
        "role 'first' has walk 'train' of 'fill' 1 time, 'steady' 3 times, 'drain' 1 time, but "
        "role "
        "'second' has walk 'train' of 'fill' 1 time, 'steady' 2 times, 'drain' 1 time"},
       {"the sent activations are overwritten",
        [](Problem &p) { launchOf(p, "steady", "make").awaits.clear(); }, Fault::race,
        "'forward' reads bytes [0, 64) of 'x of steady' while 'make' may write them; let the "
        "second "
        "wait for an event that the first, of the run of segment 'steady' before, records"}});
}

/// A writes and reads on two streams, B does something else, A writes again.
Problem makeThereAndBack() {
  Role role{"all", {"compute", "gather"}, {}, {}, -1, {"read"}};
  role.buffers = {{"x", 64, 0}, {"y", 64}};
  Launch write{"write", 0, {}, {}, {{0, 0, 64}}, {}, {}};
  write.awaits = {0};
  Launch read{"read", 1, {0}, {{0, 0, 64}}, {}, {}, {}};
  read.records = {0};
  role.segments.push_back({"a", {write, read}, {1}, false});
  role.segments.push_back({"b", {{"other", 0, {}, {{1, 0, 64}}, {}, {}, {}}}, {0, 2}, false});
  role.segments.push_back({"c", {}, {0}, true});
  return {{}, {role}};
}

TEST(CyclicCheckerTest, ThereAndBack) {
  expectRefused(
      makeThereAndBack,
      {{"the race of a segment with its own run, over another one",
        [](Problem &p) { launchOf(p, "a", "write").awaits.clear(); }, Fault::race,
        "'read' reads bytes [0, 64) of 'x' while 'write' may write them; let the second wait for "
        "an "
        "event that the first, of the run of segment 'a' before, records"},
       {"an event that does not exist", [](Problem &p) { launchOf(p, "a", "read").records = {1}; },
        Fault::malformed, "'read' records an event that does not exist"},
       {"an event that does not exist, waited for",
        [](Problem &p) { launchOf(p, "a", "write").awaits = {-1}; }, Fault::malformed,
        "'write' waits for an event that does not exist"},
       {"two segments of one name", [](Problem &p) { segmentOf(p, "b").name = "a"; },
        Fault::malformed, "role 'all' has two segments 'a'"},
       {"a walk without segments", [](Problem &p) { p.roles[0].walks = {{"w", {}, {}}}; },
        Fault::malformed,
        "walk 'w' has no segments, or runs some that do not exist, or not a number of times"},
       {"a walk along no edge", [](Problem &p) { p.roles[0].walks = {{"w", {0, 2}, {1, 1}}}; },
        Fault::malformed, "walk 'w' runs 'c' after 'a', which it does not follow"},
       {"a communicator of a role that does not exist",
        [](Problem &p) { p.communicators = {{"c", {1}}}; }, Fault::malformed,
        "communicator 'c' has a role that does not exist"},
       {"a buffer of a segment that does not exist",
        [](Problem &p) { bufferOf(p, "x").segment = 3; }, Fault::malformed,
        "'x' has a size or a segment that does not exist"}});
  // Where b is joined nothing is in flight.
  Problem problem = makeThereAndBack();
  launchOf(problem, "a", "write").awaits.clear();
  segmentOf(problem, "b").joined = true;
  EXPECT_EQ(describeAll(checkSchedule(problem)), "");
}

// The read is complete before the write by stream on one path, where the event has come to stand
// for something else, and by the event on the other.
TEST(CyclicCheckerTest, DistinguishesPaths) {
  Role role{"all", {"compute", "gather", "other"}, {}, {}, -1, {"read"}};
  role.buffers = {{"x", 64}};
  Launch read{"read", 1, {}, {{0, 0, 64}}, {}, {}, {}};
  read.records = {0};
  role.segments.push_back({"read", {read}, {1, 2}, false});
  Launch sync{"sync", 0, {}, {}, {}, {}, {}}, other{"other", 2, {}, {}, {}, {}, {}};
  sync.awaits = other.records = {0};
  role.segments.push_back({"by stream", {sync, other}, {3}, false});
  role.segments.push_back({"by event", {}, {3}, false});
  Launch write{"write", 0, {}, {}, {{0, 0, 64}}, {}, {}};
  write.awaits = {0};
  role.segments.push_back({"write", {write}, {4}, true});
  role.segments.push_back({"start", {}, {0}, true});
  role.walks = {{"w", {4, 0, 1, 3}, {1, 1, 1, 1}}};
  Problem problem{{}, {role}};
  EXPECT_EQ(describeAll(checkSchedule(problem)), "");
  const std::string race =
      "'read' reads bytes [0, 64) of 'x' while 'write' may write them; let the second wait for an "
      "event that the first, of the run of segment 'read' before, records\n";
  Problem noEvent = problem, noStream = problem;
  launchOf(noEvent, "write", "write").awaits.clear();
  EXPECT_EQ(describeAll(checkSchedule(noEvent)), race);
  launchOf(noStream, "by stream", "sync").awaits.clear();
  EXPECT_EQ(describeAll(checkSchedule(noStream)), race);
}

} // namespace
