//===- Simulator.cpp - from event to event --------------------------------===//

#include "passes/cost/Simulator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

using namespace mlir::fsdp;
using namespace mlir::fsdp::cost;

namespace {

/// Numbers of simulated steps: as many as most schedules need until they repeat, then more.
constexpr int kSteps[] = {4, 16};
/// Relative difference below which two steps take equally long.
constexpr double kEqual = 1e-9;

/// A launch in one of its runs.
struct Instance {
  int role, stream, step;
  LaunchRun run;
  double remaining, demand;
  bool isCollective, isOutput;
  int meeting = -1; ///< of the roles of a communicator; -1: the role is alone
  int pending = 0;  ///< launches that it waits for
  bool isRunning = false, isComplete = false;
  std::vector<int> dependents = {};
};

/// The n-th collective of a communicator of several roles.
struct Meeting {
  std::vector<int> arrived;
  int members;
};

/// A step whose outputs are there.
struct FinishedStep {
  size_t roles = 0; ///< in which they are
  double last = 0;  ///< when they are in all
};

struct RoleState {
  std::vector<std::deque<int>> queues; ///< of each stream, instances in issue order
  std::vector<int> latest;             ///< of each stream, the last instance issued; -1: none
  std::vector<int> recorded;           ///< of each event, the instance that recorded it last
  std::vector<int> met;                ///< of each communicator, collectives issued
  std::vector<double> begins;          ///< of each step, when the host enqueued it
  int outputs = 0;                     ///< of the latest step, not complete yet
  std::vector<int> barrier;        ///< the last instances of all streams when they were joined last
  std::vector<bool> awaitsBarrier; ///< of each stream, its next instance waits for these
};

class Engine {
public:
  Engine(const SimulationInput &input, int steps)
      : window(steps - 2), input(input), problem(input.problem), limit(steps) {}

  Simulation run() {
    roles.resize(problem.roles.size());
    for (size_t r = 0; r < roles.size(); ++r) {
      RoleState &role = roles[r];
      role.queues.resize(problem.roles[r].streams.size());
      role.latest.assign(role.queues.size(), -1);
      role.awaitsBarrier.assign(role.queues.size(), false);
      role.recorded.assign(problem.roles[r].events.size(), -1);
      role.met.assign(problem.communicators.size(), 0);
      const size_t before = instances.size();
      enqueueStep(static_cast<int>(r), 0);
      if (instances.size() == before) {
        Simulation result;
        result.fault = "a step has no launches";
        return result;
      }
    }
    Simulation result;
    while (completed < instances.size()) {
      startReady();
      if (running.empty()) {
        result.fault = "a launch waits for what never completes";
        return result;
      }
      advance();
    }
    summarize(result);
    return result;
  }

  std::vector<Instance> instances;
  std::vector<RoleState> roles;
  int window; ///< the reported step: its last launches overlap with the next step

private:
  //===--------------------------------------------------------------------===//
  // Issue
  //===--------------------------------------------------------------------===//

  void enqueueStep(int r, double now) {
    RoleState &role = roles[r];
    const int step = static_cast<int>(role.begins.size());
    role.begins.push_back(now);
    role.outputs = 0;
    const size_t first = instances.size();
    int run = 0;
    for (int segment : input.steps[r])
      enqueue(r, step, segment, run++);
    // A step without outputs ends with its last launch.
    if (role.outputs == 0)
      for (size_t i = first; i < instances.size(); ++i) {
        instances[i].isOutput = true;
        ++role.outputs;
      }
  }

