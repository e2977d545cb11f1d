//===- RoleChecker.h - the rules inside one rank ----------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_ROLECHECKER_H
#define PASSES_SCHEDULE_ROLECHECKER_H

#include "passes/schedule/Checker.h"
#include "passes/schedule/HappensBefore.h"

namespace mlir::fsdp::schedule {

/// Checks the program of one role by itself and adds what it finds to `findings`.
class RoleChecker {
public:
  RoleChecker(const Problem &problem, int role, std::vector<Finding> &findings)
      : problem(problem), role(problem.roles[role]), roleIndex(role), findings(findings) {}

  /// False where indices or ranges do not exist: then nothing else may be asked.
  bool checkForm();
  void checkArena();
  /// Waits, races, unwritten reads, overlaps and order of collectives of one segment; false where
  /// its waits have no meaning.
  bool checkSegment(int segment);
  /// Races between a segment that is not joined and one that follows it.
  void checkEdge(int from, int to);

private:
  struct Use {
    int launch;
    Access access;
    bool write;
    int index; ///< in reads or writes of the launch
  };
  /// Launches of one or two segments in issue order, and their accesses by buffer.
  struct Line {
    std::vector<Launch> launches;
    std::vector<std::pair<int, int>> origin; ///< segment and index of each launch
    std::vector<bool> second;                ///< of the second segment, on an edge
    std::vector<std::vector<Use>> uses;      ///< per buffer
  };

  Line makeLine(const std::vector<int> &segments) const;
  bool checkWaits(int segment);
  void checkSameBuffer(const Line &line, const HappensBefore &order, bool acrossOnly);
  /// True where buffers that share bytes plainly follow one another. False says nothing yet.
  bool areApart(const Line &line, const HappensBefore &order) const;
  /// True iff `second` takes the place of `first` in a launch that may work in place, and else
  /// follows it.
  bool isReplaced(const Line &line, const HappensBefore &order, int first, int second) const;
  void checkOverlaps(const Line &line, const HappensBefore &order, bool acrossOnly);
  void checkWritten(const Line &line, const HappensBefore &order);
  void checkCollectiveOrder(const Line &line, const HappensBefore &order, bool acrossOnly);
  void checkMembers(int segment);
  void checkAdvance(int segment, const HappensBefore &order);
  bool mayWorkInPlace(const Line &line, const Use &read, const Use &write) const;
  End endOf(const Line &line, const Use &use) const;
  void add(Fault fault, std::string message, End first, End second);

  const Problem &problem;
  const Role &role;
  int roleIndex;
  std::vector<Finding> &findings;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_ROLECHECKER_H
