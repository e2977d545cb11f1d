//===- ScheduleExecution.cpp ----------------------------------------------===//

#include "test/mutation/ScheduleExecution.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace mlir::fsdp::schedule;

namespace {

/// The writer of a byte: a number for each write of each launch, and marks for unwritten bytes and
/// bytes being written.
using Tag = int;
constexpr Tag kUnwritten = -1, kInFlight = -2;

/// A launch of the run.
struct Instance {
  const Launch *launch;
  std::vector<int> waits;                 ///< instances
  std::vector<std::vector<Tag>> expected; ///< per read, per byte
  int firstTag;                           ///< of its writes
  size_t part;                            ///< the number of its segment on the path
};

/// One rank.
struct Rank {
  const Role *role;
  std::vector<Instance> instances;
  std::vector<std::vector<int>> streams; ///< instances in issue order
  std::vector<Tag> memory;
  std::vector<int64_t> base; ///< of each buffer in the memory
  // While it runs:
  std::vector<size_t> next;       ///< position in each stream
  std::vector<int> state;         ///< 0 waits, 1 in flight, 2 complete
  std::vector<int> running;       ///< what is in flight
  std::map<int, int> collectives; ///< how many have begun on each communicator
  std::vector<bool> lateToBegin, lateToEnd;
};

/// The collectives with the number `number` on a communicator.
struct Match {
  const Collective *request = nullptr;
  std::vector<int> arrived; ///< roles
};

struct Violation {
  std::string text;
};

class Execution {
public:
  Execution(const Problem &problem, std::mt19937 &random) : problem(problem), random(random) {}

  void run() {
    choosePath();
    remaining.assign(path[0].size(), 0);
    for (size_t r = 0; r < problem.roles.size(); ++r)
      ranks.push_back(prepare(static_cast<int>(r)));
    for (const Rank &rank : ranks)
      for (const Instance &instance : rank.instances)
        ++remaining[instance.part];
    while (step()) {
    }
    for (const Rank &rank : ranks)
      for (size_t i = 0; i < rank.instances.size(); ++i)
        if (rank.state[i] != 2 && !isCut())
          throw Violation{"'" + rank.instances[i].launch->name + "' never ends"};
  }

private:
  int draw(size_t below) { return static_cast<int>(random() % below); }

  static int findSegment(const Role &role, const std::string &name) {
    for (size_t s = 0; s < role.segments.size(); ++s)
      if (role.segments[s].name == name)
        return static_cast<int>(s);
    throw Violation{"a role has no segment '" + name + "'"};
  }

  /// The next segment on a shortest way to the end of one that is joined; any where there is none.
  int goHome(const Role &role, int from) {
    std::vector<int> distance(role.segments.size(), 1 << 20);
    for (size_t round = 0; round <= role.segments.size(); ++round)
      for (size_t s = 0; s < role.segments.size(); ++s)
        for (int next : role.segments[s].next)
          distance[s] = role.segments[s].joined ? 0 : std::min(distance[s], distance[next] + 1);
    std::vector<int> next = role.segments[from].next;
    return *std::min_element(next.begin(), next.end(),
                             [&](int a, int b) { return distance[a] < distance[b]; });
  }

  /// Some segments, by name, that every role goes through; the last is joined if that can be.
  void choosePath() {
    const Role &first = problem.roles[0];
    std::vector<int> entries;
    for (const ExecutionPlan &walk : first.walks)
      entries.push_back(walk.segments[0]);
    int segment = first.walks.empty() ? draw(first.segments.size()) : entries[draw(entries.size())];
    path.assign(problem.roles.size(), {});
    size_t least = 2 + draw(5), most = least + first.segments.size();
    while (true) {
      const std::string &name = first.segments[segment].name;
      for (size_t r = 0; r < problem.roles.size(); ++r) {
        const Role &role = problem.roles[r];
        int found = findSegment(role, name);
        if (!path[r].empty()) {
          const std::vector<int> &next = role.segments[path[r].back()].next;
          if (!std::count(next.begin(), next.end(), found))
            throw Violation{"a role does not go on with '" + name + "'"};
        }
        if (role.segments[found].joined != first.segments[segment].joined)
          throw Violation{"a role joins '" + name + "', another one does not"};
        path[r].push_back(found);
      }
      if (path[0].size() >= most || (path[0].size() >= least && first.segments[segment].joined))
        return;
      const std::vector<int> &next = first.segments[segment].next;
      segment = path[0].size() < least ? next[draw(next.size())] : goHome(first, segment);
    }
  }

