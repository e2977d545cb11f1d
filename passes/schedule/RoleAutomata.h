//===- RoleAutomata.h - the rules between roles -----------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_ROLEAUTOMATA_H
#define PASSES_SCHEDULE_ROLEAUTOMATA_H

#include "passes/schedule/Finding.h"
#include "passes/schedule/Reachability.h"

#include <map>

namespace mlir::fsdp::schedule {

/// Runs the segment graphs of all roles together. All go through segments of the same names; on a
/// communicator the n-th collective of each member matches the n-th of the others, which may be in
/// a later segment: a role may be ahead by collectives that are pending at a segment's end.
class RoleAutomata {
public:
  /// `orders`: of each segment of each role.
  RoleAutomata(const Problem &problem, const std::vector<std::vector<Reachability>> &orders,
               std::vector<Finding> &findings)
      : problem(problem), orders(orders), findings(findings) {}

  /// Segments of the same names, kinds and order in all roles, and the same walks. False if they
  /// differ: then the roles have no common paths.
  bool compareGraphs();
  /// Equal collectives in one order over every path, and no launches that wait for one another.
  void compareCollectives();

private:
  /// Collectives that one member of a communicator has issued and another has not.
  struct Pending {
    Collective request;
    End issuer;
    int number; ///< of those of the issuer's segment on the communicator
  };
  struct Queue {
    std::vector<Pending> pending; ///< beyond those that all have issued
    std::vector<size_t> ahead;    ///< for each role, how many of them it has issued
    bool isLike(const Queue &other) const;
  };
  /// Pending collectives, numbered through all communicators, as bits.
  using Needs = std::vector<bool>;
  /// At the start of a segment.
  struct RoleLag {
    std::vector<Queue> queues;              ///< of each communicator
    std::vector<std::vector<Needs>> tokens; ///< by role and token: the collectives it requires
    std::vector<Needs> pending;             ///< the collectives that a pending one requires
  };
  /// The launches of all roles in one segment; matching collectives are one node, with the
  /// dependencies of all of them.
  struct Graph {
    std::vector<std::vector<int>> nodeOf; ///< by role and launch
    std::vector<std::vector<int>> dependencies;
    std::vector<End> origins;
    int entry = 0; ///< the first nodes are those pending at the start
    int add(End origin);
  };

  RoleLag makeStart() const;
  bool match(const std::string &name, RoleLag &skew, Graph &graph,
             std::vector<std::vector<int>> &queueNodes);
  bool meet(const std::string &name, int role, int launch, RoleLag &skew, Graph &graph,
            std::vector<std::vector<int>> &queueNodes, std::vector<int> &numbers);
  void reportCircle(const Graph &graph, const std::vector<int> &circle);
  bool checkJoin(const std::string &name, const RoleLag &skew);
  bool checkEdge(const std::string &from, const std::string &to, const RoleLag &skew);
  RoleLag leave(const std::string &name, const RoleLag &entry, const RoleLag &now,
                const Graph &graph, const std::vector<std::vector<int>> &queueNodes) const;
  void compareSegments(int role);
  void compareWalks(int role);
  void reportLacking(int role, int lacking, int segment);

  const Launch &launchAt(End end) const {
    return problem.roles[end.role].segments[end.segment].launches[end.launch];
  }
  std::string describeEnd(End end) const;
  const Segment &segmentOf(int role, const std::string &name) const {
    return problem.roles[role].segments[segments[role].at(name)];
  }
  /// Adds a finding, unless another path has led to it before.
  void add(Fault fault, std::string message, End first, End second);

  const Problem &problem;
  const std::vector<std::vector<Reachability>> &orders;
  std::vector<Finding> &findings;
  std::vector<std::map<std::string, int>> segments; ///< by name, of each role
  /// The queues at the start of each segment, and the preceding segment: "" if the program starts
  /// with it.
  std::map<std::string, std::pair<std::vector<Queue>, std::string>> begins;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_ROLEAUTOMATA_H
