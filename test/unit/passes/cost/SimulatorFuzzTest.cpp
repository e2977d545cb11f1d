//===- SimulatorFuzzTest.cpp - against a slow simulator -------------------===//
//
// The reference lists every launch of all steps with what must be complete before it, and from one
// completion to the next looks at all of them. It shares nothing with the simulator but the
// problem.
//
//===----------------------------------------------------------------------===//

#include "passes/cost/Simulator.h"
#include "test/Extent.h"
#include "test/unit/passes/RandomCycle.h"

#include "gtest/gtest.h"

#include <chrono>
#include <cmath>
#include <cstdlib>

using namespace mlir::fsdp;
using namespace mlir::fsdp::cost;

namespace {

struct Reference {
  struct Node {
    size_t role, step;
    int segment, launch;
    std::vector<size_t> before; ///< all of these are complete when it starts
    std::vector<size_t> gate;   ///< the host enqueues it when all of these are
    std::vector<size_t> together;
    double work, demand, start = -1, end = -1, done = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::vector<double>> begins; ///< [role][step]

  Reference(const SimulationInput &input, size_t steps) {
    std::map<std::pair<int, int>, std::vector<size_t>> meetings;
    for (size_t r = 0; r < input.problem.roles.size(); ++r)
      unroll(input, r, steps, meetings);
    for (auto &[key, members] : meetings)
      for (size_t member : members)
        nodes[member].together = members;
    run(input);
    begins.resize(input.problem.roles.size());
    for (size_t r = 0; r < begins.size(); ++r)
      for (size_t step = 0; step < steps; ++step) {
        double begin = 0;
        for (const Node &node : nodes)
          if (node.role == r && node.step == step)
            for (size_t gate : node.gate)
              begin = std::max(begin, nodes[gate].end);
        begins[r].push_back(begin);
      }
  }

private:
  void unroll(const SimulationInput &input, size_t r, size_t steps,
              std::map<std::pair<int, int>, std::vector<size_t>> &meetings) {
    const schedule::Role &role = input.problem.roles[r];
    const size_t first = nodes.size();
    std::vector<size_t> gate, barrier;
    std::map<int, size_t> recorded;
    std::map<int, int> met;
    for (size_t step = 0; step < steps; ++step) {
      std::vector<size_t> outputs, all;
      for (int s : input.steps[r]) {
        const size_t base = nodes.size();
        for (size_t l = 0; l < role.segments[s].launches.size(); ++l) {
          const schedule::Launch &launch = role.segments[s].launches[l];
          Node node{r,
                    step,
                    s,
                    static_cast<int>(l),
                    barrier,
                    gate,
                    {},
                    input.seconds[r][s][l],
                    launch.collective ? input.sharing.collectiveDemand
                                      : input.sharing.computeDemand};
          for (size_t other = first; other < nodes.size(); ++other)
            if (streamOf(role, other) == launch.stream)
              node.before.push_back(other);
          for (int wait : launch.waits)
            node.before.push_back(base + wait);
          for (int event : launch.awaits)
            if (recorded.count(event))
              node.before.push_back(recorded[event]);
          for (int event : launch.records)
            recorded[event] = nodes.size();
          if (launch.collective) {
            const int c = launch.collective->communicator;
            if (input.problem.communicators[c].roles.size() > 1)
              meetings[{c, met[c]++}].push_back(nodes.size());
          }
          if (launch.output)
            outputs.push_back(nodes.size());
          all.push_back(nodes.size());
          nodes.push_back(node);
        }
        if (role.segments[s].joined) {
          barrier.clear();
          for (size_t other = first; other < nodes.size(); ++other)
            barrier.push_back(other);
        }
      }
      gate = outputs.empty() ? all : outputs;
    }
  }

  int streamOf(const schedule::Role &role, size_t node) const {
    return role.segments[nodes[node].segment].launches[nodes[node].launch].stream;
  }

  bool isComplete(size_t node) const { return nodes[node].end >= 0; }
  bool isReady(const Node &node) const {
    for (const std::vector<size_t> *list : {&node.before, &node.gate})
      for (size_t other : *list)
        if (!isComplete(other))
          return false;
    return true;
  }

