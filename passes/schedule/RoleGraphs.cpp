//===- RoleGraphs.cpp - all roles go through the same segments ------------===//

#include "passes/schedule/DiagnosticText.h"
#include "passes/schedule/RoleAutomata.h"

#include <algorithm>
#include <set>

using namespace mlir::fsdp::schedule;

/// The names of the segments that may follow `segment`, in order.
static std::vector<std::string> getNextNames(const Role &role, const Segment &segment) {
  std::set<std::string> names;
  for (int next : segment.next)
    names.insert(role.segments[next].name);
  return {names.begin(), names.end()};
}

/// "train: first x 1, middle x 2", in order.
static std::vector<std::string> describeWalks(const Role &role) {
  std::vector<std::string> result;
  for (const ExecutionPlan &walk : role.walks) {
    std::string text = quote(walk.name) + " of";
    for (size_t i = 0; i < walk.segments.size(); ++i)
      text += (i == 0 ? " " : ", ") + quote(role.segments[walk.segments[i]].name) + " " +
              std::to_string(walk.times[i]) + (walk.times[i] == 1 ? " time" : " times");
    result.push_back(text);
  }
  std::sort(result.begin(), result.end());
  return result;
}

void RoleAutomata::reportLacking(int role, int lacking, int segment) {
  const Role &issuer = problem.roles[role];
  const Segment &where = issuer.segments[segment];
  for (size_t l = 0; l < where.launches.size(); ++l) {
    const Boxed<Collective> &collective = where.launches[l].collective;
    if (!collective)
      continue;
    const Communicator &communicator = problem.communicators[collective->communicator];
    if (!std::count(communicator.roles.begin(), communicator.roles.end(), lacking))
      continue;
    End at{role, segment, static_cast<int>(l), -1};
    add(Fault::collectives,
        "in segment " + quote(where.name) + ", " + describeEnd(at) + " on communicator " +
            quote(communicator.name) + ", but role " + quote(problem.roles[lacking].name) +
            " has no such segment",
        at, {lacking, -1, -1, -1});
    return;
  }
  add(Fault::segments,
      "role " + quote(problem.roles[lacking].name) + " has no segment " + quote(where.name) +
          ", which role " + quote(issuer.name) + " goes through",
      {role, segment, -1, -1}, {lacking, -1, -1, -1});
}

/// The program that drives all roles selects one segment name for all of them.
void RoleAutomata::compareSegments(int number) {
  const Role &one = problem.roles[0], &two = problem.roles[number];
  for (size_t s = 0; s < two.segments.size(); ++s)
    if (!segments[0].count(two.segments[s].name))
      reportLacking(number, 0, static_cast<int>(s));
  for (size_t s = 0; s < one.segments.size(); ++s) {
    const Segment &first = one.segments[s];
    auto found = segments[number].find(first.name);
    if (found == segments[number].end()) {
      reportLacking(0, number, static_cast<int>(s));
      continue;
    }
    const Segment &second = two.segments[found->second];
    End here{0, static_cast<int>(s), -1, -1}, there{number, found->second, -1, -1};
    std::string subject = "segment " + quote(first.name) + " of role " + quote(one.name);
    std::string other = ", but of role " + quote(two.name);
    if (first.kind != second.kind)
      add(Fault::segments,
          subject + " is of kind " + quote(first.kind) + other + " of kind " + quote(second.kind),
          here, there);
    if (first.joined != second.joined)
      add(Fault::segments,
          subject + (first.joined ? " is joined at its end" : " is not joined at its end") + other +
              (first.joined ? " not" : " it is"),
          here, there);
    std::vector<std::string> expected = getNextNames(one, first), got = getNextNames(two, second);
    if (expected != got)
      add(Fault::segments,
          subject + " is followed by " + quoteAll(expected) + other + " by " + quoteAll(got), here,
          there);
  }
}

void RoleAutomata::compareWalks(int number) {
  const Role &one = problem.roles[0], &two = problem.roles[number];
  std::vector<std::string> expected = describeWalks(one), got = describeWalks(two);
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    if (i < expected.size() && i < got.size() && expected[i] == got[i])
      continue;
    auto side = [&](const Role &role, const std::vector<std::string> &walks) {
      return "role " + quote(role.name) +
             (i < walks.size() ? " has walk " + walks[i] : " has none");
    };
    add(Fault::segments, side(one, expected) + ", but " + side(two, got), {0, -1, -1, -1},
        {number, -1, -1, -1});
    return;
  }
}

bool RoleAutomata::compareGraphs() {
  size_t before = findings.size();
  for (const Role &role : problem.roles) {
    segments.emplace_back();
    for (size_t s = 0; s < role.segments.size(); ++s)
      segments.back()[role.segments[s].name] = static_cast<int>(s);
  }
  for (int role = 1; role < static_cast<int>(problem.roles.size()); ++role) {
    compareSegments(role);
    compareWalks(role);
  }
  return findings.size() == before;
}
