//===- StepChecker.cpp - checks of members, advances and updates ----------===//

#include "passes/schedule/DiagnosticText.h"
#include "passes/schedule/RoleChecker.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

using namespace mlir::fsdp::schedule;

/// A launch may touch a flat storage as a whole, a part of one member, or, to fill it, padding.
void RoleChecker::checkMembers() {
  auto check = [&](int segment, int number, const Access &access, bool write) {
    const Buffer &buffer = role.buffers[access.buffer];
    bool whole = access.begin == 0 && access.end == buffer.size;
    if (buffer.members.empty() || whole || access.begin == access.end)
      return;
    bool padding = true;
    for (auto [begin, end] : buffer.members) {
      if (begin <= access.begin && access.end <= end)
        return;
      padding &= access.end <= begin || end <= access.begin;
    }
    if (padding && write)
      return;
    add(Fault::members,
        quote(role.segments[segment].launches[number].name) + (write ? " writes " : " reads ") +
            describeBytes(access.begin, access.end) + " of " + quote(buffer.name) + ", which are " +
            (padding ? "padding behind its members" : "not inside one of its members"),
        {roleIndex, segment, number, access.buffer},
        {roleIndex, buffer.segment, -1, access.buffer});
  };
  for (int s = 0; s < static_cast<int>(role.segments.size()); ++s)
    for (int l = 0; l < static_cast<int>(role.segments[s].launches.size()); ++l) {
      for (const Access &access : role.segments[s].launches[l].reads)
        check(s, l, access, false);
      for (const Access &access : role.segments[s].launches[l].writes)
        check(s, l, access, true);
    }
}

/// The number of the step is advanced once in a step, a walk, and nothing uses it from there to the
/// end of the walk. (Uses that may run at the same time are races.)
void RoleChecker::checkAdvances() {
  std::vector<std::vector<int>> walks;
  std::set<int> walked;
  for (const ExecutionPlan &walk : role.walks) {
    std::vector<int> &segments = walks.emplace_back();
    for (size_t i = 0; i < walk.segments.size(); ++i) {
      segments.push_back(walk.segments[i]);
      if (walk.times[i] > 1)
        segments.push_back(walk.segments[i]);
      walked.insert(walk.segments[i]);
    }
  }
  for (int s = 0; s < static_cast<int>(role.segments.size()); ++s)
    if (!walked.count(s))
      walks.push_back({s});
  std::set<std::array<int, 4>> known;
  for (const std::vector<int> &walk : walks) {
    End advance;
    for (int s : walk)
      for (int l = 0; l < static_cast<int>(role.segments[s].launches.size()); ++l) {
        const Launch &launch = role.segments[s].launches[l];
        if (launch.step == StepUse::none)
          continue;
        End here{roleIndex, s, l, -1};
        if (advance.role >= 0 && known.insert({s, l, advance.segment, advance.launch}).second)
          add(Fault::advanced,
              quote(launch.name) + " uses the step's number after " +
                  quote(role.segments[advance.segment].launches[advance.launch].name) +
                  " has advanced it; advance last",
              here, advance);
        if (launch.step == StepUse::advances)
          advance = here;
      }
  }
}

namespace {
/// For each storage the launches, segment and index, that may have updated it since the last
/// advance.
using Updated = std::map<std::string, std::set<std::pair<int, int>>>;

/// When a condition may have been computed last.
enum ConditionAge { thisStep = 1, earlierStep = 2 };

/// The state for updates under the condition of a buffer, or -1 for unconditional ones. A
/// condition that has since been cleared hides earlier updates.
struct Condition {
  Updated updated;
  int ages = 0; ///< of ConditionAge; none where it is cleared, or nothing has been computed

  bool operator==(const Condition &other) const {
    return ages == other.ages && updated == other.updated;
  }
};
using Conditions = std::map<int, Condition>;
} // namespace

/// A storage is updated once between two advances, over all paths; a cycle that updates it must
/// therefore advance in between. Only deferred updates depend on the condition of an earlier step.
void RoleChecker::checkUpdates() {
  Conditions nothing{{-1, {}}};
  bool any = false;
  for (const Segment &segment : role.segments)
    for (const Launch &launch : segment.launches)
      if (!launch.updates.empty()) {
        any = true;
        nothing[launch.condition < 0 ? -1 : launch.reads[launch.condition].buffer];
      }
  if (!any)
    return;
  auto run = [&](int s, Conditions state, bool report) {
    const std::vector<Launch> &launches = role.segments[s].launches;
    for (int l = 0; l < static_cast<int>(launches.size()); ++l) {
      const Launch &launch = launches[l];
      if (launch.step == StepUse::advances)
        for (auto &[buffer, condition] : state)
          condition = {{}, condition.ages ? earlierStep : 0};
      for (const std::string &storage : launch.updates) {
        const Condition &condition =
            state[launch.condition < 0 ? -1 : launch.reads[launch.condition].buffer];
        End own{roleIndex, s, l, -1};
        if (report && (condition.ages & (launch.deferred ? thisStep : earlierStep)))
          add(Fault::updated,
              quote(launch.name) + " updates storage " + quote(storage) + " if a condition of " +
                  (launch.deferred ? "its own step holds; remove 'deferred'"
                                   : "an earlier step holds; mark it 'deferred'"),
              own, own);
        auto before = condition.updated.find(storage);
        if (before != condition.updated.end() && report)
          for (auto [segment, index] : before->second) {
            const std::string &first = role.segments[segment].launches[index].name;
            std::string text =
                segment == s && index == l
                    ? " again, but nothing advances the step between; end the step with "
                      "'fsdp.advance'"
                    : " in the step in which " + quote(first) +
                          " has updated it; update it once before each advance";
            add(Fault::updated, quote(launch.name) + " updates storage " + quote(storage) + text,
                own, {roleIndex, segment, index, -1});
          }
        for (auto &[buffer, other] : state)
          other.updated[storage] = {{s, l}};
      }
      for (size_t w = 0; w < launch.writes.size(); ++w) {
        auto condition = state.find(launch.writes[w].buffer);
        if (condition == state.end())
          continue;
        bool clears = std::count(launch.clears.begin(), launch.clears.end(), static_cast<int>(w));
        condition->second = clears ? Condition() : Condition{state[-1].updated, thisStep};
      }
    }
    return state;
  };
  std::vector<Conditions> starts(role.segments.size());
  std::vector<int> open;
  for (int entry : getEntries(role)) {
    starts[entry] = nothing;
    open.push_back(entry);
  }
  while (!open.empty()) {
    int segment = open.back();
    open.pop_back();
    Conditions end = run(segment, starts[segment], false);
    for (int next : role.segments[segment].next) {
      Conditions both = starts[next];
      for (const auto &[buffer, condition] : end) {
        both[buffer].ages |= condition.ages;
        for (const auto &[storage, launches] : condition.updated)
          both[buffer].updated[storage].insert(launches.begin(), launches.end());
      }
      if (both != starts[next]) {
        starts[next] = std::move(both);
        open.push_back(next);
      }
    }
  }
  for (size_t s = 0; s < role.segments.size(); ++s)
    if (!starts[s].empty())
      run(static_cast<int>(s), starts[s], true);
}

void RoleChecker::checkSteps() {
  checkAdvances();
  checkUpdates();
}
