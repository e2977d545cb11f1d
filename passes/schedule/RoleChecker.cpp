//===- RoleChecker.cpp - waits, races, lives of buffers on one rank -------===//

#include "passes/schedule/RoleChecker.h"

#include <algorithm>
#include <map>
#include <set>

using namespace mlir::fsdp::schedule;

static std::string quote(const std::string &name) { return "'" + name + "'"; }

static std::string bytes(int64_t begin, int64_t end) {
  return "bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

void RoleChecker::add(Fault fault, std::string message, End first, End second) {
  findings.push_back({fault, std::move(message), first, second});
}

End RoleChecker::endOf(const Line &line, const Use &use) const {
  auto [segment, launch] = line.origin[use.launch];
  return {roleIndex, segment, launch, use.access.buffer};
}

//===----------------------------------------------------------------------===//
// Form and arena
//===----------------------------------------------------------------------===//

bool RoleChecker::checkForm() {
  size_t before = findings.size();
  auto inside = [](int index, size_t size) {
    return index >= 0 && static_cast<size_t>(index) < size;
  };
  for (size_t s = 0; s < role.segments.size(); ++s) {
    const Segment &segment = role.segments[s];
    End at{roleIndex, static_cast<int>(s), -1, -1};
    if (segment.next.empty())
      add(Fault::malformed, "segment " + quote(segment.name) + " is followed by nothing", at, at);
    for (int next : segment.next)
      if (!inside(next, role.segments.size()))
        add(Fault::malformed,
            "segment " + quote(segment.name) + " is followed by number " + std::to_string(next) +
                ", which does not exist",
            at, at);
    for (size_t l = 0; l < segment.launches.size(); ++l) {
      const Launch &launch = segment.launches[l];
      at.launch = static_cast<int>(l);
      auto bad = [&](const std::string &what) {
        add(Fault::malformed, quote(launch.name) + " " + what, at, at);
      };
      if (!inside(launch.stream, role.streams.size()))
        bad("runs on a stream that does not exist");
      if (launch.collective &&
          !inside(launch.collective->communicator, problem.communicators.size()))
        bad("uses a communicator that does not exist");
      else if (launch.collective) {
        const Communicator &where = problem.communicators[launch.collective->communicator];
        if (!std::count(where.roles.begin(), where.roles.end(), roleIndex))
          bad("uses communicator " + quote(where.name) + ", to which role " + quote(role.name) +
              " does not belong");
      }
      for (int wait : launch.waits)
        if (!inside(wait, segment.launches.size()))
          bad("waits for a launch that does not exist");
      for (const std::vector<Access> *accesses : {&launch.reads, &launch.writes})
        for (const Access &access : *accesses) {
          if (!inside(access.buffer, role.buffers.size())) {
            bad("uses a buffer that does not exist");
            continue;
          }
          const Buffer &buffer = role.buffers[access.buffer];
          End other{roleIndex, buffer.segment, -1, access.buffer};
          if (access.begin < 0 || access.begin > access.end || access.end > buffer.size)
            add(Fault::malformed,
                quote(launch.name) + " uses " + bytes(access.begin, access.end) + " of " +
                    quote(buffer.name) + ", which has " + std::to_string(buffer.size),
                at, other);
          if (!buffer.isPersistent() && buffer.segment != static_cast<int>(s))
            add(Fault::malformed,
                quote(launch.name) + " uses " + quote(buffer.name) + " of another segment", at,
                other);
        }
      for (auto [read, write] : launch.inPlace)
        if (!inside(read, launch.reads.size()) || !inside(write, launch.writes.size()))
          bad("works in place on operands that do not exist");
    }
  }
  return findings.size() == before;
}

void RoleChecker::checkArena() {
  for (size_t i = 0; i < role.buffers.size(); ++i) {
    const Buffer &buffer = role.buffers[i];
    End at{roleIndex, buffer.segment, -1, static_cast<int>(i)};
    if (buffer.offset < 0)
      add(Fault::outside, quote(buffer.name) + " has no offset in the arena of role " +
                              quote(role.name), at, at);
    else if (buffer.offset % kAlignment != 0)
      add(Fault::outside, quote(buffer.name) + " stands at " + std::to_string(buffer.offset) +
                              " in the arena of role " + quote(role.name) +
                              ", expected a multiple of " + std::to_string(kAlignment), at, at);
    else if (buffer.offset + buffer.size > role.arena)
      add(Fault::outside, quote(buffer.name) + " takes " +
                              bytes(buffer.offset, buffer.offset + buffer.size) +
                              " of the arena of role " + quote(role.name) + ", which has " +
                              std::to_string(role.arena), at, at);
  }
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

bool RoleChecker::checkWaits(int segment) {
  const std::vector<Launch> &launches = role.segments[segment].launches;
  HappensBefore order(launches);
  auto end = [&](int launch) { return End{roleIndex, segment, launch, -1}; };
  if (!order.cycle().empty()) {
    const std::vector<int> &cycle = order.cycle();
    std::string message = quote(launches[cycle[0]].name);
    for (size_t i = 1; i <= cycle.size(); ++i)
      message += std::string(i == 1 ? " waits for " : ", which waits for ") +
                 quote(launches[cycle[i % cycle.size()]].name);
    add(Fault::deadlock, message + ": none of them ever starts", end(cycle[0]),
        end(cycle[1 % cycle.size()]));
    return false;
  }
  bool good = true;
  for (size_t l = 0; l < launches.size(); ++l)
    for (int wait : launches[l].waits)
      if (wait > static_cast<int>(l)) {
        add(Fault::unissued,
            quote(launches[l].name) + " waits for " + quote(launches[wait].name) +
                ", which is issued after it",
            end(static_cast<int>(l)), end(wait));
        good = false;
      }
  return good;
}

void RoleChecker::checkCollectiveOrder(const Line &line, const HappensBefore &order,
                                       bool acrossOnly) {
  const std::vector<Launch> &launches = line.launches;
  auto end = [&](int l) {
    return End{roleIndex, line.origin[l].first, line.origin[l].second, -1};
  };
  std::map<int, int> last;
  for (int l = 0; l < static_cast<int>(launches.size()); ++l) {
    if (!launches[l].collective)
      continue;
    int communicator = launches[l].collective->communicator;
    auto [entry, first] = last.try_emplace(communicator, l);
    if (first)
      continue;
    bool across = line.second[entry->second] != line.second[l];
    if ((across || !acrossOnly) && !order.before(entry->second, l))
      add(Fault::collectives,
          quote(launches[entry->second].name) + " and " + quote(launches[l].name) +
              " meet other ranks on communicator " + quote(problem.communicators[communicator].name) +
              " in no fixed order; let the second wait for the first",
          end(entry->second), end(l));
    entry->second = l;
  }
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

RoleChecker::Line RoleChecker::makeLine(const std::vector<int> &segments) const {
  Line line;
  line.uses.resize(role.buffers.size());
  for (size_t part = 0; part < segments.size(); ++part) {
    int segment = segments[part];
    int base = static_cast<int>(line.launches.size());
    const std::vector<Launch> &launches = role.segments[segment].launches;
    for (size_t l = 0; l < launches.size(); ++l) {
      Launch launch = launches[l];
      for (int &wait : launch.waits)
        wait += base;
      int at = base + static_cast<int>(l);
      for (size_t i = 0; i < launch.reads.size(); ++i)
        line.uses[launch.reads[i].buffer].push_back(
            {at, launch.reads[i], false, static_cast<int>(i)});
      for (size_t i = 0; i < launch.writes.size(); ++i)
        line.uses[launch.writes[i].buffer].push_back(
            {at, launch.writes[i], true, static_cast<int>(i)});
      line.launches.push_back(std::move(launch));
      line.origin.push_back({segment, static_cast<int>(l)});
      line.second.push_back(part == 1);
    }
  }
  return line;
}

bool RoleChecker::mayWorkInPlace(const Line &line, const Use &read, const Use &write) const {
  if (read.launch != write.launch || read.write || !write.write)
    return false;
  const Launch &launch = line.launches[read.launch];
  int64_t from = role.buffers[read.access.buffer].offset + read.access.begin;
  int64_t to = role.buffers[write.access.buffer].offset + write.access.begin;
  bool same = read.access.end - read.access.begin == write.access.end - write.access.begin &&
              (read.access == write.access ||
               (role.arena >= 0 && read.access.buffer != write.access.buffer && from == to));
  return same && std::count(launch.inPlace.begin(), launch.inPlace.end(),
                            std::make_pair(read.index, write.index)) != 0;
}

void RoleChecker::checkSameBuffer(const Line &line, const HappensBefore &order, bool acrossOnly) {
  for (size_t b = 0; b < line.uses.size(); ++b) {
    const std::vector<Use> &uses = line.uses[b];
    for (size_t i = 0; i < uses.size(); ++i)
      for (size_t j = i + 1; j < uses.size(); ++j) {
        const Use &first = uses[i], &second = uses[j];
        if (!(first.write || second.write) || !first.access.overlaps(second.access))
          continue;
        if (acrossOnly && line.second[first.launch] == line.second[second.launch])
          continue;
        if (order.before(first.launch, second.launch) || order.before(second.launch, first.launch))
          continue;
        if (mayWorkInPlace(line, first, second) || mayWorkInPlace(line, second, first))
          continue;
        std::string where = bytes(std::max(first.access.begin, second.access.begin),
                                  std::min(first.access.end, second.access.end)) +
                            " of " + quote(role.buffers[b].name);
        const std::string &a = line.launches[first.launch].name;
        const std::string &c = line.launches[second.launch].name;
        std::string message;
        if (first.launch == second.launch)
          message = quote(a) + (first.write ? " writes " : " reads and writes ") + where +
                    (first.write ? " twice" : ", but cannot work in place there");
        else
          message = quote(a) + (first.write ? " writes " : " reads ") + where + " while " +
                    quote(c) + (second.write ? " may write" : " may read") +
                    " them; let one wait for the other";
        add(Fault::race, message, endOf(line, first), endOf(line, second));
      }
  }
}

bool RoleChecker::isReplaced(const Line &line, const HappensBefore &order, int first,
                             int second) const {
  int at = -1;
  for (const Use &use : line.uses[second])
    at = at < 0 ? use.launch : std::min(at, use.launch);
  const Use *read = nullptr, *write = nullptr;
  for (const Use &use : line.uses[first]) {
    if (use.launch == at && read)
      return false;
    if (use.launch == at)
      read = &use;
    else if (!order.before(use.launch, at))
      return false;
  }
  for (const Use &use : line.uses[second]) {
    if (use.launch == at && write)
      return false;
    if (use.launch == at)
      write = &use;
    else if (!order.before(at, use.launch))
      return false;
  }
  return read && write && mayWorkInPlace(line, *read, *write);
}

bool RoleChecker::areApart(const Line &line, const HappensBefore &order) const {
  struct Edge {
    int64_t offset;
    bool begins; ///< after what ends there
    int buffer;
    bool operator<(const Edge &other) const {
      return std::make_pair(offset, begins) < std::make_pair(other.offset, other.begins);
    }
  };
  std::vector<Edge> edges;
  std::vector<LiveRange> lives(role.buffers.size());
  for (size_t b = 0; b < role.buffers.size(); ++b) {
    const Buffer &buffer = role.buffers[b];
    if (buffer.offset < 0 || buffer.size == 0 ||
        (!buffer.isPersistent() && line.uses[b].empty()))
      continue;
    edges.push_back({buffer.offset, true, static_cast<int>(b)});
    edges.push_back({buffer.offset + buffer.size, false, static_cast<int>(b)});
    lives[b] = LiveRange(order);
    for (const Use &use : line.uses[b])
      lives[b].touch(order, use.launch);
  }
  std::stable_sort(edges.begin(), edges.end());
  // Along the arena: the buffers at one byte, in the order of their lives. As one follows another
  // whichever stands between, neighbours are enough.
  std::set<std::pair<int, int>> here;
  int persistent = 0;
  auto follows = [&](int first, int second) {
    return lives[first].before(lives[second]) || isReplaced(line, order, first, second);
  };
  for (const Edge &edge : edges) {
    std::pair<int, int> entry{lives[edge.buffer].firstLaunch(), edge.buffer};
    bool stays = role.buffers[edge.buffer].isPersistent();
    if (!edge.begins) {
      here.erase(entry);
      persistent -= stays;
      continue;
    }
    if (persistent > 0 || (stays && !here.empty()))
      return false;
    persistent += stays;
    auto at = here.insert(entry).first;
    if (at != here.begin() && !follows(std::prev(at)->second, edge.buffer))
      return false;
    if (std::next(at) != here.end() && !follows(edge.buffer, std::next(at)->second))
      return false;
  }
  return true;
}

void RoleChecker::checkOverlaps(const Line &line, const HappensBefore &order, bool acrossOnly) {
  if (!acrossOnly && areApart(line, order))
    return;
  auto placed = [&](size_t b) { return role.buffers[b].offset >= 0; };
  // Pairs that share bytes, found along the arena.
  std::vector<std::pair<int64_t, int>> byOffset;
  for (size_t b = 0; b < role.buffers.size(); ++b)
    if (placed(b) && (role.buffers[b].isPersistent() || !line.uses[b].empty()))
      byOffset.push_back({role.buffers[b].offset, static_cast<int>(b)});
  std::sort(byOffset.begin(), byOffset.end());
  for (size_t i = 0; i < byOffset.size(); ++i) {
    int a = byOffset[i].second;
    const Buffer &first = role.buffers[a];
    for (size_t j = i + 1; j < byOffset.size(); ++j) {
      int b = byOffset[j].second;
      const Buffer &second = role.buffers[b];
      int64_t begin = second.offset, end = std::min(first.offset + first.size,
                                                    second.offset + second.size);
      if (begin >= first.offset + first.size)
        break;
      if (begin >= end)
        continue;
      std::string where = bytes(begin, end) + " of the arena";
      if (first.isPersistent() || second.isPersistent()) {
        const Buffer &kept = first.isPersistent() ? first : second;
        const Buffer &other = first.isPersistent() ? second : first;
        if (!acrossOnly)
          add(Fault::overlap,
              quote(other.name) + " shares " + where + " with " + quote(kept.name) +
                  ", which is persistent",
              {roleIndex, first.segment, -1, a}, {roleIndex, second.segment, -1, b});
        continue;
      }
      // The accesses that touch the shared bytes: all of one buffer before all of the other.
      auto touching = [&](int buffer) {
        std::vector<Use> uses;
        int64_t offset = role.buffers[buffer].offset;
        for (const Use &use : line.uses[buffer])
          if (offset + use.access.begin < end && begin < offset + use.access.end)
            uses.push_back(use);
        return uses;
      };
      std::vector<Use> ofA = touching(a), ofB = touching(b);
      const Use *worst = nullptr, *partner = nullptr;
      auto allBefore = [&](const std::vector<Use> &left, const std::vector<Use> &right) {
        for (const Use &x : left)
          for (const Use &y : right)
            if ((!acrossOnly || (!line.second[x.launch] && line.second[y.launch])) &&
                !order.before(x.launch, y.launch) && !mayWorkInPlace(line, x, y)) {
              worst = &x;
              partner = &y;
              return false;
            }
        return true;
      };
      // On an edge, what the first segment does with either must be before what the second does.
      bool good = acrossOnly ? allBefore(ofA, ofB) && allBefore(ofB, ofA)
                             : allBefore(ofA, ofB) || allBefore(ofB, ofA);
      if (good)
        continue;
      add(Fault::overlap,
          quote(first.name) + " and " + quote(second.name) + " share " + where + ", but " +
              quote(line.launches[worst->launch].name) + " uses " +
              quote(role.buffers[worst->access.buffer].name) + " and " +
              quote(line.launches[partner->launch].name) + " uses " +
              quote(role.buffers[partner->access.buffer].name) + " while both are live",
          endOf(line, *worst), endOf(line, *partner));
    }
  }
}

void RoleChecker::checkWritten(const Line &line, const HappensBefore &order) {
  for (size_t b = 0; b < line.uses.size(); ++b) {
    if (role.buffers[b].isPersistent())
      continue;
    for (const Use &read : line.uses[b]) {
      if (read.write)
        continue;
      // Writers without an order are races, reported as such; they count as written here.
      std::vector<std::pair<int64_t, int64_t>> written;
      const Use *late = nullptr;
      for (const Use &write : line.uses[b]) {
        if (!write.write || !write.access.overlaps(read.access))
          continue;
        if (write.launch == read.launch || order.before(read.launch, write.launch))
          late = &write;
        else
          written.push_back({write.access.begin, write.access.end});
      }
      std::sort(written.begin(), written.end());
      int64_t covered = read.access.begin;
      for (auto [from, to] : written)
        if (from <= covered)
          covered = std::max(covered, to);
      if (covered >= read.access.end)
        continue;
      int64_t until = read.access.end;
      for (auto [from, to] : written)
        if (from > covered)
          until = std::min(until, from);
      std::string message = quote(line.launches[read.launch].name) + " reads " +
                            bytes(covered, until) + " of " + quote(role.buffers[b].name) +
                            ", which " +
                            (late ? quote(line.launches[late->launch].name) + " writes only later"
                                  : std::string("nothing has written"));
      End other{roleIndex, role.buffers[b].segment, -1, static_cast<int>(b)};
      add(Fault::unwritten, message, endOf(line, read), late ? endOf(line, *late) : other);
    }
  }
}

bool RoleChecker::checkSegment(int segment) {
  if (!checkWaits(segment))
    return false;
  Line line = makeLine({segment});
  HappensBefore order(line.launches);
  checkSameBuffer(line, order, /*acrossOnly=*/false);
  checkWritten(line, order);
  if (role.arena >= 0)
    checkOverlaps(line, order, /*acrossOnly=*/false);
  checkCollectiveOrder(line, order, /*acrossOnly=*/false);
  checkMembers(segment);
  checkAdvance(segment, order);
  return true;
}

void RoleChecker::checkEdge(int from, int to) {
  if (role.segments[from].joined)
    return; // everything of `from` is complete before anything of `to`
  Line line = makeLine({from, to});
  HappensBefore order(line.launches);
  checkSameBuffer(line, order, /*acrossOnly=*/true);
  checkCollectiveOrder(line, order, /*acrossOnly=*/true);
  if (role.arena >= 0)
    checkOverlaps(line, order, /*acrossOnly=*/true);
}
