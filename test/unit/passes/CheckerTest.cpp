//===- CheckerTest.cpp - wrong schedules are refused, naming both ends ----===//

#include "passes/schedule/Checker.h"
#include "passes/schedule/HappensBefore.h"
#include "passes/schedule/MemoryPlanner.h"
#include "test/unit/passes/RandomProblem.h"

#include <gtest/gtest.h>

using namespace mlir::fsdp::schedule;

namespace {

enum { kCompute, kGather, kReduce };

/// A gather, a use of it, a reduction of the result, and an update in place; right, with memory.
Problem makeRight() {
  Role role{"all", {"compute", "gather", "reduce"}, {}, {}, -1};
  role.buffers = {
      {"shard", 64, -1, -1}, {"whole", 128, 0, -1}, {"gradient", 128, 0, -1}, {"part", 64, 0, -1}};
  Launch gather{
      "gather", kGather, {}, {{0, 0, 64}}, {{1, 0, 128}}, {}, Collective{0, "all_gather", 128}};
  Launch use{"use", kCompute, {0}, {{1, 0, 128}}, {{2, 0, 128}}, {}, {}};
  Launch reduce{"reduce",
                kReduce,
                {1},
                {{2, 0, 128}},
                {{3, 0, 64}},
                {},
                Collective{1, "reduce_scatter", 128}};
  Launch update{"update", kCompute, {2}, {{3, 0, 64}, {0, 0, 64}}, {{0, 0, 64}}, {{1, 0}}, {}};
  role.segments.push_back({"train", {gather, use, reduce, update}, {0}, true});
  Problem problem{{{"gather over [fsdp]", {0}}, {"reduce over [fsdp]", {0}}}, {role}};
  applyPlan(planMemory(role), problem.roles[0]);
  return problem;
}

std::vector<Launch> &launches(Problem &problem, int role = 0) {
  return problem.roles[role].segments[0].launches;
}

/// Expects one finding of `fault` with `message`.
void expectFinding(const Problem &problem, Fault fault, const std::string &message) {
  std::vector<Finding> findings = checkSchedule(problem);
  std::string all;
  for (const Finding &finding : findings) {
    all += finding.message + "\n";
    if (finding.fault == fault && finding.message == message)
      return;
  }
  FAIL() << "expected: " << message << "\ngot: " << all;
}

TEST(CheckerTest, AcceptsARightSchedule) { EXPECT_EQ(checkSchedule(makeRight()).size(), 0u); }

TEST(CheckerTest, RefusesAReadWithoutAWait) {
  Problem problem = makeRight();
  launches(problem)[1].waits.clear();
  expectFinding(
      problem, Fault::race,
      "'gather' writes bytes [0, 128) of 'whole' while 'use' may read them; let the second "
      "wait for the first");
}

TEST(CheckerTest, RefusesAWriteUnderAReader) {
  Problem problem = makeRight();
  launches(problem)[3].waits.clear();
  launches(problem)[1].waits.clear(); // so that nothing orders the update after the gather
  expectFinding(
      problem, Fault::race,
      "'gather' reads bytes [0, 64) of 'shard' while 'update' may write them; let the second "
      "wait for the first");
}

TEST(CheckerTest, RefusesToWorkInPlaceWhereTheKernelCannot) {
  Problem problem = makeRight();
  launches(problem)[3].inPlace.clear();
  expectFinding(
      problem, Fault::race,
      "'update' reads and writes bytes [0, 64) of 'shard', but the op cannot work in place");
}

TEST(CheckerTest, RefusesToWriteTwice) {
  Problem problem = makeRight();
  launches(problem)[1].writes.push_back({2, 0, 64});
  expectFinding(problem, Fault::race, "'use' writes bytes [0, 64) of 'gradient' twice");
}

TEST(CheckerTest, RefusesReadsOfUnwrittenBuffers) {
  Problem problem = makeRight();
  launches(problem)[1].writes[0].end = 100;
  expectFinding(problem, Fault::unwritten,
                "'reduce' reads bytes [100, 128) of 'gradient', which no launch has written");
  launches(problem)[3].writes.push_back({2, 100, 128});
  expectFinding(problem, Fault::unwritten,
                "'reduce' reads bytes [100, 128) of 'gradient', which 'update' writes later");
}

TEST(CheckerTest, RefusesWaitsInACircle) {
  Problem problem = makeRight();
  launches(problem)[0].waits = {3};
  expectFinding(problem, Fault::deadlock,
                "'gather' waits for 'update', which waits for 'reduce', which waits for 'use', "
                "which waits for 'gather': none of them ever starts");
}

TEST(CheckerTest, RefusesWaitsForLaterLaunches) {
  Problem problem = makeRight();
  Launch last{"last", kReduce, {}, {}, {}, {}, {}};
  launches(problem).push_back(last);
  launches(problem)[3].waits = {2, 4};
  expectFinding(problem, Fault::unissued, "'update' waits for 'last', which is issued after it");
}

TEST(CheckerTest, RefusesLiveBuffersThatOverlap) {
  Problem problem = makeRight();
  problem.roles[0].buffers[2].offset = problem.roles[0].buffers[1].offset;
  int64_t at = problem.roles[0].buffers[1].offset;
  expectFinding(problem, Fault::overlap,
                "'use' reads 'whole' and writes 'gradient', which share bytes [" +
                    std::to_string(at) + ", " + std::to_string(at + 128) +
                    ") of the arena, but the op cannot work in place");
}

/// Two results on two streams, and a use of the first.
Problem makeTwoResults(bool ordered) {
  Role role{"all", {"compute", "gather"}, {}, {}, 128};
  role.buffers = {{"a", 64, 0, 0}, {"b", 64, 0, 64}};
  Launch first{"first", 0, {}, {}, {{0, 0, 64}}, {}, {}};
  Launch second{"second", 1, {}, {}, {{1, 0, 64}}, {}, {}};
  Launch use{"use", 0, {}, {{0, 0, 64}}, {}, {}, {}};
  if (ordered)
    second.waits = {0};
  role.segments.push_back({"train", {first, second, use}, {0}, true});
  return {{}, {role}};
}

TEST(CheckerTest, RefusesToWriteWhereAnotherBufferIsInUse) {
  Problem problem = makeTwoResults(/*ordered=*/false);
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
  problem.roles[0].buffers[1].offset = 0;
  expectFinding(
      problem, Fault::overlap,
      "'a' and 'b' share bytes [0, 64) of the arena, but 'first' writes 'a' while 'second' "
      "may write 'b'; let the second wait for the first, or move one buffer");
}

TEST(CheckerTest, RefusesReadsOfOverwrittenBuffers) {
  Problem problem = makeTwoResults(/*ordered=*/true);
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
  problem.roles[0].buffers[1].offset = 0;
  expectFinding(problem, Fault::overlap,
                "'use' reads bytes [0, 64) of 'a', but 'second' has overwritten them with 'b'; "
                "move one buffer, or read earlier");
}

TEST(CheckerTest, RefusesToWriteTwoBuffersInOnePlace) {
  Problem problem = makeTwoResults(/*ordered=*/true);
  launches(problem)[0].writes.push_back({1, 0, 64});
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
  problem.roles[0].buffers[1].offset = 0;
  expectFinding(problem, Fault::overlap,
                "'first' writes 'a' and writes 'b', which share bytes [0, 64) of the arena");
}

// A buffer that is used again after it was overwritten is written again: its bytes are free in
// between.
TEST(CheckerTest, AcceptsABufferThatIsWrittenAgain) {
  Problem problem = makeTwoResults(/*ordered=*/true);
  problem.roles[0].buffers[1].offset = 0;
  launches(problem)[2].waits = {1};
  launches(problem)[2].reads.clear();
  launches(problem)[2].writes = {{0, 0, 64}};
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
}

TEST(CheckerTest, RefusesToShareWithPersistentBuffers) {
  Problem problem = makeRight();
  problem.roles[0].buffers[3].offset = 0;
  expectFinding(problem, Fault::overlap,
                "'part' shares bytes [0, 64) of the arena with 'shard', which is persistent");
}

TEST(CheckerTest, RefusesPlacesOutsideTheArena) {
  Problem problem = makeRight();
  problem.roles[0].buffers[3].offset = 4096;
  expectFinding(problem, Fault::outside,
                "'part' takes bytes [4096, 4160) of the arena of role 'all', which has " +
                    std::to_string(problem.roles[0].arena));
  problem.roles[0].buffers[3].offset = 68;
  expectFinding(problem, Fault::outside,
                "'part' is at 68 in the arena of role 'all', expected a multiple of 64");
  problem.roles[0].buffers[3].offset = -1;
  expectFinding(problem, Fault::outside, "'part' has no offset in the arena of role 'all'");
}

TEST(CheckerTest, RefusesCollectivesInNoOrder) {
  Problem problem = makeRight();
  Launch other{"other", kCompute, {}, {{0, 0, 64}}, {}, {}, Collective{0, "all_reduce", 64}};
  launches(problem).insert(launches(problem).begin() + 1, other);
  for (Launch &launch : launches(problem))
    for (int &wait : launch.waits)
      wait += wait >= 1;
  expectFinding(problem, Fault::collectives,
                "'gather' and 'other' communicate on communicator 'gather over [fsdp]' in no "
                "fixed order; let the second wait for the first");
}

/// Two roles that run the right schedule.
Problem makeTwoRoles() {
  Problem problem = makeRight();
  problem.roles[0].name = "first";
  problem.roles.push_back(problem.roles[0]);
  problem.roles[1].name = "second";
  for (Communicator &communicator : problem.communicators)
    communicator.roles = {0, 1};
  return problem;
}

TEST(CheckerTest, AcceptsRolesThatAgree) { EXPECT_EQ(checkSchedule(makeTwoRoles()).size(), 0u); }

TEST(CheckerTest, RefusesRolesThatIssueDifferentCollectives) {
  Problem problem = makeTwoRoles();
  launches(problem, 1)[0].collective->bytes = 256;
  expectFinding(problem, Fault::collectives,
                "as number 0 on communicator 'gather over [fsdp]' in segment 'train', role 'first' "
                "issues 'gather' (all_gather of 128 bytes), but role 'second' issues 'gather' "
                "(all_gather of 256 bytes)");
  launches(problem, 1)[0].collective.reset();
  launches(problem, 1)[3].collective = Collective{0, "all_reduce", 64};
  expectFinding(problem, Fault::collectives,
                "as number 0 on communicator 'gather over [fsdp]' in segment 'train', role 'first' "
                "issues 'gather' (all_gather of 128 bytes), but role 'second' issues 'update' "
                "(all_reduce of 64 bytes)");
  launches(problem, 1)[3].collective.reset();
  expectFinding(problem, Fault::collectives,
                "as number 0 on communicator 'gather over [fsdp]' in segment 'train', role 'first' "
                "issues 'gather' (all_gather of 128 bytes), but role 'second' issues nothing");
  problem.communicators[0].roles = {0};
  EXPECT_EQ(checkSchedule(problem).size(), 0u); // now the second has no part in it
}

TEST(CheckerTest, RefusesCollectivesThatDifferInOneThing) {
  struct {
    void (*change)(Collective &);
    const char *text;
  } cases[] = {
      {[](Collective &c) { c.kind = "reduce_scatter"; }, "reduce_scatter sum of 32 f32, 128 bytes"},
      {[](Collective &c) { c.arguments = "max"; }, "all_reduce max of 32 f32, 128 bytes"},
      {[](Collective &c) { c.type = "i32"; }, "all_reduce sum of 32 i32, 128 bytes"},
      {[](Collective &c) { c.given = "31"; }, "all_reduce sum of 31 -> 32 f32, 128 bytes"},
      {[](Collective &c) { c.received = "33"; }, "all_reduce sum of 32 -> 33 f32, 128 bytes"},
      {[](Collective &c) { c.given = c.received = "4x8"; }, "all_reduce sum of 4x8 f32, 128 bytes"},
  };
  const Collective right{0, "all_reduce", 128, "sum", "f32", "32", "32"};
  for (const auto &wrong : cases) {
    Problem problem = makeTwoRoles();
    launches(problem, 0)[0].collective = launches(problem, 1)[0].collective = right;
    EXPECT_EQ(checkSchedule(problem).size(), 0u);
    wrong.change(*launches(problem, 1)[0].collective);
    expectFinding(
        problem, Fault::collectives,
        std::string("as number 0 on communicator 'gather over [fsdp]' in segment 'train', "
                    "role 'first' issues 'gather' (all_reduce sum of 32 f32, 128 bytes), "
                    "but role 'second' issues 'gather' (") +
            wrong.text + ")");
  }
  // Parts of another size, as ranks with other padding would have.
  Problem problem = makeTwoRoles();
  launches(problem, 0)[0].collective = Collective{0, "all_gather", 128, "dim 0", "f32", "16", "32"};
  launches(problem, 1)[0].collective = Collective{0, "all_gather", 128, "dim 0", "f32", "17", "32"};
  EXPECT_EQ(checkSchedule(problem).size(), 1u);
}

TEST(CheckerTest, RefusesCollectivesInASegmentThatARoleLacks) {
  Problem problem = makeTwoRoles();
  problem.roles[0].segments.push_back(problem.roles[0].segments[0]);
  problem.roles[0].segments[1].name = "evaluate";
  problem.roles[0].segments[1].launches = {launches(problem)[0]};
  for (Access &write : problem.roles[0].segments[1].launches[0].writes)
    write = {0, 0, 0};
  problem.roles[0].segments[1].next = problem.roles[0].segments[0].next = {0, 1};
  expectFinding(problem, Fault::collectives,
                "in segment 'evaluate', role 'first' issues 'gather' (all_gather of 128 bytes) on "
                "communicator 'gather over [fsdp]', but role 'second' has no such segment");
  // Also where the other role has no part in the communicator: the driver runs it on all ranks.
  problem.communicators[0].roles = {0};
  launches(problem, 1)[0].collective.reset();
  expectFinding(problem, Fault::segments,
                "role 'second' has no segment 'evaluate', which role 'first' goes through");
  std::swap(problem.roles[0], problem.roles[1]);
  problem.communicators[0].roles = {1};
  expectFinding(problem, Fault::segments,
                "role 'second' has no segment 'evaluate', which role 'first' goes through");
}

TEST(CheckerTest, RefusesRolesWhoseSegmentsFollowOneAnotherDifferently) {
  Problem problem = makeTwoRoles();
  for (Role &role : problem.roles)
    role.segments.push_back({"evaluate", {}, {0}, true});
  problem.roles[0].segments[0].next = {0, 1};
  problem.roles[1].segments[0].next = {1, 0}; // the order has no meaning
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
  problem.roles[1].segments[0].next = {1};
  expectFinding(problem, Fault::segments,
                "segment 'train' of role 'first' is followed by 'evaluate', 'train', but of role "
                "'second' by 'evaluate'");
  problem.roles[1].segments[0].kind = "train";
  expectFinding(problem, Fault::segments,
                "segment 'train' of role 'first' is of kind '', but of role 'second' of kind "
                "'train'");
}

// Found by the mutator: a segment may continue while collectives of the previous one are in flight.
TEST(CheckerTest, RefusesCollectivesInNoOrderOnAnEdge) {
  Role role{"all", {"s", "t"}, {}, {}, -1};
  role.segments.push_back(
      {"a", {{"on s", 0, {}, {}, {}, {}, Collective{0, "all_reduce", 8}}}, {1}, false});
  role.segments.push_back(
      {"b", {{"on t", 1, {}, {}, {}, {}, Collective{0, "all_reduce", 8}}}, {0}, true});
  Problem problem{{{"c", {0}}}, {role}};
  expectFinding(
      problem, Fault::collectives,
      "'on s' and 'on t' communicate on communicator 'c' in no fixed order; let the "
      "second wait for an event that the first, of the run of segment 'a' before, records");
  problem.roles[0].segments[0].joined = true;
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
}

TEST(CheckerTest, RefusesUsesOfTheStepAfterItWasAdvanced) {
  Problem problem = makeRight();
  launches(problem)[1].step = StepUse::reads;
  launches(problem)[3].step = StepUse::advances;
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
  std::swap(launches(problem)[1].step, launches(problem)[3].step);
  expectFinding(problem, Fault::advanced,
                "'update' uses the step's number after 'use' has advanced it; advance last");
  launches(problem)[3].step = StepUse::advances;
  EXPECT_EQ(checkSchedule(problem).size(), 1u); // two steps in one
}

TEST(CheckerTest, RefusesAccessesAcrossMembers) {
  Problem problem = makeRight();
  problem.roles[0].buffers[1].members = {{0, 48}, {64, 112}};
  Access &read = launches(problem)[1].reads[0];
  for (Access good : {Access{1, 0, 128}, Access{1, 0, 48}, Access{1, 72, 80}}) {
    read = good;
    EXPECT_EQ(checkSchedule(problem).size(), 0u);
  }
  read = {1, 4, 52};
  expectFinding(problem, Fault::members,
                "'use' reads bytes [4, 52) of 'whole', which are not inside one of its members");
  read = {1, 112, 128};
  expectFinding(problem, Fault::members,
                "'use' reads bytes [112, 128) of 'whole', which are padding behind its members");
  // Padding may be filled, as far as it goes.
  read = {1, 0, 48};
  Launch fill{"fill", kGather, {}, {}, {{1, 48, 64}}, {}, {}};
  launches(problem)[0].writes[0] = {1, 0, 48};
  launches(problem).insert(launches(problem).begin(), fill);
  for (Launch &launch : launches(problem))
    for (int &wait : launch.waits)
      ++wait;
  EXPECT_EQ(checkSchedule(problem).size(), 0u);
  launches(problem)[0].writes[0].end = 72;
  expectFinding(problem, Fault::members,
                "'fill' writes bytes [48, 72) of 'whole', which are not inside one of its members");
}

TEST(CheckerTest, RefusesRolesThatWaitForOneAnother) {
  // Each role alone is right, and both meet in the same order on each communicator; but one meets
  // on the first before the second, and the other the other way round.
  Problem problem;
  problem.communicators = {{"a", {0, 1}}, {"b", {0, 1}}};
  for (const char *name : {"first", "second"}) {
    Role role{name, {"s", "t"}, {}, {}, -1};
    Launch a{"on a", 0, {}, {}, {}, {}, Collective{0, "all_reduce", 8}};
    Launch b{"on b", 1, {0}, {}, {}, {}, Collective{1, "all_reduce", 8}};
    if (problem.roles.empty()) {
      role.segments.push_back({"train", {a, b}, {0}, true});
    } else {
      b.waits.clear();
      a.waits = {0};
      role.segments.push_back({"train", {b, a}, {0}, true});
    }
    problem.roles.push_back(role);
  }
  std::vector<Finding> findings = checkSchedule(problem);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].fault, Fault::deadlock);
  EXPECT_EQ(findings[0].message,
            "'on a' of role 'first' waits for 'on b' of role 'first', which waits for 'on a' of "
            "role 'first': none of them ever starts");
}

