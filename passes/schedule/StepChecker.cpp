//===- StepChecker.cpp - what launches read: members, the step ------------===//

#include "passes/schedule/RoleChecker.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

static std::string quote(const std::string &name) { return "'" + name + "'"; }

/// A launch may touch a flat storage as a whole, a part of one member, or, to fill it, padding.
void RoleChecker::checkMembers(int segment) {
  const std::vector<Launch> &launches = role.segments[segment].launches;
  auto check = [&](int number, const Access &access, bool write) {
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
        quote(launches[number].name) + (write ? " writes" : " reads") + " bytes [" +
            std::to_string(access.begin) + ", " + std::to_string(access.end) + ") of " +
            quote(buffer.name) + ", which are " +
            (padding ? "padding behind its members" : "not inside one of its members"),
        {roleIndex, segment, number, access.buffer}, {roleIndex, buffer.segment, -1, access.buffer});
  };
  for (int l = 0; l < static_cast<int>(launches.size()); ++l) {
    for (const Access &access : launches[l].reads)
      check(l, access, false);
    for (const Access &access : launches[l].writes)
      check(l, access, true);
  }
}

/// What uses the step's number is complete before it is advanced. (Uses without an order are races.)
void RoleChecker::checkAdvance(int segment, const HappensBefore &order) {
  const std::vector<Launch> &launches = role.segments[segment].launches;
  for (int a = 0; a < static_cast<int>(launches.size()); ++a) {
    if (launches[a].step != StepUse::advances)
      continue;
    for (int l = 0; l < static_cast<int>(launches.size()); ++l)
      if (launches[l].step != StepUse::none && order.before(a, l))
        add(Fault::advanced,
            quote(launches[l].name) + " uses the step's number after " + quote(launches[a].name) +
                " has advanced it; advance last",
            {roleIndex, segment, l, -1}, {roleIndex, segment, a, -1});
  }
}
