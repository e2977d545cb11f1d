//===- RandomCycle.h - random schedules of several roles and segments -*- C++ -*-===//
//
// Right by construction. Roles differ in all but the segment graph and the collectives; segments
// that are not joined order their accesses by events.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_PASSES_RANDOMCYCLE_H
#define TEST_UNIT_PASSES_RANDOMCYCLE_H

#include "passes/schedule/MemoryPlanner.h"
#include "passes/schedule/SegmentLinks.h"
#include "test/unit/passes/RandomProblem.h"

#include <algorithm>
#include <map>

namespace mlir::fsdp::schedule {

class RandomCycle {
public:
  explicit RandomCycle(std::mt19937 &random) : random(random) {}

  Problem make() {
    bool isSkewed = draw(4) == 0;
    int numRoles = isSkewed ? 2 + draw(2) : 1 + draw(3);
    collectives.resize(numRoles);
    for (int s = 1; s < kStreams; ++s)
      problem.communicators.push_back({"over s" + std::to_string(s), drawMembers(numRoles)});
    isSkewed ? drawPipeline(numRoles) : drawGraph();
    for (int role = 0; role < numRoles; ++role)
      problem.roles.push_back(makeRole(role));
    return problem;
  }

private:
  static constexpr int kStreams = 3;
  using Requests = std::vector<Collective>;

  int draw(int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); }

  /// A walk over some segments, one for each of the others, and more edges.
  void drawGraph() {
    int size = 1 + draw(4), walked = 1 + draw(size);
    graph.resize(size);
    ExecutionPlan walk{"walk", {}, {}};
    auto connect = [&](int from, int to) {
      if (!std::count(graph[from].next.begin(), graph[from].next.end(), to))
        graph[from].next.push_back(to);
    };
    for (int s = 0; s < size; ++s) {
      graph[s].name = "g" + std::to_string(s);
      graph[s].joined = draw(3) == 0;
      if (s < walked) {
        bool again = s + 1 < walked && draw(3) == 0;
        walk.segments.push_back(s);
        walk.times.push_back(again ? 2 : 1);
        connect(s, (s + 1) % walked);
        if (again)
          connect(s, s);
      } else {
        connect(s, s);
        walks.push_back({"walk " + std::to_string(s), {s}, {1}});
      }
      Requests requests = drawRequests(5);
      for (std::vector<Requests> &own : collectives)
        own.push_back(requests);
    }
    walks.insert(walks.begin(), walk);
    for (int more = draw(size + 1); more > 0; --more)
      connect(draw(size), draw(size));
  }

  /// Each role issues the same some segments after the one before: fill, steady, drain.
  void drawPipeline(int numRoles) {
    ExecutionPlan walk{"walk", {}, {}};
    int steady = numRoles - 1, last = 2 * steady;
    Requests unit = drawRequests(5);
    for (int s = 0; s <= last; ++s) {
      bool isSteady = s == steady;
      graph.push_back({(isSteady     ? "steady"
                        : s < steady ? "fill "
                                     : "drain ") +
                           std::to_string(s),
                       {},
                       {},
                       s == last});
      graph[s].next = {s == last ? 0 : s + 1};
      if (isSteady)
        graph[s].next.push_back(s);
      walk.segments.push_back(s);
      walk.times.push_back(isSteady ? 2 : 1);
      // What all issue at the same time comes before what the first issues ahead, and behind what
      // the second makes up for: in one order for both, but there is none for three.
      Requests common = numRoles == 2 ? drawRequests(2) : Requests();
      for (int role = 0; role < numRoles; ++role) {
        Requests own = common;
        if (role <= s && s <= role + steady)
          own.insert(role == 0 ? own.end() : own.begin(), unit.begin(), unit.end());
        collectives[role].push_back(own);
      }
    }
    walks = {walk};
  }

