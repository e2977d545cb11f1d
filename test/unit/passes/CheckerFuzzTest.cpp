//===- CheckerFuzzTest.cpp - random schedules, and large ones -------------===//

#include "passes/schedule/Checker.h"
#include "passes/schedule/HappensBefore.h"
#include "passes/schedule/InFlight.h"
#include "test/unit/passes/Findings.h"
#include "test/unit/passes/RandomCycle.h"

#include <ctime>
#include <gtest/gtest.h>

using namespace mlir::fsdp::schedule;

namespace {

TEST(CheckerFuzzTest, AcceptsRightCycles) {
  std::mt19937 random(11);
  int unjoined = 0, skewed = 0;
  for (int i = 0; i < 1000; ++i) {
    Problem problem = RandomCycle(random).make();
    ASSERT_EQ(describeAll(checkSchedule(problem)), "") << "case " << i;
    for (const Segment &segment : problem.roles[0].segments)
      unjoined += !segment.joined;
    skewed += problem.roles[0].segments[0].name == "fill 0";
  }
  EXPECT_GT(unjoined, 500);
  EXPECT_GT(skewed, 100);
}

// The linked schedule is right, and most awaits are needed (others are implied over segments).
TEST(CheckerFuzzTest, NeedsTheLinksOfSegments) {
  std::mt19937 random(13);
  int dropped = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    Problem problem = RandomCycle(random).make();
    relink(problem);
    ASSERT_EQ(describeAll(checkSchedule(problem)), "") << "case " << i;
    Role &role = problem.roles[0];
    for (size_t s = 0; s < role.segments.size(); ++s)
      for (size_t l = 0; l < role.segments[s].launches.size(); ++l) {
        std::vector<int> &awaits = role.segments[s].launches[l].awaits;
        if (awaits.empty())
          continue;
        int event = awaits.back();
        awaits.pop_back();
        std::vector<Finding> findings = checkSchedule(problem);
        awaits.push_back(event);
        ++dropped;
        refused += !findings.empty();
      }
  }
  EXPECT_GT(dropped, 500);
  EXPECT_GT(refused, dropped / 2) << refused << " of " << dropped;
}

// The segments of a path, one behind the other as one line, in which awaits are waits: what the
// planner's clocks say of it is what the checker knows, segment by segment.
TEST(CheckerFuzzTest, HasTheSameOrderAsThePlanner) {
  std::mt19937 random(12);
  auto draw = [&](size_t below) { return static_cast<int>(random() % below); };
  int64_t pairs = 0, ordered = 0;
  for (int i = 0; i < 600; ++i) {
    Problem problem = RandomCycle(random).make();
    Role &role = problem.roles[0];
    // Few awaits, so that the cases differ.
    for (Segment &segment : role.segments)
      for (Launch &launch : segment.launches)
        while (!launch.awaits.empty() && draw(3))
          launch.awaits.erase(launch.awaits.begin() + draw(launch.awaits.size()));
    Tokens tokens(role);
    Completions completions(tokens.numStreams());
    std::vector<int> first{0};
    for (const Segment &segment : role.segments)
      first.push_back(first.back() + static_cast<int>(segment.launches.size()));
    InFlight inFlight(first.back(), 0);
    std::vector<Launch> line;
    std::vector<int> latest(first.back(), -1), recorded(role.events.size(), -1);
    for (int part = 0, s = draw(role.segments.size()); part < 4; ++part) {
      const Segment &segment = role.segments[s];
      Reachability order(role, segment);
      int start = static_cast<int>(line.size()), size = static_cast<int>(segment.launches.size());
      for (const Launch &launch : segment.launches) {
        int own = static_cast<int>(line.size());
        Launch added = launch;
        for (int &wait : added.waits)
          wait += start;
        for (int event : launch.awaits)
          if (recorded[event] >= 0)
            added.waits.push_back(recorded[event]);
        for (int event : launch.records)
          recorded[event] = own;
        line.push_back(added);
      }
      HappensBefore clocks(line);
      for (int l = 0; l < size; ++l) {
        for (int g = 0; g < first.back(); ++g) {
          bool isOwn = first[s] <= g && g < first[s] + l;
          int instance = isOwn ? start + g - first[s] : latest[g];
          if (instance < 0)
            continue;
          bool known = isOwn ? order.before(g - first[s], l)
                             : isComplete(completions, inFlight[g], order, l);
          ASSERT_EQ(known, clocks.before(instance, start + l))
              << "case " << i << ", part " << part << ", launches " << g << " and " << l;
          ++pairs;
          ordered += known;
        }
      }
      inFlight = leave(inFlight, completions, tokens, order, first[s], size);
      for (int l = 0; l < size; ++l)
        latest[first[s] + l] = start + l;
      s = segment.next[draw(segment.next.size())];
    }
  }
  EXPECT_GT(ordered, pairs / 8);
  EXPECT_LT(ordered, pairs * 7 / 8);
}

