//===- Checker.cpp - the rules between roles ------------------------------===//

#include "passes/schedule/Checker.h"
#include "passes/schedule/HappensBefore.h"
#include "passes/schedule/RoleChecker.h"

#include <algorithm>
#include <map>

using namespace mlir::fsdp::schedule;

namespace {

struct Participant {
  int role, segment;
};

std::string quote(const std::string &name) { return "'" + name + "'"; }

std::string describe(const Collective &collective) {
  std::string text = collective.kind;
  if (!collective.reduction.empty())
    text += " " + collective.reduction;
  text += " of ";
  if (!collective.type.empty())
    text += std::to_string(collective.elements) + " " + collective.type + ", ";
  text += std::to_string(collective.bytes) + " bytes";
  if (collective.dim >= 0)
    text += ", in parts of " + std::to_string(collective.part) + " along dimension " +
            std::to_string(collective.dim);
  return text;
}

/// The launches of a segment on `communicator`, in issue order.
std::vector<int> onCommunicator(const Segment &segment, int communicator) {
  std::vector<int> result;
  for (size_t l = 0; l < segment.launches.size(); ++l)
    if (segment.launches[l].collective &&
        segment.launches[l].collective->communicator == communicator)
      result.push_back(static_cast<int>(l));
  return result;
}

/// Adds a finding where two roles issue different collectives; true if there is none.
bool compareCollectives(const Problem &problem, const std::vector<Participant> &participants,
                        int communicator, std::vector<Finding> &findings) {
  const Participant &one = participants[0];
  const Role &firstRole = problem.roles[one.role];
  const Segment &firstSegment = firstRole.segments[one.segment];
  std::vector<int> expected = onCommunicator(firstSegment, communicator);
  for (size_t p = 1; p < participants.size(); ++p) {
    const Participant &two = participants[p];
    const Role &secondRole = problem.roles[two.role];
    const Segment &secondSegment = secondRole.segments[two.segment];
    std::vector<int> got = onCommunicator(secondSegment, communicator);
    for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
      int a = i < expected.size() ? expected[i] : -1, b = i < got.size() ? got[i] : -1;
      if (a >= 0 && b >= 0 &&
          firstSegment.launches[a].collective == secondSegment.launches[b].collective)
        continue;
      auto side = [&](const Role &role, const Segment &segment, int launch) {
        return launch < 0 ? "role " + quote(role.name) + " issues nothing"
                          : "role " + quote(role.name) + " issues " +
                                quote(segment.launches[launch].name) + " (" +
                                describe(*segment.launches[launch].collective) + ")";
      };
      findings.push_back({Fault::collectives,
                          "as number " + std::to_string(i) + " on communicator " +
                              quote(problem.communicators[communicator].name) + " in segment " +
                              quote(firstSegment.name) + ", " + side(firstRole, firstSegment, a) +
                              ", but " + side(secondRole, secondSegment, b),
                          {one.role, one.segment, a, -1},
                          {two.role, two.segment, b, -1}});
      return false;
    }
  }
  return true;
}

/// Adds a finding for each role of a communicator that lacks a segment in which another role issues
/// a collective on it.
void checkLackingRoles(const Problem &problem, const std::vector<Participant> &participants,
                       int communicator, std::vector<Finding> &findings) {
  for (int role : problem.communicators[communicator].roles) {
    auto isRole = [&](const Participant &participant) { return participant.role == role; };
    if (std::any_of(participants.begin(), participants.end(), isRole))
      continue;
    for (const Participant &other : participants) {
      const Role &issuer = problem.roles[other.role];
      const Segment &segment = issuer.segments[other.segment];
      std::vector<int> issued = onCommunicator(segment, communicator);
      if (issued.empty())
        continue;
      const Launch &launch = segment.launches[issued.front()];
      findings.push_back({Fault::collectives,
                          "in segment " + quote(segment.name) + ", role " + quote(issuer.name) +
                              " issues " + quote(launch.name) + " (" +
                              describe(*launch.collective) + ") on communicator " +
                              quote(problem.communicators[communicator].name) + ", but role " +
                              quote(problem.roles[role].name) + " has no such segment",
                          {other.role, other.segment, issued.front(), -1},
                          {role, -1, -1, -1}});
      break;
    }
  }
}

