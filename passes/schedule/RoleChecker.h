//===- RoleChecker.h - the rules inside one rank ----------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_ROLECHECKER_H
#define PASSES_SCHEDULE_ROLECHECKER_H

#include "passes/schedule/Finding.h"
#include "passes/schedule/Reachability.h"

namespace mlir::fsdp::schedule {

/// Checks the program of one role and adds its faults to `findings`.
class RoleChecker {
public:
  RoleChecker(const Problem &problem, int role, std::vector<Finding> &findings)
      : problem(problem), role(problem.roles[role]), roleIndex(role), findings(findings) {}

  /// False if indices or ranges do not exist: then no other check may run.
  bool checkForm();
  /// Cyclic waits, or waits for launches that are not issued yet; false if there are any: then the
  /// order of launches is meaningless.
  bool checkWaits(const std::vector<Reachability> &orders);
  /// Accesses over the whole segment graph: the state at the start of each segment, merged over all
  /// edges, is followed until it changes no more; then each segment is checked once.
  void checkAccesses(const std::vector<Reachability> &orders);
  /// The bytes of flat storages that launches access.
  void checkMembers();
  /// Uses of the step's number after it was advanced, storages updated twice, and updates
  /// under conditions of other steps than theirs.
  void checkSteps();

private:
  void checkLaunchForm(int segment, int launch);
  void checkWalkForm();
  /// False if buffers are outside the arena, or overlap buffers that the driver has filled.
  bool checkArena();
  void checkAdvances();
  void checkUpdates();
  void add(Fault fault, std::string message, End first, End second) {
    findings.push_back({fault, std::move(message), first, second});
  }

  const Problem &problem;
  const Role &role;
  int roleIndex;
  std::vector<Finding> &findings;
};

/// The segments with which the program of `role` may start: the first of each walk. Without walks
/// each segment is one.
std::vector<int> getEntries(const Role &role);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_ROLECHECKER_H