TEST(CheckerTest, RefusesRacesOverAnEdge) {
  Problem problem = makeRight();
  problem.roles[0].segments[0].joined = false;
  // The next step's gather reads the shard while the update may still write it.
  expectFinding(
      problem, Fault::race,
      "'update' writes bytes [0, 64) of 'shard' while 'gather' may read them; let the second "
      "wait for an event that the first, of the run of segment 'train' before, records");
}

TEST(CheckerTest, RefusesMalformedProblems) {
  Problem problem = makeRight();
  launches(problem)[0].reads[0].end = 65;
  expectFinding(problem, Fault::malformed, "'gather' uses bytes [0, 65) of 'shard', which has 64");
  launches(problem)[0].waits = {7};
  expectFinding(problem, Fault::malformed, "'gather' waits for a launch that does not exist");
  launches(problem)[0].stream = 9;
  expectFinding(problem, Fault::malformed, "'gather' runs on a stream that does not exist");
  problem.communicators[1].roles.clear();
  expectFinding(
      problem, Fault::malformed,
      "'reduce' uses communicator 'reduce over [fsdp]', to which role 'all' does not belong");
  launches(problem)[0].collective->communicator = 2;
  expectFinding(problem, Fault::malformed, "'gather' uses a communicator that does not exist");
  launches(problem)[1].reads[0].buffer = 9;
  expectFinding(problem, Fault::malformed, "'use' uses a buffer that does not exist");
  problem.roles[0].segments[0].next = {1};
  expectFinding(problem, Fault::malformed,
                "segment 'train' is followed by number 1, which does not exist");
  problem.roles[0].segments[0].next.clear();
  expectFinding(problem, Fault::malformed, "segment 'train' is followed by nothing");
  problem.roles[0].buffers[3].segment = 1;
  expectFinding(problem, Fault::malformed, "'reduce' uses 'part' of another segment");
  launches(problem)[3].inPlace = {{4, 0}};
  expectFinding(problem, Fault::malformed, "'update' works in place on operands that do not exist");
}