/// Gradient accumulation of a model with many layers, some 47 launches for each, in segments that
/// are not joined: first -> middle* -> last -> first. Gathered parameters take turns in two places.
Problem makeDeepModel(int layers) {
  enum { compute, gather, reduce };
  constexpr int kKernels = 20;
  Role role{"all", {"compute", "gather", "reduce"}, {}, {}, -1, {"compute", "gather", "reduce"}};
  for (int l = 0; l < layers; ++l) {
    std::string layer = std::to_string(l);
    role.buffers.push_back({"weights " + layer, 1024});
    role.buffers.push_back({"sum " + layer, 1024, -1, -1, {}, false});
    role.events.push_back("updated " + layer);
  }
  const char *names[] = {"first", "middle", "last"};
  for (int s = 0; s < 3; ++s) {
    Segment segment{names[s], {}, {}, false, "train"};
    auto addBuffer = [&](const std::string &name) {
      role.buffers.push_back({name, 4096, s});
      return static_cast<int>(role.buffers.size()) - 1;
    };
    auto add = [&](Launch launch) {
      segment.launches.push_back(std::move(launch));
      return static_cast<int>(segment.launches.size()) - 1;
    };
    int value = addBuffer("input");
    add({"input", compute, {}, {}, {{value, 0, 4096}}, {}, {}});
    std::vector<int> saved;
    for (int n = 0; n < 2 * layers; ++n) {
      bool backward = n >= layers;
      int l = backward ? 2 * layers - 1 - n : n;
      int whole = addBuffer("whole " + std::to_string(n));
      Launch unit{"gather",
                  gather,
                  {},
                  {{2 * l, 0, 1024}},
                  {{whole, 0, 4096}},
                  {},
                  Collective{0, "all_gather", 4096}};
      unit.awaits = {3 + l};
      if (!backward)
        saved.push_back(value);
      add(unit);
      for (int k = 0; k < kKernels; ++k) {
        int next = addBuffer("value");
        Launch kernel{"kernel",          compute,  {}, {{value, 0, 4096}, {whole, 0, 4096}},
                      {{next, 0, 4096}}, {{0, 0}}, {}};
        if (backward && k == 0)
          kernel.reads.push_back({saved[l], 0, 4096});
        add(kernel);
        value = next;
      }
      if (!backward)
        continue;
      int part = addBuffer("part");
      add({"reduce",
           reduce,
           {},
           {{value, 0, 4096}},
           {{part, 0, 1024}},
           {},
           Collective{1, "reduce_scatter", 4096}});
      Launch sum{"add", reduce, {}, {{part, 0, 1024}}, {{2 * l + 1, 0, 1024}}, {}, {}};
      if (s == 0) {
        sum.awaits = {3 + l};
      } else {
        sum.reads.push_back({2 * l + 1, 0, 1024});
        sum.inPlace = {{1, 0}};
      }
      add(sum);
      if (s == 2) {
        Launch update{"update",           compute,  {}, {{2 * l + 1, 0, 1024}, {2 * l, 0, 1024}},
                      {{2 * l, 0, 1024}}, {{1, 0}}, {}};
        update.updates = {std::to_string(l)};
        update.records = {3 + l};
        add(update);
      }
    }
    if (s == 2)
      add({"advance", compute, {}, {}, {}, {}, {}, StepUse::advances});
    materializeWaits(segment);
    elideImpliedWaits(segment);
    // At the border each stream waits for the launches of the others in the previous segments.
    for (int stream : {compute, gather, reduce}) {
      auto onStream = [&](const Launch &launch) { return launch.stream == stream; };
      auto start = std::find_if(segment.launches.begin(), segment.launches.end(), onStream);
      auto end = std::find_if(segment.launches.rbegin(), segment.launches.rend(), onStream);
      for (int other : {compute, gather, reduce})
        if (other != stream)
          start->awaits.push_back(other);
      end->records.push_back(stream);
    }
    role.segments.push_back(segment);
  }
  role.segments[0].next = role.segments[1].next = {1, 2};
  role.segments[2].next = {0};
  role.walks = {{"train", {0, 1, 2}, {1, 6, 1}}};
  applyPlan(planMemory(role), role);
  return {{{"gather over [fsdp]", {0}}, {"reduce over [fsdp]", {0}}}, {role}};
}

TEST(CheckerFuzzTest, TakesDeepModels) {
  for (int layers : {2, 32, 126}) {
    Problem problem = makeDeepModel(layers);
    size_t launches = 0;
    for (const Segment &segment : problem.roles[0].segments)
      launches += segment.launches.size();
    std::clock_t start = std::clock();
    std::vector<Finding> findings = checkSchedule(problem);
    double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%d layers, %zu launches in 3 segments: %.3f s\n", layers, launches, seconds);
    EXPECT_EQ(describeAll(findings), "");
    // If the last segment does not record the completion of its compute, the first one's gathers
    // race.
    for (Launch &launch : problem.roles[0].segments[2].launches)
      launch.records.clear();
    findings = checkSchedule(problem);
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings[0].first.segment, 2);
    EXPECT_EQ(findings[0].second.segment, 0);
  }
}

} // namespace