/// The names of the segments that may follow `segment`, in order.
std::vector<std::string> nextNames(const Role &role, const Segment &segment) {
  std::vector<std::string> names;
  for (int next : segment.next)
    names.push_back(role.segments[next].name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Every rank goes through segments of the same names and kinds: the program that drives them picks
/// one name for all.
void compareSegments(const Problem &problem, const std::vector<Participant> &participants,
                     std::vector<Finding> &findings) {
  const Participant &one = participants[0];
  const Role &firstRole = problem.roles[one.role];
  const Segment &first = firstRole.segments[one.segment];
  auto list = [](const std::vector<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
      text += (text.empty() ? "" : ", ") + quote(name);
    return text;
  };
  for (size_t p = 1; p < participants.size(); ++p) {
    const Participant &two = participants[p];
    const Role &secondRole = problem.roles[two.role];
    const Segment &second = secondRole.segments[two.segment];
    End here{one.role, one.segment, -1, -1}, there{two.role, two.segment, -1, -1};
    std::string subject = "segment " + quote(first.name) + " of role " + quote(firstRole.name);
    std::string other = ", but of role " + quote(secondRole.name);
    if (first.kind != second.kind)
      findings.push_back({Fault::segments,
                          subject + " is of kind " + quote(first.kind) + other + " of kind " +
                              quote(second.kind),
                          here, there});
    std::vector<std::string> expected = nextNames(firstRole, first),
                             got = nextNames(secondRole, second);
    if (expected != got)
      findings.push_back({Fault::segments,
                          subject + " is followed by " + list(expected) + other + " by " +
                              list(got),
                          here, there});
  }
}

/// Looks for launches of several roles that wait for one another through collectives: collectives
/// that meet are one node, which needs all that any of them needs.
void checkMeetings(const Problem &problem, const std::vector<Participant> &participants,
                   std::vector<Finding> &findings) {
  std::vector<std::vector<int>> nodeOf(participants.size());
  std::vector<std::vector<int>> dependencies;
  std::vector<std::pair<size_t, int>> origin;
  std::map<std::pair<int, size_t>, int> meetings;
  for (size_t p = 0; p < participants.size(); ++p) {
    const Segment &segment =
        problem.roles[participants[p].role].segments[participants[p].segment];
    std::map<int, size_t> count;
    for (size_t l = 0; l < segment.launches.size(); ++l) {
      int node = static_cast<int>(dependencies.size());
      if (const std::optional<Collective> &collective = segment.launches[l].collective) {
        size_t number = count[collective->communicator]++;
        node = meetings.try_emplace({collective->communicator, number}, node).first->second;
      }
      if (node == static_cast<int>(dependencies.size())) {
        dependencies.emplace_back();
        origin.push_back({p, static_cast<int>(l)});
      }
      nodeOf[p].push_back(node);
    }
    std::map<int, int> last;
    for (size_t l = 0; l < segment.launches.size(); ++l) {
      int node = nodeOf[p][l];
      for (int wait : segment.launches[l].waits)
        dependencies[node].push_back(nodeOf[p][wait]);
      auto [entry, first] = last.try_emplace(segment.launches[l].stream, node);
      if (!first)
        dependencies[node].push_back(entry->second);
      entry->second = node;
    }
  }
  std::vector<int> order;
  std::vector<int> cycle = findCycle(dependencies, order);
  if (cycle.empty())
    return;
  std::string message;
  auto end = [&](int node) {
    const Participant &at = participants[origin[node].first];
    return End{at.role, at.segment, origin[node].second, -1};
  };
  for (size_t i = 0; i <= cycle.size(); ++i) {
    End at = end(cycle[i % cycle.size()]);
    const Role &role = problem.roles[at.role];
    message += (i == 0 ? "" : i == 1 ? " waits for " : ", which waits for ") +
               quote(role.segments[at.segment].launches[at.launch].name) + " of role " +
               quote(role.name);
  }
  findings.push_back({Fault::deadlock, message + ": none of them ever starts", end(cycle[0]),
                      end(cycle[1 % cycle.size()])});
}

} // namespace

std::vector<Finding> mlir::fsdp::schedule::checkSchedule(const Problem &problem) {
  std::vector<Finding> findings;
  // Segments of one name run at the same time in all roles.
  std::map<std::string, std::vector<Participant>> together;
  bool formed = true, ordered = true;
  for (size_t r = 0; r < problem.roles.size(); ++r)
    formed &= RoleChecker(problem, static_cast<int>(r), findings).checkForm();
  if (!formed)
    return findings;
  for (size_t r = 0; r < problem.roles.size(); ++r) {
    const Role &role = problem.roles[r];
    RoleChecker checker(problem, static_cast<int>(r), findings);
    if (role.arena >= 0)
      checker.checkArena();
    bool meaningful = true;
    for (size_t s = 0; s < role.segments.size(); ++s) {
      meaningful &= checker.checkSegment(static_cast<int>(s));
      together[role.segments[s].name].push_back({static_cast<int>(r), static_cast<int>(s)});
    }
    if (meaningful)
      for (size_t s = 0; s < role.segments.size(); ++s)
        for (int next : role.segments[s].next)
          checker.checkEdge(static_cast<int>(s), next);
    ordered &= meaningful;
  }
  if (!ordered || problem.roles.size() < 2)
    return findings;

  for (const auto &[name, participants] : together) {
    bool agree = true;
    compareSegments(problem, participants, findings);
    for (size_t c = 0; c < problem.communicators.size(); ++c)
      checkLackingRoles(problem, participants, static_cast<int>(c), findings);
    for (size_t c = 0; c < problem.communicators.size(); ++c) {
      std::vector<Participant> members;
      for (const Participant &participant : participants)
        if (std::count(problem.communicators[c].roles.begin(),
                       problem.communicators[c].roles.end(), participant.role))
          members.push_back(participant);
      if (members.size() > 1)
        agree &= compareCollectives(problem, members, static_cast<int>(c), findings);
    }
    if (agree)
      checkMeetings(problem, participants, findings);
  }
  return findings;
}
