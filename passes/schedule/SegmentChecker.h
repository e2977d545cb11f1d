//===- SegmentChecker.h - checks one segment on its start state -*- C++ -*-===//

#ifndef PASSES_SCHEDULE_SEGMENTCHECKER_H
#define PASSES_SCHEDULE_SEGMENTCHECKER_H

#include "passes/schedule/ByteMap.h"
#include "passes/schedule/Finding.h"
#include "passes/schedule/InFlight.h"

namespace mlir::fsdp::schedule {

/// The state at the start of a segment, merged over all paths.
struct State {
  bool reached = false; ///< by some path
  InFlight inFlight;
  ByteMap bytes;
};

/// The static data of a role: numbers of launches, and addresses of buffers. Every communicator has
/// one byte after the arena, which collectives on it write: so their order is checked like that of
/// writes.
class RoleMemory {
public:
  /// `planned`: buffers are at their offsets; else each has separate bytes.
  RoleMemory(const Problem &problem, const Role &role, bool planned);

  int launchNumber(int segment, int launch) const { return firstLaunch[segment] + launch; }
  int numLaunches() const { return firstLaunch.back(); }
  /// The segment and the index there of a launch.
  std::pair<int, int> launchAt(int number) const;
  int64_t addressOf(int buffer) const { return addresses[buffer]; }
  int64_t addressOfCommunicator(int communicator) const { return communicators + communicator; }
  /// At the start of the program: nothing is in flight, and filled buffers are written.
  State makeStart() const;

private:
  const Role &role;
  std::vector<int> firstLaunch; ///< of each segment, and the end
  std::vector<int64_t> addresses;
  int64_t communicators, size;
};

/// Runs the launches of one segment in issue order on the state at its start.
class SegmentChecker {
public:
  SegmentChecker(const Problem &problem, int role, int segment, const RoleMemory &memory,
                 const Reachability &order, Completions &completions)
      : problem(problem), role(problem.roles[role]), roleIndex(role), segment(segment),
        memory(memory), order(order), completions(completions) {}

  /// From the state at the start, the state at the end. With `findings`, also reports faults;
  /// `whereUnwritten(byte)` describes the entry of the segment at which that byte is unwritten.
  State run(const State &start, std::vector<Finding> *findings,
            llvm::function_ref<std::string(int64_t)> whereUnwritten);

private:
  struct Conflict {
    int other; ///< number of the launch
    bool write;
    int64_t begin, end; ///< addresses
  };

  bool isDone(int other) const;
  void read(const Access &access);
  void write(const Access &access);
  void meet(int communicator);
  void checkItself();
  void addConflict(std::vector<Conflict> &conflicts, const NumberSet &others, bool write,
                   int64_t begin, int64_t end) const;
  void report(const Access &access, bool write, const std::vector<Conflict> &conflicts);
  void reportContents(const Access &access, int64_t begin, int64_t end, const Cell &cell);
  int bufferOf(const Conflict &conflict) const;
  std::string remedy(int other) const;
  End endOf(int number, int buffer) const;
  const Launch &launchOf(int number) const;
  void add(Fault fault, std::string message, End first, End second) {
    findings->push_back({fault, std::move(message), first, second});
  }

  const Problem &problem;
  const Role &role;
  int roleIndex, segment;
  const RoleMemory &memory;
  const Reachability &order;
  Completions &completions;
  // While it runs:
  const State *start = nullptr;
  State state;
  int launch = 0;
  std::vector<Finding> *findings = nullptr;
  llvm::function_ref<std::string(int64_t)> whereUnwritten;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_SEGMENTCHECKER_H
