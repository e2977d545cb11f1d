//===- RoleAutomata.cpp - collectives that meet over every path -----------===//

#include "passes/schedule/RoleAutomata.h"

#include "passes/schedule/DiagnosticText.h"
#include "passes/schedule/RoleChecker.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

void RoleAutomata::add(Fault fault, std::string message, End first, End second) {
  if (llvm::none_of(findings, [&](const Finding &known) { return known.message == message; }))
    findings.push_back({fault, std::move(message), first, second});
}

std::string RoleAutomata::describeEnd(End end) const {
  const Launch &launch = launchAt(end);
  return "role " + quote(problem.roles[end.role].name) + " issues " + quote(launch.name) + " (" +
         describe(*launch.collective) + ")";
}

bool RoleAutomata::Queue::isLike(const Queue &other) const {
  return ahead == other.ahead &&
         std::equal(pending.begin(), pending.end(), other.pending.begin(), other.pending.end(),
                    [](const Pending &a, const Pending &b) { return a.request == b.request; });
}

int RoleAutomata::Graph::add(End origin) {
  dependencies.emplace_back();
  origins.push_back(origin);
  return static_cast<int>(origins.size()) - 1;
}

RoleAutomata::RoleLag RoleAutomata::makeStart() const {
  RoleLag skew;
  for (size_t c = 0; c < problem.communicators.size(); ++c)
    skew.queues.push_back({{}, std::vector<size_t>(problem.roles.size(), 0)});
  for (const Role &role : problem.roles)
    skew.tokens.emplace_back(Tokens(role).size());
  return skew;
}

//===----------------------------------------------------------------------===//
// One segment
//===----------------------------------------------------------------------===//

/// The node of a collective; adds a finding, and returns false, if it differs from the collective
/// that it matches.
bool RoleAutomata::meet(const std::string &name, int role, int launch, RoleLag &skew, Graph &graph,
                        std::vector<std::vector<int>> &queueNodes, std::vector<int> &numbers) {
  End here{role, segments[role].at(name), launch, -1};
  const Collective &request = *launchAt(here).collective;
  int communicator = request.communicator;
  Queue &queue = skew.queues[communicator];
  int number = numbers[communicator]++;
  size_t position = queue.ahead[role]++;
  if (position == queue.pending.size()) {
    queue.pending.push_back({request, here, number});
    queueNodes[communicator].push_back(graph.add(here));
  }
  graph.nodeOf[role].push_back(queueNodes[communicator][position]);
  const Pending &other = queue.pending[position];
  if (other.request == request)
    return true;
  const std::string &theirs = problem.roles[other.issuer.role].segments[other.issuer.segment].name;
  std::string communicatorName = quote(problem.communicators[communicator].name);
  std::string text =
      theirs == name && other.number == number
          ? "as number " + std::to_string(number) + " on communicator " + communicatorName +
                " in segment " + quote(name) + ", " + describeEnd(other.issuer) + ", but "
          : "on communicator " + communicatorName + ", " + describeEnd(other.issuer) +
                " as number " + std::to_string(other.number) + " of segment " + quote(theirs) +
                ", but it is matched with number " + std::to_string(number) + " of segment " +
                quote(name) + ": ";
  add(Fault::collectives, text + describeEnd(here), other.issuer, here);
  return false;
}

/// Adds the launches of segment `name` of all roles to `graph` and moves `skew` to its end, where
/// collectives that all have issued are still in the queues. False if collectives differ.
bool RoleAutomata::match(const std::string &name, RoleLag &skew, Graph &graph,
                         std::vector<std::vector<int>> &queueNodes) {
  for (size_t c = 0; c < skew.queues.size(); ++c) {
    queueNodes.emplace_back();
    for (const Pending &pending : skew.queues[c].pending)
      queueNodes[c].push_back(graph.add(pending.issuer));
  }
  graph.entry = static_cast<int>(graph.origins.size());
  auto dependOn = [&](int node, const Needs &needs) {
    for (size_t i = 0; i < needs.size(); ++i)
      if (needs[i])
        graph.dependencies[node].push_back(static_cast<int>(i));
  };
  for (int node = 0; node < graph.entry; ++node)
    dependOn(node, skew.pending[node]);
  for (int role = 0; role < static_cast<int>(problem.roles.size()); ++role) {
    graph.nodeOf.emplace_back();
    const Segment &segment = segmentOf(role, name);
    int number = segments[role].at(name);
    const Reachability &order = orders[role][number];
    std::vector<int> numbers(skew.queues.size(), 0);
    for (int l = 0; l < static_cast<int>(segment.launches.size()); ++l) {
      const Boxed<Collective> &collective = segment.launches[l].collective;
      if (!collective || problem.communicators[collective->communicator].roles.size() < 2)
        graph.nodeOf[role].push_back(graph.add({role, number, l, -1}));
      else if (!meet(name, role, l, skew, graph, queueNodes, numbers))
        return false;
      int node = graph.nodeOf[role].back();
      for (int dependency : order.getDependencies(l))
        graph.dependencies[node].push_back(graph.nodeOf[role][dependency]);
      for (int token : order.getEntryTokens(l))
        dependOn(node, skew.tokens[role][token]);
    }
  }
  return true;
}