  /// True where something waits for what another role would issue behind the end of the path.
  bool isCut() const {
    for (const Rank &rank : ranks)
      for (int i : rank.running) {
        const Boxed<Collective> &collective = rank.instances[i].launch->collective;
        if (!collective)
          continue;
        int r = static_cast<int>(&rank - ranks.data()), number = matchOf.at({r, i});
        for (int role : problem.communicators[collective->communicator].roles) {
          int issued = 0;
          for (const Instance &instance : ranks[role].instances)
            issued += instance.launch->collective &&
                      instance.launch->collective->communicator == collective->communicator;
          if (issued <= number && !problem.roles[role].segments[path[role].back()].joined)
            return true;
        }
      }
    return false;
  }

  /// Updates of storages and advances, in issue order: no storage twice in a step.
  void checkUpdate(const Launch &launch, const std::vector<std::vector<Tag>> &contents,
                   const std::set<Tag> &falsehoods, std::set<std::string> &updated) {
    if (launch.step == StepUse::advances)
      updated.clear();
    if (launch.updates.empty())
      return;
    if (launch.condition >= 0) {
      const Access &flag = launch.reads[launch.condition];
      if (flag.begin < flag.end && falsehoods.count(contents[flag.buffer][flag.begin]))
        return;
    }
    for (const std::string &storage : launch.updates)
      if (!updated.insert(storage).second)
        throw Violation{"'" + launch.name + "' updates '" + storage + "' twice in a step"};
  }

  Rank prepare(int number) {
    Rank rank;
    rank.role = &problem.roles[number];
    const Role &role = *rank.role;
    int64_t size = 0;
    for (const Buffer &buffer : role.buffers) {
      if (role.arena >= 0 && (buffer.offset < 0 || buffer.offset + buffer.size > role.arena))
        throw Violation{"'" + buffer.name + "' is outside the arena"};
      rank.base.push_back(role.arena >= 0 ? buffer.offset : size);
      size += buffer.size;
    }
    rank.memory.assign(role.arena >= 0 ? role.arena : size, kUnwritten);
    rank.streams.resize(role.streams.size());
    // The reference: in issue order, each buffer by itself.
    std::vector<std::vector<Tag>> contents;
    Tag tag = 0;
    for (size_t b = 0; b < role.buffers.size(); ++b) {
      const Buffer &buffer = role.buffers[b];
      bool filled = buffer.isPersistent() && buffer.filled;
      contents.emplace_back(buffer.size, filled ? tag : kUnwritten);
      if (filled) {
        std::fill_n(rank.memory.begin() + rank.base[b], buffer.size, tag);
        ++tag;
      }
    }
    std::vector<int> recorded(role.events.size(), -1); // instances
    std::set<Tag> falsehoods;
    std::set<std::string> updated;
    for (size_t part = 0; part < path[number].size(); ++part) {
      const Segment &segment = role.segments[path[number][part]];
      for (size_t b = 0; b < role.buffers.size(); ++b)
        if (!role.buffers[b].isPersistent())
          contents[b].assign(role.buffers[b].size, kUnwritten);
      int start = static_cast<int>(rank.instances.size());
      for (const Launch &launch : segment.launches) {
        Instance instance{&launch, {}, {}, tag, part};
        int own = static_cast<int>(rank.instances.size());
        for (int wait : launch.waits)
          instance.waits.push_back(start + wait);
        for (int event : launch.awaits)
          if (recorded[event] >= 0)
            instance.waits.push_back(recorded[event]);
        for (int event : launch.records)
          recorded[event] = own;
        checkUpdate(launch, contents, falsehoods, updated);
        for (const Access &read : launch.reads) {
          const std::vector<Tag> &from = contents[read.buffer];
          instance.expected.emplace_back(from.begin() + read.begin, from.begin() + read.end);
          for (Tag byte : instance.expected.back())
            if (byte == kUnwritten)
              throw Violation{"'" + launch.name + "' reads what nothing wrote"};
        }
        for (size_t w = 0; w < launch.writes.size(); ++w) {
          const Access &write = launch.writes[w];
          std::vector<Tag> &to = contents[write.buffer];
          if (std::count(launch.clears.begin(), launch.clears.end(), static_cast<int>(w)))
            falsehoods.insert(tag);
          std::fill(to.begin() + write.begin, to.begin() + write.end, tag++);
        }
        rank.streams[launch.stream].push_back(own);
        rank.instances.push_back(std::move(instance));
      }
    }
    rank.next.assign(rank.streams.size(), 0);
    rank.state.assign(rank.instances.size(), 0);
    bool isLate = draw(4) == 0;
    for (size_t s = 0; s < rank.streams.size(); ++s) {
      rank.lateToBegin.push_back(isLate || draw(3) == 0);
      rank.lateToEnd.push_back(draw(2) == 0);
    }
    return rank;
  }

