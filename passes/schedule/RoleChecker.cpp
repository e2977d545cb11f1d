//===- RoleChecker.cpp - accesses over the segment graph ------------------===//

#include "passes/schedule/RoleChecker.h"
#include "passes/schedule/DiagnosticText.h"
#include "passes/schedule/SegmentChecker.h"

#include <algorithm>
#include <set>

using namespace mlir::fsdp::schedule;

std::vector<int> mlir::fsdp::schedule::getEntries(const Role &role) {
  std::set<int> entries;
  for (const ExecutionPlan &walk : role.walks)
    entries.insert(walk.segments.front());
  if (role.walks.empty())
    for (size_t s = 0; s < role.segments.size(); ++s)
      entries.insert(static_cast<int>(s));
  return {entries.begin(), entries.end()};
}

/// Adds the facts of `from` to `to`; true iff `to` changes.
static bool merge(State &to, const State &from, Completions &completions) {
  if (!to.reached) {
    to = from;
    return true;
  }
  bool more = false;
  for (size_t g = 0; g < to.inFlight.size(); ++g) {
    int both = completions.merge(to.inFlight[g], from.inFlight[g]);
    more |= both != to.inFlight[g];
    to.inFlight[g] = both;
  }
  more |= to.bytes.merge(from.bytes);
  return more;
}

void RoleChecker::checkAccesses(const std::vector<Reachability> &orders) {
  bool planned = role.arena >= 0 && checkArena();
  RoleMemory memory(problem, role, planned);
  Completions completions(static_cast<int>(role.streams.size()));
  size_t size = role.segments.size();
  std::vector<State> starts(size), ends(size);
  std::vector<int> entries = getEntries(role), open;
  State start = memory.makeStart();
  for (int entry : entries)
    merge(starts[entry], start, completions);
  open = entries;
  auto checkerOf = [&](int segment) {
    return SegmentChecker(problem, roleIndex, segment, memory, orders[segment], completions);
  };
  while (!open.empty()) {
    int segment = open.back();
    open.pop_back();
    ends[segment] = checkerOf(segment).run(starts[segment], nullptr, {});
    for (int next : role.segments[segment].next)
      if (merge(starts[next], ends[segment], completions) &&
          !std::count(open.begin(), open.end(), next))
        open.push_back(next);
  }
  for (int s = 0; s < static_cast<int>(size); ++s) {
    const std::string name = quote(role.segments[s].name);
    if (!starts[s].reached) {
      End at{roleIndex, s, -1, -1};
      add(Fault::segments,
          "segment " + name + " of role " + quote(role.name) +
              " is never reached: no walk begins with it and no reached segment has it as 'next'",
          at, at);
      continue;
    }
    auto whereUnwritten = [&](int64_t byte) {
      auto lacks = [&](const State &state) {
        const NumberSet &owners = state.bytes.at(byte).owners;
        return state.reached && std::count(owners.begin(), owners.end(), Cell::unwritten);
      };
      if (std::count(entries.begin(), entries.end(), s) && lacks(start))
        return "where the program starts with segment " + name;
      for (size_t from = 0; from < size; ++from) {
        const std::vector<int> &next = role.segments[from].next;
        if (std::count(next.begin(), next.end(), s) && lacks(ends[from]))
          return "where segment " + name + " follows " + quote(role.segments[from].name);
      }
      return std::string("before");
    };
    checkerOf(s).run(starts[s], &findings, whereUnwritten);
  }
}
