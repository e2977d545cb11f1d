//===- SegmentLinks.cpp - waits across the ends of segments ---------------===//
//
// The launches that may still run at a segment's start are found by iterating over the graph of
// segments to a fixed point. For each range of bytes they are the last launches that wrote it and
// those that have read it since: the next access to these bytes follows them, and they follow all
// earlier ones.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/SegmentLinks.h"
#include "passes/schedule/HappensBefore.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <deque>
#include <map>

using namespace mlir::fsdp::schedule;

namespace {

/// A launch that may still run: the latest run of it.
struct Pending {
  int segment, launch;

  bool operator<(const Pending &other) const {
    return std::make_pair(segment, launch) < std::make_pair(other.segment, other.launch);
  }
  bool operator==(const Pending &other) const {
    return segment == other.segment && launch == other.launch;
  }
};

/// Launches in their order, each once: mostly one or two.
class PendingSet {
public:
  PendingSet(std::initializer_list<Pending> launches = {}) : launches(launches) {}

  /// True if `pending` is new.
  bool insert(Pending pending) {
    auto *at = std::lower_bound(launches.begin(), launches.end(), pending);
    if (at != launches.end() && *at == pending)
      return false;
    launches.insert(at, pending);
    return true;
  }
  bool empty() const { return launches.empty(); }
  const Pending *begin() const { return launches.begin(); }
  const Pending *end() const { return launches.end(); }
  bool operator==(const PendingSet &other) const { return launches == other.launches; }

private:
  llvm::SmallVector<Pending, 1> launches;
};

/// The last writers of a range of bytes, and its readers since then.
struct Users {
  PendingSet writers, readers;

  bool operator==(const Users &other) const {
    return writers == other.writers && readers == other.readers;
  }
};

/// The users of each range of bytes, by where it begins; a range ends where the next one begins.
class UsersByByte {
public:
  explicit UsersByByte(int64_t size = 0) : ranges{{0, {}}}, size(size) {}

  template <class Function> void visit(int64_t begin, int64_t end, Function &&function) {
    if (begin >= end)
      return;
    auto at = split(begin);
    for (auto last = split(end); at != last; ++at)
      function(at->second);
  }

  /// The bytes [begin, end) have these users: one range.
  void assign(int64_t begin, int64_t end, Users users) {
    if (begin >= end)
      return;
    auto at = split(begin), last = split(end);
    at->second = std::move(users);
    ranges.erase(std::next(at), last);
  }

  /// Adds the users of `other`; true if there was a new one.
  bool merge(const UsersByByte &other) {
    bool changed = false;
    for (auto at = other.ranges.begin(); at != other.ranges.end(); ++at) {
      const Users &from = at->second;
      if (from.writers.empty() && from.readers.empty())
        continue;
      auto next = std::next(at);
      visit(at->first, next == other.ranges.end() ? other.size : next->first, [&](Users &users) {
        for (const Pending &writer : from.writers)
          changed |= users.writers.insert(writer);
        for (const Pending &reader : from.readers)
          changed |= users.readers.insert(reader);
      });
    }
    return changed;
  }

private:
  using Ranges = std::map<int64_t, Users>;

  /// The range that begins at `at`.
  Ranges::iterator split(int64_t at) {
    auto next = ranges.upper_bound(at), before = std::prev(next);
    return before->first == at ? before : ranges.emplace_hint(next, at, before->second);
  }

  Ranges ranges;
  int64_t size;
};

/// The launches that may still run when a segment starts.
struct State {
  UsersByByte bytes;
  std::map<int, PendingSet> collectives; ///< the last ones, by communicator

  bool merge(const State &other) {
    bool changed = bytes.merge(other.bytes);
    for (const auto &[communicator, last] : other.collectives)
      for (const Pending &pending : last)
        changed |= collectives[communicator].insert(pending);
    return changed;
  }
};

class Linker {
public:
  Linker(Role &role, const std::vector<bool> &async) : role(role) {
    for (size_t s = 0; s < role.segments.size(); ++s) {
      role.segments[s].joined &= !async[s];
      orders.emplace_back(role.segments[s].launches);
      streams.emplace_back(orders.back().getNumStreams());
      for (size_t l = 0; l < role.segments[s].launches.size(); ++l)
        streams.back()[orders.back().streamOf(static_cast<int>(l))] =
            role.segments[s].launches[l].stream;
    }
  }

