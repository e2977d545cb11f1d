//===- SegmentChecker.cpp -------------------------------------------------===//

#include "passes/schedule/SegmentChecker.h"

#include "passes/schedule/DiagnosticText.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

RoleMemory::RoleMemory(const Problem &problem, const Role &role, bool planned) : role(role) {
  int launches = 0;
  for (const Segment &segment : role.segments) {
    firstLaunch.push_back(launches);
    launches += static_cast<int>(segment.launches.size());
  }
  firstLaunch.push_back(launches);
  int64_t next = 0;
  for (const Buffer &buffer : role.buffers) {
    addresses.push_back(planned ? buffer.offset : next);
    next += buffer.size;
  }
  communicators = planned ? role.arena : next;
  size = communicators + static_cast<int64_t>(problem.communicators.size());
}

std::pair<int, int> RoleMemory::launchAt(int number) const {
  auto after = std::upper_bound(firstLaunch.begin(), firstLaunch.end(), number);
  int segment = static_cast<int>(after - firstLaunch.begin()) - 1;
  return {segment, number - firstLaunch[segment]};
}

State RoleMemory::makeStart() const {
  State state{true, InFlight(numLaunches(), 0), ByteMap(size)};
  for (size_t b = 0; b < role.buffers.size(); ++b)
    if (const Buffer &buffer = role.buffers[b]; buffer.isPersistent() && buffer.filled)
      state.bytes.assign(addresses[b], addresses[b] + buffer.size, {{static_cast<int>(b)}, {}, {}});
  return state;
}

//===----------------------------------------------------------------------===//
// The run
//===----------------------------------------------------------------------===//

bool SegmentChecker::isDone(int other) const {
  int first = memory.launchNumber(segment, 0), index = other - first;
  if (index >= 0 && index < launch)
    return order.before(index, launch);
  // A run of the same launch before this one is on its stream.
  return index == launch || isComplete(completions, start->inFlight[other], order, launch);
}

void SegmentChecker::read(const Access &access) {
  int64_t base = memory.addressOf(access.buffer);
  int own = memory.launchNumber(segment, launch);
  std::vector<Conflict> conflicts;
  Cell wrong;
  int64_t wrongBegin = 0, wrongEnd = -1;
  auto flush = [&] {
    if (wrongBegin < wrongEnd)
      reportContents(access, wrongBegin, wrongEnd, wrong);
    wrongEnd = -1;
  };
  state.bytes.visit(base + access.begin, base + access.end,
                    [&](int64_t begin, int64_t end, Cell &cell) {
                      if (findings) {
                        bool right = cell.owners.size() == 1 && cell.owners[0] == access.buffer;
                        bool taken = llvm::any_of(cell.owners, [&](int owner) {
                          return owner != access.buffer && owner != Cell::unwritten;
                        });
                        if (!right && wrongEnd == begin && wrong.owners == cell.owners &&
                            wrong.writers == cell.writers) {
                          wrongEnd = end;
                        } else if (!right) {
                          flush();
                          wrong = cell;
                          wrongBegin = begin;
                          wrongEnd = end;
                        }
                        // If another buffer overwrote the bytes, its writer has been reported.
                        if (!taken)
                          addConflict(conflicts, cell.writers, /*write=*/true, begin, end);
                      }
                      // A launch that follows this one follows the erased readers as well.
                      llvm::erase_if(cell.readers, [&](int reader) { return isDone(reader); });
                      insertNumber(cell.readers, own);
                    });
  flush();
  report(access, /*write=*/false, conflicts);
}

void SegmentChecker::write(const Access &access) {
  int64_t base = memory.addressOf(access.buffer);
  std::vector<Conflict> conflicts;
  if (findings)
    state.bytes.visit(base + access.begin, base + access.end,
                      [&](int64_t begin, int64_t end, Cell &cell) {
                        addConflict(conflicts, cell.writers, /*write=*/true, begin, end);
                        addConflict(conflicts, cell.readers, /*write=*/false, begin, end);
                      });
  state.bytes.assign(base + access.begin, base + access.end,
                     {{access.buffer}, {memory.launchNumber(segment, launch)}, {}});
  report(access, /*write=*/true, conflicts);
}