// Every wait that elision leaves is needed: without it, or with a buffer moved onto another live
// one, the checker reports an error.
TEST(CheckerTest, RefusesBrokenRandomSchedules) {
  std::mt19937 random(5);
  int broken = 0;
  for (int i = 0; i < 400; ++i) {
    RandomShape shape;
    shape.launches = 4 + static_cast<int>(random() % 20);
    shape.buffers = 2 + static_cast<int>(random() % 8);
    Problem problem = makeScheduledProblem(random, shape);
    for (size_t l = 0; l < launches(problem).size(); ++l)
      for (size_t w = 0; w < launches(problem)[l].waits.size(); ++w) {
        Problem without = problem;
        std::vector<int> &waits = launches(without)[l].waits;
        int lost = waits[w];
        waits.erase(waits.begin() + static_cast<long>(w));
        std::vector<Finding> findings = checkSchedule(without);
        bool named = false;
        for (const Finding &finding : findings)
          named |= (finding.first.launch == lost && finding.second.launch == static_cast<int>(l)) ||
                   (finding.second.launch == lost && finding.first.launch == static_cast<int>(l));
        ASSERT_TRUE(named) << "case " << i << ": wait of " << l << " for " << lost << " is gone";
        ++broken;
      }
  }
  EXPECT_GT(broken, 1000);
}

} // namespace
