//===- RoleForm.cpp - indices and ranges exist, the arena holds all -------===//

#include "passes/schedule/DiagnosticText.h"
#include "passes/schedule/RoleChecker.h"

#include <algorithm>
#include <set>

using namespace mlir::fsdp::schedule;

static bool isInside(int index, size_t size) {
  return index >= 0 && static_cast<size_t>(index) < size;
}

void RoleChecker::checkLaunchForm(int s, int l) {
  const Segment &segment = role.segments[s];
  const Launch &launch = segment.launches[l];
  End at{roleIndex, s, l, -1};
  auto bad = [&](const std::string &what) {
    add(Fault::malformed, quote(launch.name) + " " + what, at, at);
  };
  if (!isInside(launch.stream, role.streams.size()))
    bad("runs on a stream that does not exist");
  if (launch.collective && !isInside(launch.collective->communicator, problem.communicators.size()))
    bad("uses a communicator that does not exist");
  else if (launch.collective) {
    const Communicator &where = problem.communicators[launch.collective->communicator];
    if (!std::count(where.roles.begin(), where.roles.end(), roleIndex))
      bad("uses communicator " + quote(where.name) + ", to which role " + quote(role.name) +
          " does not belong");
  }
  for (int wait : launch.waits)
    if (!isInside(wait, segment.launches.size()))
      bad("waits for a launch that does not exist");
  for (int event : launch.awaits)
    if (!isInside(event, role.events.size()))
      bad("waits for an event that does not exist");
  for (int event : launch.records)
    if (!isInside(event, role.events.size()))
      bad("records an event that does not exist");
  for (const std::vector<Access> *accesses : {&launch.reads, &launch.writes})
    for (const Access &access : *accesses) {
      if (!isInside(access.buffer, role.buffers.size())) {
        bad("uses a buffer that does not exist");
        continue;
      }
      const Buffer &buffer = role.buffers[access.buffer];
      End other{roleIndex, buffer.segment, -1, access.buffer};
      if (access.begin < 0 || access.begin > access.end || access.end > buffer.size)
        add(Fault::malformed,
            quote(launch.name) + " uses " + describeBytes(access.begin, access.end) + " of " +
                quote(buffer.name) + ", which has " + std::to_string(buffer.size),
            at, other);
      if (!buffer.isPersistent() && buffer.segment != s)
        add(Fault::malformed,
            quote(launch.name) + " uses " + quote(buffer.name) + " of another segment", at, other);
    }
  bool inside = true;
  for (auto [read, write] : launch.inPlace)
    inside &= isInside(read, launch.reads.size()) && isInside(write, launch.writes.size());
  inside &= launch.condition < 0 || isInside(launch.condition, launch.reads.size());
  for (int write : launch.clears)
    inside &= isInside(write, launch.writes.size());
  if (!inside)
    bad("works in place on operands that do not exist");
}

void RoleChecker::checkWalkForm() {
  auto follows = [&](int from, int to) {
    const std::vector<int> &next = role.segments[from].next;
    return std::count(next.begin(), next.end(), to) != 0;
  };
  for (const ExecutionPlan &walk : role.walks) {
    auto bad = [&](const std::string &what) {
      End at{roleIndex, -1, -1, -1};
      add(Fault::malformed, "walk " + quote(walk.name) + " " + what, at, at);
    };
    bool exists = !walk.segments.empty() && walk.times.size() == walk.segments.size();
    for (int segment : walk.segments)
      exists &= isInside(segment, role.segments.size());
    for (int64_t times : walk.times)
      exists &= times > 0;
    if (!exists) {
      bad("has no segments, or runs some that do not exist, or not a number of times");
      continue;
    }
    for (size_t i = 0; i < walk.segments.size(); ++i) {
      int from = walk.segments[i], to = walk.segments[(i + 1) % walk.segments.size()];
      if (walk.times[i] > 1 && !follows(from, from))
        to = from;
      if (!follows(from, to))
        bad("runs " + quote(role.segments[to].name) + " after " + quote(role.segments[from].name) +
            ", which it does not follow");
    }
  }
}