  void run() {
    const size_t count = role.segments.size();
    std::vector<State> entries(count, State{UsersByByte(role.arena), {}});
    std::vector<std::vector<PendingSet>> needed(count); // as of the last pass
    std::deque<int> work;
    for (size_t s = 0; s < count; ++s)
      work.push_back(static_cast<int>(s));
    while (!work.empty()) {
      int segment = work.front();
      work.pop_front();
      if (role.segments[segment].joined)
        continue; // leaves no launch running
      State exit = pass(segment, entries[segment], needed[segment]);
      for (int next : role.segments[segment].next)
        if (entries[next].merge(exit) && !std::count(work.begin(), work.end(), next))
          work.push_back(next);
    }
    for (size_t s = 0; s < count; ++s) {
      if (role.segments[s].joined)
        pass(static_cast<int>(s), entries[s], needed[s]);
      await(static_cast<int>(s), needed[s]);
    }
  }

private:
  /// Runs a segment from `state` on; `needed` are the earlier launches with which each of its
  /// launches conflicts.
  State pass(int segment, State state, std::vector<PendingSet> &needed) {
    needed.assign(role.segments[segment].launches.size(), {});
    // Of this run of the segment, not of the previous one.
    const int own = static_cast<int>(role.segments.size());
    auto note = [&](int launch, const PendingSet &earlier) {
      for (const Pending &pending : earlier)
        if (pending.segment != own)
          needed[launch].insert(pending);
    };
    const std::vector<Launch> &launches = role.segments[segment].launches;
    for (int l = 0; l < static_cast<int>(launches.size()); ++l) {
      const Pending self{own, l};
      auto visit = [&](const Access &access, auto &&function) {
        int64_t base = role.buffers[access.buffer].offset;
        state.bytes.visit(base + access.begin, base + access.end, function);
      };
      for (const Access &read : launches[l].reads)
        visit(read, [&](Users &users) {
          note(l, users.writers);
          users.readers.insert(self);
        });
      for (const Access &write : launches[l].writes) {
        visit(write, [&](Users &users) {
          note(l, users.writers);
          note(l, users.readers);
        });
        int64_t base = role.buffers[write.buffer].offset;
        state.bytes.assign(base + write.begin, base + write.end, {{self}, {}});
      }
      if (const Boxed<Collective> &collective = launches[l].collective) {
        PendingSet &last = state.collectives[collective->communicator];
        note(l, last);
        last = {self};
      }
    }
    rename(state, own, segment);
    return state;
  }

  /// The launches that ran as `own` are the latest run of `segment`.
  void rename(State &state, int own, int segment) {
    auto renamed = [&](PendingSet &all) {
      PendingSet result;
      for (const Pending &pending : all)
        result.insert({pending.segment == own ? segment : pending.segment, pending.launch});
      all = std::move(result);
    };
    state.bytes.visit(0, std::max<int64_t>(role.arena, 0), [&](Users &users) {
      renamed(users.writers);
      renamed(users.readers);
    });
    for (auto &[communicator, last] : state.collectives)
      renamed(last);
  }

  /// Makes the launches of `segment` await the launches that they need and that no other wait
  /// implies.
  void await(int segment, const std::vector<PendingSet> &needed) {
    std::vector<Launch> &launches = role.segments[segment].launches;
    const size_t numStreams = role.streams.size(), count = role.segments.size();
    // For each launch, how many launches of each stream of each segment are complete when it
    // starts.
    std::vector<std::vector<int>> known(launches.size());
    std::map<int, int> previous; // on each stream
    for (size_t l = 0; l < launches.size(); ++l) {
      Launch &launch = launches[l];
      std::vector<int> &own = known[l];
      own.assign(count * numStreams, 0);
      for (size_t s = 0; s < count; ++s)
        own[s * numStreams + launch.stream] = static_cast<int>(role.segments[s].launches.size());
      auto learn = [&](const std::vector<int> &other) {
        for (size_t i = 0; i < own.size(); ++i)
          own[i] = std::max(own[i], other[i]);
      };
      if (auto before = previous.find(launch.stream); before != previous.end())
        learn(known[before->second]);
      previous[launch.stream] = static_cast<int>(l);
      for (int wait : launch.waits)
        learn(known[wait]);
      // Later launches first: they imply more.
      for (const Pending &pending : llvm::reverse(needed[l])) {
        const HappensBefore &order = orders[pending.segment];
        const int stream = role.segments[pending.segment].launches[pending.launch].stream;
        int *base = own.data() + pending.segment * numStreams;
        if (base[stream] > order.positionOf(pending.launch))
          continue;
        launch.awaits.push_back(eventOf(pending));
        base[stream] = order.positionOf(pending.launch) + 1;
        for (int local = 0; local < order.getNumStreams(); ++local) {
          int &complete = base[streams[pending.segment][local]];
          complete = std::max(complete, order.clockOf(pending.launch)[local]);
        }
      }
      std::sort(launch.awaits.begin(), launch.awaits.end());
      launch.awaits.erase(std::unique(launch.awaits.begin(), launch.awaits.end()),
                          launch.awaits.end());
    }
  }

  /// The event that `pending` records.
  int eventOf(const Pending &pending) {
    Launch &launch = role.segments[pending.segment].launches[pending.launch];
    auto [entry, isNew] = events.try_emplace({launch.stream, launch.name}, role.events.size());
    if (isNew)
      role.events.push_back(launch.name);
    if (!std::count(launch.records.begin(), launch.records.end(), entry->second))
      launch.records.push_back(entry->second);
    return entry->second;
  }

  Role &role;
  std::vector<HappensBefore> orders;
  std::vector<std::vector<int>> streams; ///< of the role, by segment and number in its order
  std::map<std::pair<int, std::string>, int> events;
};

} // namespace

void mlir::fsdp::schedule::linkSegments(Role &role, const std::vector<bool> &async) {
  Linker(role, async).run();
}