  void run(const SimulationInput &input) {
    double now = 0;
    for (;;) {
      for (Node &node : nodes) {
        bool ready = node.start < 0 && isReady(node);
        for (size_t member : node.together)
          ready = ready && isReady(nodes[member]);
        if (!ready)
          continue;
        node.start = now;
        for (size_t member : node.together)
          nodes[member].start = now;
      }
      std::vector<size_t> running;
      for (size_t i = 0; i < nodes.size(); ++i)
        if (nodes[i].start >= 0 && !isComplete(i))
          running.push_back(i);
      if (running.empty())
        return;
      auto paceOf = [&](size_t role) {
        double demand = 0;
        for (size_t i : running)
          demand += nodes[i].role == role ? nodes[i].demand : 0;
        return std::min(1.0, demand > 0 ? input.sharing.capacity / demand : 1.0);
      };
      std::vector<double> pace;
      double next = HUGE_VAL;
      for (size_t i : running) {
        double slowest = paceOf(nodes[i].role);
        for (size_t member : nodes[i].together)
          slowest = std::min(slowest, paceOf(nodes[member].role));
        pace.push_back(slowest);
        next = std::min(next, (nodes[i].work - nodes[i].done) / slowest);
      }
      now += next;
      for (size_t k = 0; k < running.size(); ++k) {
        Node &node = nodes[running[k]];
        node.done += next * pace[k];
        if (node.work - node.done < 1e-9)
          node.end = now;
      }
    }
  }
};

TEST(SimulatorFuzz, AgreesWithASlowSimulator) {
  std::mt19937 random(7);
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  int periodic = 0, meetings = 0, shared = 0;
  const int64_t problems = ::fsdp::test::casesOf(30, 300);
  for (int64_t round = 0; round < problems; ++round) {
    schedule::Problem problem = schedule::RandomCycle(random).make();
    SimulationInput input{problem, {}, {}, {1.0 / (1 + draw(3)), 1, draw(3) * 0.5}};
    shared += input.sharing.collectiveDemand > 0;
    for (schedule::Role &role : problem.roles) {
      auto &steps = input.steps.emplace_back();
      const schedule::ExecutionPlan &plan = role.walks.front();
      for (size_t i = 0; i < plan.segments.size(); ++i)
        steps.insert(steps.end(), static_cast<size_t>(plan.times[i]), plan.segments[i]);
      auto &seconds = input.seconds.emplace_back();
      for (schedule::Segment &segment : role.segments) {
        auto &ofSegment = seconds.emplace_back();
        for (schedule::Launch &launch : segment.launches) {
          ofSegment.push_back(draw(6) ? 0.25 * draw(40) : 0.0);
          launch.output = draw(5) == 0;
        }
      }
    }
    const Simulation result = simulate(input);
    ASSERT_EQ(result.fault, "") << round;
    const size_t window = static_cast<size_t>(result.steps) - 2;
    const Reference reference(input, window + 2);
    periodic += result.periodic;
    double origin = HUGE_VAL, ends[2] = {0, 0}; // of the step before the reported one, and of that
    for (const std::vector<double> &begins : reference.begins) {
      origin = std::min(origin, begins[window]);
      for (size_t i = 0; i < 2; ++i)
        ends[i] = std::max(ends[i], begins[window + i]);
    }
    if (result.periodic)
      ASSERT_NEAR(result.step, ends[1] - ends[0], 1e-6);
    for (size_t r = 0; r < problem.roles.size(); ++r) {
      size_t at = 0;
      meetings += problem.roles.size() > 1;
      for (const Reference::Node &node : reference.nodes) {
        if (node.role != r || node.step != window)
          continue;
        const LaunchRun &run = result.roles[r].runs.at(at++);
        ASSERT_EQ(run.segment, node.segment);
        ASSERT_EQ(run.launch, node.launch);
        ASSERT_NEAR(run.start, node.start - origin, 1e-6) << round;
        ASSERT_NEAR(run.end, node.end - origin, 1e-6) << round;
      }
      ASSERT_EQ(at, result.roles[r].runs.size());
    }
  }
  // What is drawn is about all of it.
  EXPECT_GT(periodic, problems / 2);
  EXPECT_GT(meetings, problems / 4);
  EXPECT_GT(shared, problems / 4);
}

// 126 layers: in each direction a gather, 60 kernels, and in backward a reduction.
TEST(SimulatorFuzz, DeepModelsInAFifthOfASecond) {
  schedule::Problem problem;
  problem.communicators = {{"gather", {0}}, {"reduce", {0}}};
  schedule::Role role;
  role.streams = {"compute", "gather", "reduce"};
  SimulationInput input{problem, {{0, 1, 2}}, {{}}, {1, 1, 0.1}};
  for (int s = 0; s < 3; ++s) {
    schedule::Segment segment{"segment " + std::to_string(s), {}, {(s + 1) % 3}, false};
    auto &seconds = input.seconds[0].emplace_back();
    auto add = [&](int stream, double time, std::vector<int> waits) {
      schedule::Launch launch{"l", stream, std::move(waits), {}, {}, {}, {}};
      if (stream)
        launch.collective = schedule::Collective{stream - 1, "all_gather", 1};
      segment.launches.push_back(launch);
      seconds.push_back(time);
      return static_cast<int>(segment.launches.size()) - 1;
    };
    for (int layer = 0; layer < 252; ++layer) {
      int last = add(1, 0.003, {});
      for (int kernel = 0; kernel < 20; ++kernel)
        last = add(0, 0.0002, {last});
      if (layer >= 126)
        add(2, 0.002, {last});
    }
    segment.launches.back().output = s == 2;
    role.segments.push_back(segment);
  }
  problem.roles = {role};
  const auto begin = std::chrono::steady_clock::now();
  const Simulation result = simulate(input);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(result.periodic);
  EXPECT_EQ(result.roles[0].runs.size(), 3u * (252 * 21 + 126));
  RecordProperty("milliseconds", static_cast<int>(passed.count() * 1e3));
  std::printf("%zu launches a step: %.0f ms\n", result.roles[0].runs.size(), passed.count() * 1e3);
}

} // namespace
