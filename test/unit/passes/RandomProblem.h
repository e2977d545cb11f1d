//===- RandomProblem.h - random schedules -----------------------*- C++ -*-===//

#ifndef TEST_UNIT_PASSES_RANDOMPROBLEM_H
#define TEST_UNIT_PASSES_RANDOMPROBLEM_H

#include "passes/schedule/Problem.h"
#include "passes/schedule/Waits.h"

#include <random>

namespace mlir::fsdp::schedule {

struct RandomShape {
  int launches = 12, buffers = 6, streams = 3, persistent = 1, segments = 1;
};

/// A schedule without waits whose reads, in issue order, all follow a write of what they read;
/// elementwise launches may work in place. Without memory.
inline Problem makeRandomProblem(std::mt19937 &random, const RandomShape &shape) {
  auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  Role role{"all", {}, {}, {}, -1};
  for (int s = 0; s < shape.streams; ++s)
    role.streams.push_back("s" + std::to_string(s));
  for (int p = 0; p < shape.persistent; ++p)
    role.buffers.push_back({"p" + std::to_string(p), 4 * (1 + draw(60)), -1, -1});
  for (int g = 0; g < shape.segments; ++g) {
    Segment segment{"g" + std::to_string(g), {}, {}, true};
    for (int next = 0; next < shape.segments; ++next)
      segment.next.push_back(next);
    int base = static_cast<int>(role.buffers.size());
    for (int b = 0; b < shape.buffers; ++b)
      role.buffers.push_back({"b" + std::to_string(b), 64 * (1 + draw(6)), g, -1});
    std::vector<int> written; // buffers that are full
    for (int p = 0; p < shape.persistent; ++p)
      written.push_back(p);
    int fresh = base;
    for (int l = 0; l < shape.launches; ++l) {
      Launch launch;
      launch.name = "l" + std::to_string(l);
      launch.stream = draw(shape.streams);
      for (int r = draw(3); r > 0; --r) {
        int buffer = written[draw(static_cast<int>(written.size()))];
        Access read{buffer, 0, role.buffers[buffer].size};
        if (draw(3) == 0)
          read.begin = read.end / 2;
        bool known = false;
        for (const Access &other : launch.reads)
          known |= other.buffer == buffer;
        if (!known)
          launch.reads.push_back(read);
      }
      auto isRead = [&](int buffer) {
        for (const Access &read : launch.reads)
          if (read.buffer == buffer)
            return true;
        return false;
      };
      if (fresh < static_cast<int>(role.buffers.size()) && draw(4) != 0) {
        // A new buffer, of the size of an operand where it may take its place.
        if (!launch.reads.empty() && draw(2)) {
          role.buffers[fresh].size = role.buffers[launch.reads[0].buffer].size;
          if (!role.buffers[launch.reads[0].buffer].isPersistent())
            launch.inPlace.push_back({0, 0});
        }
        launch.writes.push_back({fresh, 0, role.buffers[fresh].size});
        written.push_back(fresh++);
      } else if (int old = written[draw(static_cast<int>(written.size()))]; !isRead(old)) {
        launch.writes.push_back({old, 0, role.buffers[old].size});
      }
      segment.launches.push_back(launch);
    }
    role.segments.push_back(segment);
  }
  return {{}, {role}};
}

/// The same with every wait that it needs, elided where implied.
inline Problem makeScheduledProblem(std::mt19937 &random, const RandomShape &shape) {
  Problem problem = makeRandomProblem(random, shape);
  for (Segment &segment : problem.roles[0].segments) {
    materializeWaits(segment);
    elideImpliedWaits(segment);
  }
  return problem;
}

} // namespace mlir::fsdp::schedule

#endif // TEST_UNIT_PASSES_RANDOMPROBLEM_H