  void enqueue(int r, int step, int s, int run) {
    RoleState &role = roles[r];
    const schedule::Segment &segment = problem.roles[r].segments[s];
    const int base = static_cast<int>(instances.size());
    for (size_t l = 0; l < segment.launches.size(); ++l) {
      const schedule::Launch &launch = segment.launches[l];
      const bool communicates =
          launch.collective &&
          (input.isAlone.empty() || !input.isAlone[launch.collective->communicator]);
      Instance instance{r,
                        launch.stream,
                        step,
                        {s, static_cast<int>(l), run, 0, 0},
                        input.seconds[r][s][l],
                        communicates ? input.sharing.collectiveDemand : input.sharing.computeDemand,
                        communicates,
                        launch.output};
      if (launch.collective) {
        const int c = launch.collective->communicator;
        const int members = static_cast<int>(problem.communicators[c].roles.size());
        const int nth = role.met[c]++;
        if (members > 1)
          instance.meeting = meetingOf(c, nth, members);
      }
      role.outputs += launch.output;
      instances.push_back(std::move(instance));
    }
    // A launch may wait for a later launch of its segment, which exists by now.
    for (size_t l = 0; l < segment.launches.size(); ++l) {
      const schedule::Launch &launch = segment.launches[l];
      const int number = base + static_cast<int>(l);
      if (role.awaitsBarrier[launch.stream]) {
        role.awaitsBarrier[launch.stream] = false;
        for (int last : role.barrier)
          await(number, last);
      }
      for (int wait : launch.waits)
        await(number, base + wait);
      for (int event : launch.awaits)
        await(number, role.recorded[event]);
      for (int event : launch.records)
        role.recorded[event] = number;
      role.latest[launch.stream] = number;
      role.queues[launch.stream].push_back(number);
    }
    if (segment.joined) {
      role.barrier = role.latest;
      role.awaitsBarrier.assign(role.queues.size(), true);
    }
  }

  void await(int number, int other) {
    if (other < 0 || other == number || instances[other].isComplete)
      return;
    instances[other].dependents.push_back(number);
    ++instances[number].pending;
  }

  int meetingOf(int communicator, int nth, int members) {
    auto [at, isNew] =
        meetingIndex.try_emplace({communicator, nth}, static_cast<int>(meetings.size()));
    if (isNew)
      meetings.push_back({{}, members});
    return at->second;
  }

  //===--------------------------------------------------------------------===//
  // Time
  //===--------------------------------------------------------------------===//

  void startReady() {
    for (RoleState &role : roles)
      for (std::deque<int> &queue : role.queues) {
        if (queue.empty())
          continue;
        Instance &head = instances[queue.front()];
        if (head.isRunning || head.pending > 0)
          continue;
        if (head.meeting < 0) {
          start(queue.front());
          continue;
        }
        Meeting &meeting = meetings[head.meeting];
        if (std::count(meeting.arrived.begin(), meeting.arrived.end(), queue.front()))
          continue;
        meeting.arrived.push_back(queue.front());
        if (static_cast<int>(meeting.arrived.size()) == meeting.members)
          for (int member : meeting.arrived)
            start(member);
      }
  }

  void start(int number) {
    instances[number].isRunning = true;
    instances[number].run.start = now;
    running.push_back(number);
  }

  /// Goes on to the next completions.
  void advance() {
    std::vector<double> demand(roles.size(), 0);
    for (int number : running)
      demand[instances[number].role] += instances[number].demand;
    auto speedOf = [&](int role) {
      return demand[role] > input.sharing.capacity ? input.sharing.capacity / demand[role] : 1;
    };
    std::vector<double> speed(running.size());
    for (size_t i = 0; i < running.size(); ++i) {
      const Instance &instance = instances[running[i]];
      speed[i] = speedOf(instance.role);
      // Participants of a collective progress at the rate of the slowest.
      if (instance.meeting >= 0)
        for (int member : meetings[instance.meeting].arrived)
          speed[i] = std::min(speed[i], speedOf(instances[member].role));
    }
    double time = HUGE_VAL;
    for (size_t i = 0; i < running.size(); ++i)
      time = std::min(time, instances[running[i]].remaining / speed[i]);
    now += time;
    std::vector<int> done, left;
    for (size_t i = 0; i < running.size(); ++i) {
      Instance &instance = instances[running[i]];
      const bool ends = instance.remaining <= time * speed[i] * (1 + 1e-12);
      instance.remaining -= time * speed[i];
      (ends ? done : left).push_back(running[i]);
    }
    running = std::move(left);
    for (int number : done)
      complete(number);
  }

