//===- ScheduleMutationTest.cpp - the checker refuses broken schedules ----===//
//
// Right schedules, random ones and those written by hand, of straight segments and of cycles, are
// changed in one or two places. Where the changed one, run in many orders, reads a wrong value,
// races, hangs or updates twice (ScheduleExecution.h), the checker must refuse it, naming both
// ends. Otherwise the change may be harmless, and the checker may accept or refuse it.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Checker.h"
#include "passes/schedule/MemoryPlanner.h"
#include "test/mutation/ScheduleExecution.h"
#include "test/mutation/Seeds.h"
#include "test/unit/passes/CyclicProblems.h"
#include "test/unit/passes/RandomCycle.h"
#include "test/unit/passes/RandomProblem.h"

#include <gtest/gtest.h>
#include <map>

using namespace mlir::fsdp::schedule;
using namespace fsdp::mutation;

namespace {

int draw(std::mt19937 &random, size_t below) { return static_cast<int>(random() % below); }

/// A right schedule of one or two roles of straight segments, with collectives and, mostly, memory.
Problem makeStraight(std::mt19937 &random) {
  RandomShape shape;
  shape.launches = 3 + draw(random, 12);
  shape.buffers = 2 + draw(random, 6);
  shape.segments = 1 + draw(random, 2);
  Problem problem = makeScheduledProblem(random, shape);
  Role &role = problem.roles[0];
  const char *kinds[] = {"all_gather", "reduce_scatter", "all_reduce"};
  for (size_t s = 0; s < role.streams.size(); ++s)
    problem.communicators.push_back({"over " + role.streams[s], {0}});
  for (Segment &segment : role.segments)
    for (Launch &launch : segment.launches)
      if (launch.stream > 0 && draw(random, 2))
        launch.collective = Collective{launch.stream, kinds[draw(random, 3)], 4 * draw(random, 3)};
  if (draw(random, 4))
    applyPlan(planMemory(role), role);
  if (draw(random, 2)) {
    problem.roles.push_back(problem.roles[0]);
    problem.roles[1].name = "other";
    for (Communicator &communicator : problem.communicators)
      communicator.roles = {0, 1};
  }
  return problem;
}

Problem makeRight(std::mt19937 &random) {
  switch (draw(random, 8)) {
  case 0:
    return makeAccumulation();
  case 1:
    return draw(random, 2) ? makeDeferredUpdate() : makePipeline();
  case 2:
  case 3:
  case 4:
    return makeStraight(random);
  default:
    Problem problem = RandomCycle(random).make();
    if (draw(random, 3)) // mostly with awaits that all matter
      relink(problem);
    return problem;
  }
}

/// Removes launch `at`, and the waits for it.
void removeLaunch(Segment &segment, int at) {
  segment.launches.erase(segment.launches.begin() + at);
  for (Launch &launch : segment.launches) {
    std::vector<int> waits;
    for (int wait : launch.waits)
      if (wait != at)
        waits.push_back(wait - (wait > at));
    launch.waits = waits;
  }
}

/// Swaps `a` and `a` + 1; waits still refer to the same launches.
void swapLaunches(Segment &segment, int a) {
  std::swap(segment.launches[a], segment.launches[a + 1]);
  for (Launch &launch : segment.launches)
    for (int &wait : launch.waits)
      wait = wait == a ? a + 1 : wait == a + 1 ? a : wait;
}

/// Changes what leads from segment to segment, or what is carried; as `mutate`.
std::string mutateCarried(Problem &problem, Role &role, Segment &segment, std::mt19937 &random) {
  auto any = [&](size_t below) { return draw(random, below); };
  // One that has something to do with events, if there is one.
  std::vector<int> linked;
  for (size_t l = 0; l < segment.launches.size(); ++l)
    if (!segment.launches[l].awaits.empty() || !segment.launches[l].records.empty())
      linked.push_back(static_cast<int>(l));
  Launch &launch = segment.launches[linked.empty() ? 0 : linked[any(linked.size())]];
  Buffer &buffer = role.buffers[any(role.buffers.size())];
  size_t s = static_cast<size_t>(&segment - role.segments.data());
  switch (any(8)) {
  case 0:
    if (launch.awaits.empty())
      return "";
    launch.awaits.erase(launch.awaits.begin() + any(launch.awaits.size()));
    return "an await dropped";
  case 1:
    if (launch.records.empty())
      return "";
    launch.records.erase(launch.records.begin() + any(launch.records.size()));
    return "a record dropped";
  case 2: {
    if (launch.records.empty())
      return "";
    int from = any(launch.records.size()), event = launch.records[from];
    launch.records.erase(launch.records.begin() + from);
    segment.launches[any(segment.launches.size())].records.push_back(event);
    return "a record moved";
  }
  case 3:
    if (launch.awaits.empty())
      return "";
    launch.awaits[any(launch.awaits.size())] = any(role.events.size());
    return "an await redirected";
  case 4:
    buffer.filled = false;
    return "a buffer not filled";
  case 5: {
    int edge = any(segment.next.size()), to = any(role.segments.size());
    for (Role &other : problem.roles) // of which the roles agree on the order
      other.segments[s].next[edge] = to;
    return "an edge rewired";
  }
  case 6:
    for (Role &other : problem.roles)
      other.segments[s].joined = false;
    return "a join dropped";
  default:
    for (Launch &other : segment.launches) {
      if (!other.clears.empty()) {
        other.clears.clear();
        return "a condition not cleared";
      }
      if (other.step == StepUse::advances) {
        other.step = StepUse::none;
        return "an advance dropped";
      }
    }
    return "";
  }
}

/// Changes one thing; returns what, for statistics, or "" where it does not apply.
std::string mutate(Problem &problem, std::mt19937 &random) {
  auto any = [&](size_t below) { return draw(random, below); };
  Role &role = problem.roles[any(problem.roles.size())];
  Segment &segment = role.segments[any(role.segments.size())];
  if (segment.launches.empty())
    return "";
  if (any(role.events.empty() ? 8 : 2) == 0)
    return mutateCarried(problem, role, segment, random);
  int l = any(segment.launches.size());
  Launch &launch = segment.launches[l];
  Buffer &buffer = role.buffers[any(role.buffers.size())];
  switch (any(17)) {
  case 0:
    if (launch.waits.empty())
      return "";
    launch.waits.erase(launch.waits.begin() + any(launch.waits.size()));
    return "a wait dropped";
  case 1:
    if (launch.waits.empty())
      return "";
    launch.waits[any(launch.waits.size())] = any(segment.launches.size());
    return "a wait redirected";
  case 2:
    if (role.arena < 0)
      return "";
    buffer.offset = role.buffers[any(role.buffers.size())].offset;
    return "a buffer moved onto another";
  case 3:
    if (role.arena < 0)
      return "";
    buffer.offset += 64 * (1 - 2 * any(2));
    return "a buffer moved";
  case 4:
    if (role.arena < 0)
      return "";
    role.arena -= 64;
    return "the arena shrunk";
  case 5:
    if (l + 1 == static_cast<int>(segment.launches.size()))
      return "";
    swapLaunches(segment, l);
    return "launches swapped";
  case 6:
    launch.stream = any(role.streams.size());
    return "a launch on another stream";
  case 7:
    std::swap(launch.collective, segment.launches[any(segment.launches.size())].collective);
    return "collectives swapped";
  case 8:
    if (!launch.collective)
      return "";
    switch (any(6)) {
    case 0:
      launch.collective->bytes += 4;
      break;
    case 1:
      launch.collective->kind += "_async";
      break;
    case 2:
      launch.collective->arguments = "max";
      break;
    case 3:
      launch.collective->type = "bf16";
      break;
    case 4:
      launch.collective->given += "x3";
      break;
    default:
      launch.collective->communicator = any(problem.communicators.size());
    }
    return "a request changed";
  case 9:
    launch.collective.reset();
    return "a collective removed";
  case 10:
    if (launch.writes.empty())
      return "";
    launch.writes[0].end -= (launch.writes[0].end - launch.writes[0].begin) / 2;
    return "a write cut";
  case 11:
    if (launch.reads.empty())
      return "";
    launch.reads[0].begin = 0;
    launch.reads[0].end = role.buffers[launch.reads[0].buffer].size;
    return "a read widened";
  case 12:
    removeLaunch(segment, l);
    return "a launch removed";
  case 13:
    if (!buffer.isPersistent() && &role.segments[buffer.segment] != &segment)
      return "";
    launch.writes.push_back({static_cast<int>(&buffer - role.buffers.data()), 0, buffer.size / 2});
    return "a write added";
  case 14:
    launch.inPlace.clear();
    return "in place forbidden";
  case 15:
    segment.next = {any(role.segments.size())};
    return "another next segment";
  default:
    segment.joined = false;
    return "streams not joined";
  }
}

TEST(ScheduleMutationTest, TheCheckerRefusesFaultySchedules) {
  int64_t mutants = getNumMutants(10000), harmful = 0, refused = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> kinds; // all, harmful
  for (int64_t number = 0; number < mutants; ++number) {
    std::mt19937 random = randomFor(number);
    Problem problem = makeRight(random);
    ASSERT_EQ(checkSchedule(problem).size(), 0u) << "mutant " << number;
    if (number % 8 == 0)
      ASSERT_EQ(execute(problem, random, 8), "") << "mutant " << number << " before it is changed";
    std::string what = mutate(problem, random);
    if (!what.empty() && draw(random, 4) == 0)
      what += mutate(problem, random).empty() ? "" : " and more";
    if (what.empty())
      continue;
    std::vector<Finding> findings = checkSchedule(problem);
    // Where indices and ranges do not exist there is nothing to run.
    bool malformed = !findings.empty() && findings[0].fault == Fault::malformed;
    std::string wrong = malformed ? "malformed" : execute(problem, random, 20);
    ++kinds[what].first;
    kinds[what].second += !wrong.empty();
    harmful += !wrong.empty();
    refused += !findings.empty();
    ASSERT_TRUE(wrong.empty() || !findings.empty())
        << "mutant " << number << " (" << what << "): " << wrong << ", but the checker is content";
  }
  std::printf("%lld mutants: %lld refused, %lld of them seen to go wrong\n",
              static_cast<long long>(mutants), static_cast<long long>(refused),
              static_cast<long long>(harmful));
  for (const auto &[what, count] : kinds)
    std::printf("  %-32s %7lld, %7lld go wrong\n", what.c_str(),
                static_cast<long long>(count.first), static_cast<long long>(count.second));
  EXPECT_GT(harmful, mutants / 8);
  // Each of these has caused a fault, so the checker was run on it.
  if (mutants >= 6000)
    for (const char *what :
         {"a wait dropped", "an await dropped", "a record dropped", "a record moved",
          "a join dropped", "an edge rewired", "another next segment", "collectives swapped",
          "a buffer moved", "a buffer not filled", "an advance dropped", "a condition not cleared"})
      EXPECT_GT(kinds[what].second, 0) << what;
}

} // namespace
