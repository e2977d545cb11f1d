//===- Simulator.h - when launches run --------------------------*- C++ -*-===//
// Simulates a schedule. A launch starts when all earlier launches of its stream and all launches
// that it waits for are complete; collectives of several roles start together. The host enqueues a
// step when the outputs of the previous step are available, so that launches after those outputs
// overlap with the next step. Concurrent launches share the device: each demands a part of it, and
// if the demands exceed the device, all progress in proportion.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_COST_SIMULATOR_H
#define PASSES_COST_SIMULATOR_H

#include "passes/schedule/Problem.h"

#include <string>
#include <vector>

namespace mlir::fsdp::cost {

/// The share of a rank's device that concurrent launches may use, and the share that each of them
/// uses.
struct Sharing {
  double capacity = 1;
  double computeDemand = 1, collectiveDemand = 0;
};

/// One run of a launch. Seconds from the begin of the simulated step, in the role that begins
/// first.
struct LaunchRun {
  int segment = 0, launch = 0;
  int run = 0; ///< of the segments of a step, in order
  double start = 0, end = 0;
};

/// How a stream spends a step.
struct StreamTime {
  std::string name;
  double busy = 0; ///< seconds with a launch on it
  /// Seconds with a collective on it while the rank computes nothing, on any stream.
  double exposed = 0;
};

/// A buffer that is not persistent, from the start of its first launch to the end of its last one,
/// or until a launch replaces it in place by another one.
struct BufferLife {
  int buffer = 0;
  double from = 0, to = 0; ///< seconds, as those of LaunchRun
};

/// One step of a role, in the steady state.
struct RoleTime {
  std::vector<LaunchRun> runs; ///< in issue order
  std::vector<StreamTime> streams;
  double computing = 0; ///< seconds in which a launch other than a collective runs
  double communicating = 0,
         exposed = 0; ///< seconds with collectives; of these, without concurrent computation
  /// Bytes of the arena that are live from each time on, persistent ones included, in a step that
  /// no other step follows.
  std::vector<std::pair<double, int64_t>> alive;
  std::vector<BufferLife> lives; ///< that `alive` adds up
};

struct Simulation {
  /// Seconds from the outputs of a step to those of the next one, in the role that has them last.
  double step = 0;
  int steps = 0;         ///< that were simulated; `roles` are of the last but one
  bool periodic = false; ///< the last two steps took equally long; else `step` is a mean
  std::vector<RoleTime> roles;
  /// Launches that can never start, of a problem that no checker accepts: nothing else is set.
  std::string fault;
};

/// The input of the simulation: the launches of a step of each role, and how long each takes alone.
struct SimulationInput {
  const schedule::Problem &problem;
  std::vector<std::vector<int>> steps; ///< [role]: segments in the order in which a step runs them
  std::vector<std::vector<std::vector<double>>> seconds; ///< [role][segment][launch]
  Sharing sharing;
  /// [communicator]: its groups have one rank. Collectives there are copies: they have the demand
  /// of computation, and count as computation. Empty: none.
  std::vector<bool> isAlone = {};
};

/// Simulates steps of a training program: 4, or 16 if the steps do not repeat by then.
Simulation simulate(const SimulationInput &input);

} // namespace mlir::fsdp::cost

#endif // PASSES_COST_SIMULATOR_H