  void complete(int number) {
    Instance &instance = instances[number];
    instance.isRunning = false;
    instance.isComplete = true;
    instance.run.end = now;
    ++completed;
    const int role = instance.role, step = instance.step;
    const bool isOutput = instance.isOutput;
    roles[role].queues[instance.stream].pop_front();
    for (int dependent : instance.dependents)
      --instances[dependent].pending;
    instance.dependents = {};
    if (isOutput && --roles[role].outputs == 0)
      finishStep(role, step);
  }

  void finishStep(int r, int step) {
    if (static_cast<int>(finished.size()) == step)
      finished.emplace_back();
    if (++finished[step].roles == roles.size())
      finished[step].last = now;
    if (step + 1 < limit)
      enqueueStep(r, now);
  }

  /// From the end of the step before in the slowest role to that of `step`.
  double lengthOf(int step) const {
    return finished[step].last - (step > 0 ? finished[step - 1].last : 0);
  }

  void summarize(Simulation &result) const {
    result.steps = limit;
    const double length = lengthOf(window), before = lengthOf(window - 1);
    result.periodic = std::abs(length - before) <= kEqual * length;
    if (result.periodic) {
      result.step = length;
      return;
    }
    const int count = (window + 1) / 2;
    for (int step = window - count + 1; step <= window; ++step)
      result.step += lengthOf(step) / count;
  }

  const SimulationInput &input;
  const schedule::Problem &problem;
  std::map<std::pair<int, int>, int> meetingIndex;
  std::vector<Meeting> meetings;
  std::vector<int> running;
  std::vector<FinishedStep> finished;
  double now = 0;
  size_t completed = 0;
  int limit; ///< steps that hosts enqueue
};

} // namespace

//===----------------------------------------------------------------------===//
// Components of a step
//===----------------------------------------------------------------------===//

/// Adds up how the streams spend the time from `begin` to `end`.
static void addStreamTimes(const Engine &engine, int r, double begin, double end, RoleTime &time) {
  struct Change {
    double at;
    int stream;
    bool isCollective;
    int more;
  };
  std::vector<Change> changes;
  for (const Instance &instance : engine.instances) {
    const double from = std::max(instance.run.start, begin), to = std::min(instance.run.end, end);
    if (instance.role != r || from >= to)
      continue;
    changes.push_back({from, instance.stream, instance.isCollective, 1});
    changes.push_back({to, instance.stream, instance.isCollective, -1});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change &a, const Change &b) { return a.at < b.at; });
  std::vector<int> all(time.streams.size(), 0), collectives(time.streams.size(), 0);
  int computing = 0, communicating = 0;
  double before = begin;
  for (const Change &change : changes) {
    const double passed = change.at - before;
    before = change.at;
    for (size_t s = 0; s < time.streams.size(); ++s) {
      time.streams[s].busy += all[s] ? passed : 0;
      time.streams[s].exposed += collectives[s] && !computing ? passed : 0;
    }
    time.computing += computing ? passed : 0;
    time.communicating += communicating ? passed : 0;
    time.exposed += communicating && !computing ? passed : 0;
    all[change.stream] += change.more;
    (change.isCollective ? communicating : computing) += change.more;
    if (change.isCollective)
      collectives[change.stream] += change.more;
  }
}