void SegmentChecker::meet(int communicator) {
  int64_t at = memory.addressOfCommunicator(communicator);
  int own = memory.launchNumber(segment, launch);
  if (findings)
    for (int other : state.bytes.at(at).writers)
      if (!isDone(other))
        add(Fault::collectives,
            quote(launchOf(other).name) + " and " + quote(launchOf(own).name) +
                " communicate on communicator " + quote(problem.communicators[communicator].name) +
                " in no fixed order; " + remedy(other),
            endOf(other, -1), endOf(own, -1));
  state.bytes.assign(at, at + 1, {{}, {own}, {}});
}

State SegmentChecker::run(const State &start, std::vector<Finding> *findings,
                          llvm::function_ref<std::string(int64_t)> whereUnwritten) {
  this->start = &start;
  this->findings = findings;
  this->whereUnwritten = whereUnwritten;
  state = start;
  const Segment &own = role.segments[segment];
  int size = static_cast<int>(own.launches.size());
  for (launch = 0; launch < size; ++launch) {
    const Launch &current = own.launches[launch];
    if (findings)
      checkItself();
    for (const Access &access : current.reads)
      read(access);
    for (const Access &access : current.writes)
      write(access);
    if (current.collective)
      meet(current.collective->communicator);
  }
  if (own.joined)
    state.inFlight.assign(start.inFlight.size(), 0);
  else
    state.inFlight = leave(start.inFlight, completions, Tokens(role), order,
                           memory.launchNumber(segment, 0), size);
  state.bytes.transform([&](Cell &cell) {
    llvm::erase_if(cell.readers, [&](int reader) { return state.inFlight[reader] == 0; });
    // The contents of a segment's buffer end with the segment.
    NumberSet owners;
    for (int owner : cell.owners)
      insertNumber(owners,
                   owner >= 0 && !role.buffers[owner].isPersistent() ? Cell::unwritten : owner);
    cell.owners = owners;
  });
  return std::move(state);
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

const Launch &SegmentChecker::launchOf(int number) const {
  auto [s, l] = memory.launchAt(number);
  return role.segments[s].launches[l];
}

End SegmentChecker::endOf(int number, int buffer) const {
  auto [s, l] = memory.launchAt(number);
  return {roleIndex, s, l, buffer};
}

/// How to order the launch after `other`, for a message.
std::string SegmentChecker::remedy(int other) const {
  int index = other - memory.launchNumber(segment, 0);
  if (index >= 0 && index < launch)
    return "let the second wait for the first";
  auto [s, l] = memory.launchAt(other);
  return "let the second wait for an event that the first, of the run of segment " +
         quote(role.segments[s].name) + " before, records";
}

void SegmentChecker::addConflict(std::vector<Conflict> &conflicts, const NumberSet &others,
                                 bool write, int64_t begin, int64_t end) const {
  for (int other : others) {
    if (isDone(other))
      continue;
    auto touches = [&](const Conflict &conflict) {
      return conflict.other == other && conflict.write == write && conflict.end == begin;
    };
    auto known = std::find_if(conflicts.begin(), conflicts.end(), touches);
    if (known != conflicts.end())
      known->end = end;
    else
      conflicts.push_back({other, write, begin, end});
  }
}

int SegmentChecker::bufferOf(const Conflict &conflict) const {
  const Launch &other = launchOf(conflict.other);
  for (const Access &access : conflict.write ? other.writes : other.reads) {
    int64_t base = memory.addressOf(access.buffer);
    if (base + access.begin <= conflict.begin && conflict.begin < base + access.end)
      return access.buffer;
  }
  return -1;
}

void SegmentChecker::report(const Access &access, bool write,
                            const std::vector<Conflict> &conflicts) {
  int own = memory.launchNumber(segment, launch);
  int64_t base = memory.addressOf(access.buffer);
  for (const Conflict &conflict : conflicts) {
    int buffer = bufferOf(conflict);
    std::string first =
        quote(launchOf(conflict.other).name) + (conflict.write ? " writes " : " reads ");
    std::string second = quote(launchOf(own).name) + (write ? " may write " : " may read ");
    End here = endOf(conflict.other, buffer), there = endOf(own, access.buffer);
    if (buffer == access.buffer)
      add(Fault::race,
          first + describeBytes(conflict.begin - base, conflict.end - base) + " of " +
              quote(role.buffers[buffer].name) + " while " + second + "them; " +
              remedy(conflict.other),
          here, there);
    else
      add(Fault::overlap,
          quote(role.buffers[buffer].name) + " and " + quote(role.buffers[access.buffer].name) +
              " share " + describeBytes(conflict.begin, conflict.end) + " of the arena, but " +
              first + quote(role.buffers[buffer].name) + " while " + second +
              quote(role.buffers[access.buffer].name) + "; " + remedy(conflict.other) +
              ", or move one buffer",
          here, there);
  }
}

void SegmentChecker::reportContents(const Access &access, int64_t begin, int64_t end,
                                    const Cell &cell) {
  const Buffer &buffer = role.buffers[access.buffer];
  const std::vector<Launch> &launches = role.segments[segment].launches;
  int64_t base = memory.addressOf(access.buffer);
  Access missing{access.buffer, begin - base, end - base};
  auto writesIt = [&](const Launch &candidate) {
    return std::any_of(candidate.writes.begin(), candidate.writes.end(),
                       [&](const Access &other) { return other.overlaps(missing); });
  };
  auto now = launches.begin() + launch;
  bool written = buffer.isPersistent() || std::any_of(launches.begin(), now, writesIt);
  std::string text = quote(now->name) + " reads " + describeBytes(missing.begin, missing.end) +
                     " of " + quote(buffer.name) + ", ";
  End own{roleIndex, segment, launch, access.buffer};
  for (int writer : cell.writers)
    for (const Access &other : launchOf(writer).writes) {
      int64_t from = memory.addressOf(other.buffer) + other.begin;
      if (!written || other.buffer == access.buffer || begin < from ||
          begin >= from + other.end - other.begin)
        continue;
      add(Fault::overlap,
          text + "but " + quote(launchOf(writer).name) + " has overwritten them with " +
              quote(role.buffers[other.buffer].name) + "; move one buffer, or read earlier",
          own, endOf(writer, other.buffer));
      return;
    }
  if (buffer.isPersistent()) {
    add(Fault::unwritten, text + "which no launch has written " + whereUnwritten(begin), own,
        {roleIndex, -1, -1, access.buffer});
    return;
  }
  auto late = std::find_if(now, launches.end(), writesIt);
  if (late == launches.end())
    add(Fault::unwritten, text + "which no launch has written", own,
        {roleIndex, buffer.segment, -1, access.buffer});
  else
    add(Fault::unwritten, text + "which " + quote(late->name) + " writes later", own,
        {roleIndex, segment, static_cast<int>(late - launches.begin()), access.buffer});
}

void SegmentChecker::checkItself() {
  const Launch &own = role.segments[segment].launches[launch];
  auto shared = [&](const Access &one, const Access &two) {
    int64_t x = memory.addressOf(one.buffer), y = memory.addressOf(two.buffer);
    return std::make_pair(std::max(x + one.begin, y + two.begin),
                          std::min(x + one.end, y + two.end));
  };
  auto complain = [&](const Access &one, bool write, const Access &two, int64_t begin,
                      int64_t end) {
    const std::string &x = role.buffers[one.buffer].name, &y = role.buffers[two.buffer].name;
    bool same = one.buffer == two.buffer;
    int64_t base = same ? memory.addressOf(one.buffer) : 0;
    std::string bytes = describeBytes(begin - base, end - base),
                verb = write ? " writes " : " reads ";
    std::string text = quote(own.name) + verb;
    if (same)
      text +=
          write ? bytes + " of " + quote(x) + " twice" : "and writes " + bytes + " of " + quote(x);
    else
      text += quote(x) + " and writes " + quote(y) + ", which share " + bytes + " of the arena";
    if (!write)
      text += ", but the op cannot work in place";
    add(same ? Fault::race : Fault::overlap, text, {roleIndex, segment, launch, one.buffer},
        {roleIndex, segment, launch, two.buffer});
  };
  for (size_t w = 0; w < own.writes.size(); ++w) {
    const Access &written = own.writes[w];
    for (size_t other = w + 1; other < own.writes.size(); ++other)
      if (auto [begin, end] = shared(written, own.writes[other]); begin < end)
        complain(written, true, own.writes[other], begin, end);
    for (size_t r = 0; r < own.reads.size(); ++r) {
      const Access &read = own.reads[r];
      auto [begin, end] = shared(written, read);
      if (begin >= end)
        continue;
      bool same =
          end - begin == read.end - read.begin && end - begin == written.end - written.begin;
      bool may = std::count(own.inPlace.begin(), own.inPlace.end(),
                            std::make_pair(static_cast<int>(r), static_cast<int>(w))) != 0;
      if (!same || !may)
        complain(read, false, written, begin, end);
    }
  }
}