  /// Who belongs to a communicator: some roles, mostly all.
  std::vector<int> drawMembers(int numRoles) {
    std::vector<int> members;
    int without = draw(2 * numRoles);
    for (int role = 0; role < numRoles; ++role)
      if (role != without || numRoles == 1)
        members.push_back(role);
    return members;
  }

  Requests drawRequests(int most) {
    const char *kinds[] = {"all_gather", "reduce_scatter", "all_reduce"};
    Requests requests;
    for (int n = draw(most); n > 0; --n)
      requests.push_back({draw(kStreams - 1), kinds[draw(3)], 4 * (1 + draw(3))});
    return requests;
  }

  Role makeRole(int number) {
    RandomShape shape;
    shape.launches = 2 + draw(9);
    shape.buffers = 1 + draw(5);
    shape.persistent = 1 + draw(3);
    shape.segments = static_cast<int>(graph.size());
    shape.streams = kStreams;
    Role role = makeRandomProblem(random, shape).roles[0];
    role.name = "role " + std::to_string(number);
    role.walks = walks;
    for (size_t s = 0; s < graph.size(); ++s) {
      Segment &segment = role.segments[s];
      segment.name = graph[s].name;
      segment.next = graph[s].next;
      segment.joined = graph[s].joined;
      Requests own;
      for (const Collective &request : collectives[number][s]) {
        const std::vector<int> &members = problem.communicators[request.communicator].roles;
        if (std::count(members.begin(), members.end(), number))
          own.push_back(request);
      }
      placeCollectives(segment, own);
    }
    for (Buffer &buffer : role.buffers)
      buffer.filled = !buffer.isPersistent() || draw(3) != 0;
    dropUnwrittenReads(role);
    addUpdates(role);
    for (Segment &segment : role.segments) {
      materializeWaits(segment);
      elideImpliedWaits(segment);
    }
    if (draw(4))
      applyPlan(planMemory(role), role);
    addEvents(role);
    return role;
  }

  /// Some launches, in the order of `requests`, become collectives.
  void placeCollectives(Segment &segment, const Requests &requests) {
    while (segment.launches.size() < requests.size())
      segment.launches.push_back({"more", 0, {}, {}, {}, {}, {}});
    size_t at = 0;
    for (size_t i = 0; i < requests.size(); ++i, ++at) {
      at += draw(static_cast<int>(segment.launches.size() - at - (requests.size() - i) + 1));
      segment.launches[at].collective = requests[i];
      segment.launches[at].stream = requests[i].communicator + 1;
    }
  }

  /// Buffers that are not fully written on every path are not read.
  void dropUnwrittenReads(Role &role) {
    size_t size = role.buffers.size();
    std::vector<bool> all(size, true), start(size);
    for (size_t b = 0; b < size; ++b)
      start[b] = role.buffers[b].isPersistent() && role.buffers[b].filled;
    std::vector<std::vector<bool>> entry(role.segments.size(), all);
    for (const ExecutionPlan &walk : role.walks)
      entry[walk.segments[0]] = start;
    auto run = [&](Segment &segment, std::vector<bool> written, bool drop) {
      for (Launch &launch : segment.launches) {
        std::vector<Access> kept;
        for (const Access &read : launch.reads)
          if (written[read.buffer] || !role.buffers[read.buffer].isPersistent())
            kept.push_back(read);
        if (drop && kept.size() != launch.reads.size()) {
          launch.reads = kept;
          launch.inPlace.clear();
        }
        for (const Access &write : launch.writes)
          if (write.begin == 0 && write.end == role.buffers[write.buffer].size)
            written[write.buffer] = true;
      }
      return written;
    };
    for (bool more = true; more;) {
      more = false;
      for (Segment &segment : role.segments) {
        std::vector<bool> end = run(segment, entry[&segment - role.segments.data()], false);
        for (int next : segment.next)
          for (size_t b = 0; b < size; ++b)
            if (entry[next][b] && !end[b]) {
              entry[next][b] = false;
              more = true;
            }
      }
    }
    for (Segment &segment : role.segments)
      run(segment, entry[&segment - role.segments.data()], true);
  }