/// Adds the buffers of `role` that are live during the runs of `time`. Buffers that replace each
/// other in place in a launch are one, as in a trace (codegen/TraceTables.cpp).
static void addAlive(const schedule::Role &role, RoleTime &time) {
  const std::vector<LaunchRun> &runs = time.runs;
  struct Life {
    int64_t bytes;
    size_t first, last;                               ///< in `runs`
    std::vector<std::pair<int, size_t>> buffers = {}; ///< one after the other, and their first runs
  };
  int64_t persistent = 0;
  for (const schedule::Buffer &buffer : role.buffers)
    if (buffer.isPersistent())
      persistent +=
          (buffer.size + schedule::kAlignment - 1) / schedule::kAlignment * schedule::kAlignment;
  std::vector<std::pair<double, int64_t>> changes;
  for (size_t begin = 0, end = 0; begin < runs.size(); begin = end) {
    while (end < runs.size() && runs[end].run == runs[begin].run)
      ++end;
    std::map<int, Life> touched;
    std::vector<int> order;
    for (size_t i = begin; i < end; ++i) {
      const schedule::Launch &launch = role.segments[runs[i].segment].launches[runs[i].launch];
      for (const std::vector<schedule::Access> *accesses : {&launch.reads, &launch.writes})
        for (const schedule::Access &access : *accesses) {
          if (role.buffers[access.buffer].isPersistent())
            continue;
          auto [life, isNew] =
              touched.try_emplace(access.buffer, Life{role.buffers[access.buffer].size, i, i});
          life->second.last = i;
          if (isNew)
            order.push_back(access.buffer);
        }
    }
    std::vector<Life> lives;
    std::map<int64_t, size_t> latest;
    for (int buffer : order) {
      const Life &life = touched[buffer];
      const int64_t offset = role.buffers[buffer].offset;
      auto at = offset < 0 ? latest.end() : latest.find(offset);
      if (at != latest.end() && lives[at->second].last == life.first &&
          lives[at->second].bytes == life.bytes) {
        lives[at->second].last = life.last;
        lives[at->second].buffers.push_back({buffer, life.first});
        continue;
      }
      if (offset >= 0)
        latest[offset] = lives.size();
      lives.push_back(life);
      lives.back().buffers = {{buffer, life.first}};
    }
    for (const Life &life : lives) {
      const double end = std::max(runs[life.first].start, runs[life.last].end);
      changes.push_back({runs[life.first].start, life.bytes});
      changes.push_back({end, -life.bytes});
      for (size_t i = 0; i < life.buffers.size(); ++i) {
        const auto &[buffer, first] = life.buffers[i];
        const bool isLast = i + 1 == life.buffers.size();
        time.lives.push_back(
            {buffer, runs[first].start, isLast ? end : runs[life.buffers[i + 1].second].start});
      }
    }
  }
  std::sort(changes.begin(), changes.end());
  time.alive = {{0, persistent}};
  int64_t bytes = persistent;
  for (const auto &[at, more] : changes) {
    bytes += more;
    if (time.alive.back().first == at)
      time.alive.back().second = bytes;
    else
      time.alive.push_back({at, bytes});
  }
}

static Simulation simulateSteps(const SimulationInput &input, int steps) {
  Engine engine(input, steps);
  Simulation result = engine.run();
  if (!result.fault.empty())
    return result;
  double origin = HUGE_VAL; // when the first host enqueues the step
  for (const RoleState &role : engine.roles)
    origin = std::min(origin, role.begins[engine.window]);
  for (size_t r = 0; r < input.problem.roles.size(); ++r) {
    RoleTime &time = result.roles.emplace_back();
    const std::vector<double> &begins = engine.roles[r].begins;
    const double begin = begins[engine.window];
    for (const std::string &name : input.problem.roles[r].streams)
      time.streams.push_back({name});
    addStreamTimes(engine, static_cast<int>(r), begin, begins[engine.window + 1], time);
    for (const Instance &instance : engine.instances)
      if (instance.role == static_cast<int>(r) && instance.step == engine.window) {
        LaunchRun run = instance.run;
        run.start -= origin;
        run.end -= origin;
        time.runs.push_back(run);
      }
    addAlive(input.problem.roles[r], time);
  }
  return result;
}

Simulation mlir::fsdp::cost::simulate(const SimulationInput &input) {
  Simulation result;
  for (int steps : kSteps) {
    result = simulateSteps(input, steps);
    if (result.periodic || !result.fault.empty())
      break;
  }
  return result;
}