void RoleAutomata::reportCircle(const Graph &graph, const std::vector<int> &circle) {
  std::vector<std::string> names;
  for (int node : circle) {
    const Launch &launch = launchAt(graph.origins[node]);
    names.push_back(quote(launch.name) + " of role " +
                    quote(problem.roles[graph.origins[node].role].name));
    if (!launch.collective || !launch.collective->transfer)
      continue;
    const std::vector<int> &ends = problem.communicators[launch.collective->communicator].roles;
    names.back() += " (from " + quote(problem.roles[ends[0]].name) + " to " +
                    quote(problem.roles[ends[1]].name) + ")";
  }
  add(Fault::deadlock, describeCircle(names), graph.origins[circle[0]],
      graph.origins[circle[1 % circle.size()]]);
}

/// The skew at the end of a segment: the pending collectives, and the launches that need them.
RoleAutomata::RoleLag RoleAutomata::leave(const std::string &name, const RoleLag &entry,
                                          const RoleLag &now, const Graph &graph,
                                          const std::vector<std::vector<int>> &queueNodes) const {
  RoleLag end = makeStart();
  std::vector<int> pendingNodes;
  for (size_t c = 0; c < now.queues.size(); ++c) {
    const Queue &queue = now.queues[c];
    size_t least = queue.pending.size();
    for (int role : problem.communicators[c].roles)
      least = std::min(least, queue.ahead[role]);
    for (size_t i = least; i < queue.pending.size(); ++i) {
      end.queues[c].pending.push_back(queue.pending[i]);
      pendingNodes.push_back(queueNodes[c][i]);
    }
    for (int role : problem.communicators[c].roles)
      end.queues[c].ahead[role] = queue.ahead[role] - least;
  }
  if (pendingNodes.empty())
    return end; // all can complete
  std::vector<Needs> needs(graph.origins.size(), Needs(pendingNodes.size(), false));
  for (size_t i = 0; i < pendingNodes.size(); ++i)
    needs[pendingNodes[i]][i] = true;
  auto add = [](Needs &to, const Needs &from) {
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = to[i] || from[i];
  };
  // The graph has no cycle: dependencies first, depth first.
  std::vector<char> done(graph.origins.size(), 0);
  for (size_t start = 0; start < done.size(); ++start) {
    std::vector<std::pair<int, size_t>> path{{static_cast<int>(start), 0}};
    while (!path.empty()) {
      auto &[node, next] = path.back();
      if (done[node] || next == graph.dependencies[node].size()) {
        for (int dependency : graph.dependencies[node])
          add(needs[node], needs[dependency]);
        done[node] = 1;
        path.pop_back();
        continue;
      }
      int dependency = graph.dependencies[node][next++];
      if (!done[dependency])
        path.push_back({dependency, 0});
    }
  }
  for (size_t i = 0; i < pendingNodes.size(); ++i) {
    end.pending.push_back(needs[pendingNodes[i]]);
    end.pending.back()[i] = false;
  }
  for (size_t role = 0; role < end.tokens.size(); ++role) {
    const Reachability &order = orders[role][segments[role].at(name)];
    for (size_t token = 0; token < end.tokens[role].size(); ++token) {
      Needs &own = end.tokens[role][token];
      own.assign(pendingNodes.size(), false);
      const Needs &before = entry.tokens[role][token];
      if (int definer = order.getDefiner(static_cast<int>(token)); definer >= 0)
        own = needs[graph.nodeOf[role][definer]];
      else
        for (size_t i = 0; i < before.size(); ++i)
          if (before[i])
            add(own, needs[i]);
    }
  }
  return end;
}

//===----------------------------------------------------------------------===//
// All paths
//===----------------------------------------------------------------------===//