  /// The last segment of a walk may update and advance.
  void addUpdates(Role &role) {
    for (const ExecutionPlan &walk : role.walks) {
      if (draw(2))
        continue;
      std::vector<Launch> &launches = role.segments[walk.segments.back()].launches;
      Launch update{"update", draw(kStreams), {}, {}, {}, {}, {}}, advance = update;
      update.updates = {"s"};
      advance.name = "advance";
      advance.step = StepUse::advances;
      launches.push_back(update);
      launches.push_back(advance);
    }
  }

  /// Each launch waits for the earlier segments' launches with which it conflicts: by an event of
  /// their stream, which the last launch of each segment records, or by one of their own.
  void addEvents(Role &role) {
    for (int s = 0; s < kStreams; ++s)
      role.events.push_back("stream " + std::to_string(s));
    for (Segment &segment : role.segments)
      for (int s = 0; s < kStreams; ++s)
        for (size_t l = segment.launches.size(); l-- > 0;)
          if (segment.launches[l].stream == s) {
            segment.launches[l].records.push_back(s);
            break;
          }
    std::map<std::pair<size_t, size_t>, int> own;
    for (size_t b = 0; b < role.segments.size(); ++b)
      for (size_t l = 0; l < role.segments[b].launches.size(); ++l)
        for (size_t a = 0; a < role.segments.size(); ++a)
          for (size_t g = a == b ? l + 1 : 0; g < role.segments[a].launches.size(); ++g) {
            Launch &launch = role.segments[b].launches[l], &other = role.segments[a].launches[g];
            if (launch.stream == other.stream || !conflict(role, launch, other))
              continue;
            int event = other.stream;
            auto known = own.find({a, g});
            if (known != own.end() || (own.size() < 4 && draw(4) == 0)) {
              if (known == own.end()) {
                known =
                    own.emplace(std::make_pair(a, g), static_cast<int>(role.events.size())).first;
                role.events.push_back(role.segments[a].name + "." + std::to_string(g));
                other.records.push_back(known->second);
              }
              event = known->second;
            }
            if (!std::count(launch.awaits.begin(), launch.awaits.end(), event))
              launch.awaits.push_back(event);
          }
  }

  static bool conflict(const Role &role, const Launch &one, const Launch &two) {
    auto meet = [&](const std::vector<Access> &left, const std::vector<Access> &right) {
      for (const Access &x : left)
        for (const Access &y : right) {
          int64_t a = 0, b = 0;
          if (role.arena >= 0) {
            a = role.buffers[x.buffer].offset;
            b = role.buffers[y.buffer].offset;
          } else if (x.buffer != y.buffer)
            continue;
          if (a + x.begin < b + y.end && b + y.begin < a + x.end)
            return true;
        }
      return false;
    };
    return meet(one.writes, two.writes) || meet(one.writes, two.reads) ||
           meet(one.reads, two.writes);
  }

  std::mt19937 &random;
  Problem problem;
  std::vector<Segment> graph;
  std::vector<ExecutionPlan> walks;
  std::vector<std::vector<Requests>> collectives; ///< by role and segment
};

/// The same accesses, with memory, and with the waits across segments that `linkSegments` finds.
inline void relink(Problem &problem) {
  for (Role &role : problem.roles) {
    std::vector<bool> async;
    for (Segment &segment : role.segments) {
      async.push_back(!segment.joined);
      segment.joined = true;
      for (Launch &launch : segment.launches) {
        launch.awaits.clear();
        launch.records.clear();
      }
    }
    role.events.clear();
    if (role.arena < 0)
      applyPlan(planMemory(role), role);
    linkSegments(role, async);
  }
}

} // namespace mlir::fsdp::schedule

#endif // TEST_UNIT_PASSES_RANDOMCYCLE_H
