//===- Checker.cpp - all rules, in the order in which they have meaning ---===//

#include "passes/schedule/Checker.h"
#include "passes/schedule/DiagnosticText.h"
#include "passes/schedule/RoleAutomata.h"
#include "passes/schedule/RoleChecker.h"

using namespace mlir::fsdp::schedule;

std::string mlir::fsdp::schedule::describe(const Collective &collective) {
  std::string text = collective.kind;
  if (!collective.arguments.empty())
    text += " " + collective.arguments;
  text += " of ";
  if (!collective.type.empty()) {
    text += collective.given;
    if (collective.received != collective.given)
      text += " -> " + collective.received;
    text += " " + collective.type + ", ";
  }
  return text + std::to_string(collective.bytes) + " bytes";
}

std::string mlir::fsdp::schedule::describeCircle(const std::vector<std::string> &names) {
  std::string text = names[0];
  for (size_t i = 1; i <= names.size(); ++i)
    text += (i == 1 ? " waits for " : ", which waits for ") + names[i % names.size()];
  return text + ": none of them ever starts";
}

std::vector<Finding> mlir::fsdp::schedule::checkSchedule(const Problem &problem) {
  std::vector<Finding> findings;
  std::vector<RoleChecker> checkers;
  for (size_t r = 0; r < problem.roles.size(); ++r)
    checkers.emplace_back(problem, static_cast<int>(r), findings);
  bool formed = true, ordered = true;
  for (const Communicator &communicator : problem.communicators)
    for (int role : communicator.roles)
      if (role < 0 || role >= static_cast<int>(problem.roles.size())) {
        findings.push_back(
            {Fault::malformed,
             "communicator " + quote(communicator.name) + " has a role that does not exist",
             {0},
             {0}});
        formed = false;
      }
  for (RoleChecker &checker : checkers)
    formed &= checker.checkForm();
  if (!formed)
    return findings;
  std::vector<std::vector<Reachability>> orders;
  for (size_t r = 0; r < problem.roles.size(); ++r) {
    orders.emplace_back();
    for (const Segment &segment : problem.roles[r].segments)
      orders[r].emplace_back(problem.roles[r], segment);
    ordered &= checkers[r].checkWaits(orders[r]);
  }
  if (!ordered)
    return findings;
  for (size_t r = 0; r < problem.roles.size(); ++r) {
    if (problem.roles[r].sameInside >= 0)
      continue;
    checkers[r].checkAccesses(orders[r]);
    checkers[r].checkMembers();
    checkers[r].checkSteps();
  }
  if (problem.roles.size() > 1)
    if (RoleAutomata automata(problem, orders, findings); automata.compareGraphs())
      automata.compareCollectives();
  return findings;
}