  /// One event, drawn from all that can happen; false where nothing can.
  bool step() {
    std::vector<std::pair<int, int>> now, late;
    for (size_t r = 0; r < ranks.size(); ++r)
      for (size_t s = 0; s < ranks[r].streams.size(); ++s) {
        Rank &rank = ranks[r];
        if (rank.next[s] == rank.streams[s].size())
          continue;
        int i = rank.streams[s][rank.next[s]];
        bool begins = rank.state[i] == 0;
        if (begins ? !canBegin(rank, i) : !canEnd(static_cast<int>(r), i))
          continue;
        bool isLate = begins ? rank.lateToBegin[s] : rank.lateToEnd[s];
        (isLate ? late : now).push_back({static_cast<int>(r), static_cast<int>(s)});
      }
    const auto &from = now.empty() ? late : now;
    if (from.empty())
      return false;
    auto [r, s] = from[draw(from.size())];
    Rank &rank = ranks[r];
    int i = rank.streams[s][rank.next[s]];
    if (rank.state[i] == 0) {
      begin(r, i);
      return true;
    }
    end(rank, i);
    ++rank.next[s];
    return true;
  }

  bool canBegin(const Rank &rank, int i) const {
    // All ranks meet where a segment is joined.
    for (size_t part = firstOpen; part < rank.instances[i].part; ++part)
      if (remaining[part] > 0 && joinedBetween(part, rank.instances[i].part))
        return false;
    return std::all_of(rank.instances[i].waits.begin(), rank.instances[i].waits.end(),
                       [&](int wait) { return rank.state[wait] == 2; });
  }

  bool joinedBetween(size_t part, size_t end) const {
    for (; part < end; ++part)
      if (problem.roles[0].segments[path[0][part]].joined)
        return true;
    return false;
  }

  bool canEnd(int r, int i) {
    const Boxed<Collective> &collective = ranks[r].instances[i].launch->collective;
    if (!collective)
      return true;
    const Match &match = matches[{collective->communicator, matchOf[{r, i}]}];
    return match.arrived.size() == problem.communicators[collective->communicator].roles.size();
  }