bool RoleChecker::checkForm() {
  size_t before = findings.size();
  std::set<std::string> names;
  for (size_t b = 0; b < role.buffers.size(); ++b)
    if (const Buffer &buffer = role.buffers[b];
        buffer.size < 0 ||
        (buffer.segment >= 0 && !isInside(buffer.segment, role.segments.size()))) {
      End at{roleIndex, -1, -1, static_cast<int>(b)};
      add(Fault::malformed, quote(buffer.name) + " has a size or a segment that does not exist", at,
          at);
    }
  for (size_t s = 0; s < role.segments.size(); ++s) {
    const Segment &segment = role.segments[s];
    End at{roleIndex, static_cast<int>(s), -1, -1};
    if (!names.insert(segment.name).second)
      add(Fault::malformed, "role " + quote(role.name) + " has two segments " + quote(segment.name),
          at, at);
    if (segment.next.empty())
      add(Fault::malformed, "segment " + quote(segment.name) + " is followed by nothing", at, at);
    for (int next : segment.next)
      if (!isInside(next, role.segments.size()))
        add(Fault::malformed,
            "segment " + quote(segment.name) + " is followed by number " + std::to_string(next) +
                ", which does not exist",
            at, at);
    for (size_t l = 0; l < segment.launches.size(); ++l)
      checkLaunchForm(static_cast<int>(s), static_cast<int>(l));
  }
  checkWalkForm();
  return findings.size() == before;
}

bool RoleChecker::checkArena() {
  size_t before = findings.size();
  std::vector<bool> used(role.buffers.size(), false);
  for (const Segment &segment : role.segments)
    for (const Launch &launch : segment.launches)
      for (const std::vector<Access> *accesses : {&launch.reads, &launch.writes})
        for (const Access &access : *accesses)
          used[access.buffer] = true;
  std::vector<std::pair<int64_t, int>> filled; // by offset
  for (size_t i = 0; i < role.buffers.size(); ++i) {
    const Buffer &buffer = role.buffers[i];
    End at{roleIndex, buffer.segment, -1, static_cast<int>(i)};
    if (buffer.offset < 0)
      add(Fault::outside,
          quote(buffer.name) + " has no offset in the arena of role " + quote(role.name), at, at);
    else if (buffer.offset % kAlignment != 0)
      add(Fault::outside,
          quote(buffer.name) + " is at " + std::to_string(buffer.offset) +
              " in the arena of role " + quote(role.name) + ", expected a multiple of " +
              std::to_string(kAlignment),
          at, at);
    else if (buffer.size > role.arena || buffer.offset > role.arena - buffer.size)
      add(Fault::outside,
          quote(buffer.name) + " takes " +
              describeBytes(buffer.offset, buffer.offset + buffer.size) + " of the arena of role " +
              quote(role.name) + ", which has " + std::to_string(role.arena),
          at, at);
    else if (buffer.isPersistent() && buffer.filled && buffer.size > 0)
      filled.push_back({buffer.offset, static_cast<int>(i)});
  }
  // The driver may read the buffers that it fills at any time, so their bytes must not be shared.
  std::sort(filled.begin(), filled.end());
  auto checkApart = [&](int kept, int other) {
    const Buffer &one = role.buffers[kept], &two = role.buffers[other];
    int64_t begin = std::max(one.offset, two.offset);
    int64_t end = std::min(one.offset + one.size, two.offset + two.size);
    if (begin < end)
      add(Fault::overlap,
          quote(two.name) + " shares " + describeBytes(begin, end) + " of the arena with " +
              quote(one.name) + ", which is persistent",
          {roleIndex, one.segment, -1, kept}, {roleIndex, two.segment, -1, other});
  };
  for (size_t i = 1; i < filled.size(); ++i)
    checkApart(filled[i - 1].second, filled[i].second);
  for (size_t b = 0; b < role.buffers.size(); ++b) {
    const Buffer &buffer = role.buffers[b];
    if (buffer.offset < 0 || !used[b] || (buffer.isPersistent() && buffer.filled))
      continue;
    auto at = std::upper_bound(filled.begin(), filled.end(),
                               std::make_pair(buffer.offset, static_cast<int>(b)));
    if (at != filled.begin())
      --at;
    for (; at != filled.end() && at->first < buffer.offset + buffer.size; ++at)
      checkApart(at->second, static_cast<int>(b));
  }
  return findings.size() == before;
}

bool RoleChecker::checkWaits(const std::vector<Reachability> &orders) {
  size_t before = findings.size();
  for (size_t s = 0; s < role.segments.size(); ++s) {
    const std::vector<Launch> &launches = role.segments[s].launches;
    auto end = [&](int launch) { return End{roleIndex, static_cast<int>(s), launch, -1}; };
    if (const std::vector<int> &circle = orders[s].getCircle(); !circle.empty()) {
      std::vector<std::string> names;
      for (int launch : circle)
        names.push_back(quote(launches[launch].name));
      add(Fault::deadlock, describeCircle(names), end(circle[0]), end(circle[1 % circle.size()]));
      continue;
    }
    for (size_t l = 0; l < launches.size(); ++l)
      for (int wait : launches[l].waits)
        if (wait > static_cast<int>(l))
          add(Fault::unissued,
              quote(launches[l].name) + " waits for " + quote(launches[wait].name) +
                  ", which is issued after it",
              end(static_cast<int>(l)), end(wait));
  }
  return findings.size() == before;
}