/// No collective may be pending where all streams are joined: the join would wait for collectives
/// that another role issues only after it.
bool RoleAutomata::checkJoin(const std::string &name, const RoleLag &skew) {
  bool good = true;
  for (size_t c = 0; c < skew.queues.size(); ++c) {
    const Queue &queue = skew.queues[c];
    if (queue.pending.empty())
      continue;
    good = false;
    const Pending &first = queue.pending[0];
    const std::vector<int> &members = problem.communicators[c].roles;
    int behind = *std::find_if(members.begin(), members.end(),
                               [&](int role) { return queue.ahead[role] == 0; });
    const std::string &issued =
        problem.roles[first.issuer.role].segments[first.issuer.segment].name;
    add(Fault::collectives,
        "as number " + std::to_string(first.number) + " on communicator " +
            quote(problem.communicators[c].name) + " in segment " + quote(issued) + ", " +
            describeEnd(first.issuer) + ", but role " + quote(problem.roles[behind].name) +
            " issues nothing" +
            (issued == name ? ""
                            : " before the end of segment " + quote(name) + ", which is joined"),
        first.issuer, {behind, segments[behind].at(name), -1, -1});
  }
  return good;
}

/// The pending collectives at the start of a segment do not depend on the path to it.
bool RoleAutomata::checkEdge(const std::string &from, const std::string &to, const RoleLag &skew) {
  auto [entry, added] = begins.try_emplace(to, skew.queues, from);
  if (added)
    return true;
  const auto &[expected, origin] = entry->second;
  for (size_t c = 0; c < skew.queues.size(); ++c) {
    const Queue &one = expected[c], &two = skew.queues[c];
    if (one.isLike(two))
      continue;
    size_t at = 0;
    while (at < one.pending.size() && at < two.pending.size() &&
           one.pending[at].request == two.pending[at].request)
      ++at;
    const std::vector<int> &members = problem.communicators[c].roles;
    auto behind = [&](const Queue &queue) {
      return *std::min_element(members.begin(), members.end(),
                               [&](int a, int b) { return queue.ahead[a] < queue.ahead[b]; });
    };
    auto side = [&](const Queue &queue, const std::string &source) {
      std::string text = std::to_string(queue.pending.size()) + " collectives pending";
      if (at < queue.pending.size())
        text += ", of which " + describeEnd(queue.pending[at].issuer) + " and role " +
                quote(problem.roles[behind(queue)].name) + " nothing";
      return text + (source.empty() ? " where the program starts with it"
                                    : " where it follows " + quote(source));
    };
    auto end = [&](const Queue &queue, const Queue &other, const std::string &source) {
      if (at < queue.pending.size())
        return queue.pending[at].issuer;
      const int role = behind(other);
      return End{role, segments[role].at(source.empty() ? to : source), -1, -1};
    };
    add(Fault::collectives,
        "segment " + quote(to) + " begins on communicator " + quote(problem.communicators[c].name) +
            " with " + side(one, origin) + ", but with " + side(two, from) +
            "; let all roles issue the same number on every path",
        end(two, one, from), end(one, two, origin));
    return false;
  }
  return true;
}

void RoleAutomata::compareCollectives() {
  struct Visit {
    std::string name;
    RoleLag skew;
  };
  std::vector<Visit> visits;
  size_t next = 0;
  auto enter = [&](const std::string &from, const std::string &to, const RoleLag &skew) {
    if (!checkEdge(from, to, skew))
      return;
    for (const Visit &known : visits)
      if (known.name == to && known.skew.tokens == skew.tokens &&
          known.skew.pending == skew.pending)
        return;
    visits.push_back({to, skew});
  };
  const Role &first = problem.roles[0];
  for (int segment : getEntries(first))
    enter("", first.segments[segment].name, makeStart());
  for (; next < visits.size(); ++next) {
    Visit visit = visits[next];
    RoleLag skew = visit.skew;
    Graph graph;
    std::vector<std::vector<int>> queueNodes;
    if (!match(visit.name, skew, graph, queueNodes))
      continue;
    if (std::vector<int> circle = findCircle(graph.dependencies); !circle.empty()) {
      reportCircle(graph, circle);
      continue;
    }
    RoleLag end = leave(visit.name, visit.skew, skew, graph, queueNodes);
    const Segment &segment = segmentOf(0, visit.name);
    if (segment.joined && !checkJoin(visit.name, end))
      continue;
    for (int after : segment.next)
      enter(visit.name, first.segments[after].name, end);
  }
}