  void begin(int r, int i) {
    Rank &rank = ranks[r];
    const Instance &instance = rank.instances[i];
    const Launch &launch = *instance.launch;
    for (int other : rank.running)
      checkApart(rank, launch, *rank.instances[other].launch);
    checkItself(rank, launch);
    for (size_t a = 0; a < launch.reads.size(); ++a) {
      const Access &read = launch.reads[a];
      for (int64_t byte = read.begin; byte < read.end; ++byte)
        if (rank.memory[rank.base[read.buffer] + byte] != instance.expected[a][byte - read.begin])
          throw Violation{"'" + launch.name + "' reads another value than in issue order"};
    }
    for (const Access &write : launch.writes)
      std::fill(rank.memory.begin() + rank.base[write.buffer] + write.begin,
                rank.memory.begin() + rank.base[write.buffer] + write.end, kInFlight);
    rank.state[i] = 1;
    rank.running.push_back(i);
    if (!launch.collective)
      return;
    int communicator = launch.collective->communicator;
    int number = rank.collectives[communicator]++;
    matchOf[{r, i}] = number;
    Match &match = matches[{communicator, number}];
    if (match.request && !(*match.request == *launch.collective))
      throw Violation{"'" + launch.name + "' matches another collective"};
    match.request = &*launch.collective;
    match.arrived.push_back(r);
  }

  void end(Rank &rank, int i) {
    const Instance &instance = rank.instances[i];
    Tag tag = instance.firstTag;
    for (const Access &write : instance.launch->writes) {
      std::fill(rank.memory.begin() + rank.base[write.buffer] + write.begin,
                rank.memory.begin() + rank.base[write.buffer] + write.end, tag);
      ++tag;
    }
    rank.state[i] = 2;
    rank.running.erase(std::find(rank.running.begin(), rank.running.end(), i));
    --remaining[instance.part];
    while (firstOpen < remaining.size() && remaining[firstOpen] == 0)
      ++firstOpen;
  }

  static bool overlap(const Rank &rank, const Access &a, const Access &b) {
    int64_t x = rank.base[a.buffer], y = rank.base[b.buffer];
    return x + a.begin < y + b.end && y + b.begin < x + a.end && a.begin < a.end && b.begin < b.end;
  }

  /// Two launches in flight at one time may read the same bytes, nothing else.
  static void checkApart(const Rank &rank, const Launch &one, const Launch &two) {
    for (const Access &write : one.writes)
      for (const auto *accesses : {&two.reads, &two.writes})
        for (const Access &other : *accesses)
          if (overlap(rank, write, other))
            throw Violation{"'" + one.name + "' writes what '" + two.name + "' uses"};
    for (const Access &read : one.reads)
      for (const Access &write : two.writes)
        if (overlap(rank, read, write))
          throw Violation{"'" + one.name + "' reads what '" + two.name + "' writes"};
  }

  /// A kernel writes no byte twice, and over what it reads only where it may, element by element.
  static void checkItself(const Rank &rank, const Launch &launch) {
    for (size_t a = 0; a < launch.writes.size(); ++a) {
      for (size_t b = a + 1; b < launch.writes.size(); ++b)
        if (overlap(rank, launch.writes[a], launch.writes[b]))
          throw Violation{"'" + launch.name + "' writes bytes twice"};
      for (size_t b = 0; b < launch.reads.size(); ++b) {
        const Access &write = launch.writes[a], &read = launch.reads[b];
        bool same = rank.base[write.buffer] + write.begin == rank.base[read.buffer] + read.begin &&
                    write.end - write.begin == read.end - read.begin;
        bool may = std::count(launch.inPlace.begin(), launch.inPlace.end(),
                              std::make_pair(static_cast<int>(b), static_cast<int>(a))) != 0;
        if (overlap(rank, write, read) && !(same && may))
          throw Violation{"'" + launch.name + "' cannot work in place"};
      }
    }
  }

  const Problem &problem;
  std::mt19937 &random;
  std::vector<std::vector<int>> path; ///< per role
  std::vector<int> remaining;         ///< launches of all ranks in each part of the path
  size_t firstOpen = 0;               ///< the first part with any
  std::vector<Rank> ranks;
  std::map<std::pair<int, int>, Match> matches; ///< by communicator and number
  std::map<std::pair<int, int>, int> matchOf;   ///< by role and instance
};

} // namespace

std::string fsdp::mutation::execute(const Problem &problem, std::mt19937 &random, int orders) {
  for (int order = 0; order < orders; ++order) {
    try {
      Execution(problem, random).run();
    } catch (const Violation &violation) {
      return violation.text;
    }
  }
  return {};
}
