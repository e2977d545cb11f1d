//===- IssueOrder.cpp - early gathers and messages within budgets ---------===//

#include "passes/schedule/IssueOrder.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

using namespace mlir::fsdp::schedule;

namespace {

/// Where buffers are used, in the order of the computation.
class Uses {
public:
  explicit Uses(const std::vector<Launch> &launches) {
    auto add = [](auto &uses, const std::vector<Access> &accesses, int launch) {
      for (const Access &access : accesses) {
        std::vector<int> &known = uses[access.buffer];
        if (known.empty() || known.back() != launch)
          known.push_back(launch);
      }
    };
    for (size_t l = 0; l < launches.size(); ++l) {
      add(all, launches[l].reads, static_cast<int>(l));
      add(all, launches[l].writes, static_cast<int>(l));
      add(writes, launches[l].writes, static_cast<int>(l));
    }
  }
  /// The launches that read or write `buffer`.
  const std::vector<int> &of(int buffer) const { return find(all, buffer); }
  const std::vector<int> &writesOf(int buffer) const { return find(writes, buffer); }

private:
  using Map = std::unordered_map<int, std::vector<int>>;
  static const std::vector<int> &find(const Map &map, int buffer) {
    static const std::vector<int> none;
    auto found = map.find(buffer);
    return found == map.end() ? none : found->second;
  }

  Map all, writes;
};

/// A whole unit in the order of the computation.
struct UnshardedUnit {
  std::vector<int> makers; ///< launches that fill it
  int needed = 0;          ///< the first launch that cannot do without its place
  int last = 0;            ///< the last launch that uses it
  std::vector<int> users;  ///< all that do
  bool isPart = false;     ///< no unit: a part of one that is kept
};

/// Determines, unit by unit, the launches that must be complete before a unit may be filled: the
/// users of all but the last `prefetch` of the units whose last use precedes its first use. Omits
/// launches for which an earlier request has waited: units are filled in the order of the requests,
/// on one stream.
class PrefetchWindow {
public:
  PrefetchWindow(const std::vector<UnshardedUnit> &unshardedUnits, int64_t prefetch)
      : unshardedUnits(unshardedUnits), prefetch(prefetch) {}

  /// To be called with `index` counting up from 0.
  std::vector<int> mustBeDone(size_t index) {
    if (index > 0)
      for (auto *units : {&known, &open})
        units->insert({unshardedUnits[index - 1].last, index - 1});
    std::vector<int> launches;
    auto kept = known.lower_bound({unshardedUnits[index].needed, 0});
    std::pair<int, size_t> end{unshardedUnits[index].needed, 0};
    for (int64_t i = 0; i < prefetch && kept != known.begin(); ++i)
      end = *--kept;
    limited |= kept != known.begin();
    for (auto at = open.begin(); at != open.end() && *at < end; at = open.erase(at))
      launches.insert(launches.end(), unshardedUnits[at->second].users.begin(),
                      unshardedUnits[at->second].users.end());
    return launches;
  }
  /// Whether a request with a larger `prefetch` would have let more units stay.
  bool isLimited() const { return limited; }

private:
  const std::vector<UnshardedUnit> &unshardedUnits;
  int64_t prefetch;
  bool limited = false;
  /// Requested units, by their last use: all, and those for which no request has waited.
  std::set<std::pair<int, size_t>> known, open;
};

/// Adds the waits that bound the places of messages.
class MessageWindow {
public:
  /// `order`: the launches in issue order.
  MessageWindow(std::vector<Launch> &launches, const Uses &uses, const std::vector<int> &order,
                int compute)
      : launches(launches), uses(uses), order(order), position(order.size()), compute(compute) {
    for (size_t i = 0; i < order.size(); ++i)
      position[order[i]] = static_cast<int>(i);
  }

  void limitReceives(const std::vector<int> &receives) {
    const std::set<int> isReceive(receives.begin(), receives.end());
    int computed = -1;
    for (int l : order) {
      if (isReceive.count(l) && computed >= 0)
        launches[l].waits.push_back(computed);
      if (launches[l].stream == compute)
        computed = l;
    }
  }

  /// `parts`: the sends of one direction. With messages of one part only, a transfer would delay
  /// the computation of the next message; with those of two it does not, in any schedule of a
  /// pipeline, as long as it takes no longer than that computation.
  void limitSends(const std::vector<std::vector<int>> &parts) {
    for (size_t part = 2; part < parts.size(); ++part)
      for (int send : parts[part])
        for (int earlier : parts[part - 2])
          for (int maker : makersOf(send))
            // A value that was there before is sent from its own place.
            if (position[earlier] < position[maker])
              launches[maker].waits.push_back(earlier);
  }

private:
  /// The launches of the computation that write the bytes that `launch` reads or, where launches of
  /// other streams write these, the bytes that those read: a reduction over ranks may overwrite its
  /// operand. A value that is received and passed on has none: its receive would start late if it
  /// waited.
  std::vector<int> makersOf(int launch) const {
    std::vector<int> makers, pending{launch};
    std::set<int> known;
    while (!pending.empty()) {
      const int reader = pending.back();
      pending.pop_back();
      for (const Access &read : launches[reader].reads)
        for (int writer : uses.writesOf(read.buffer)) {
          const std::vector<Access> &writes = launches[writer].writes;
          if (writer >= reader ||
              std::none_of(writes.begin(), writes.end(),
                           [&](const Access &write) { return write.overlaps(read); }) ||
              !known.insert(writer).second)
            continue;
          (launches[writer].stream == compute ? makers : pending).push_back(writer);
        }
    }
    return makers;
  }

  std::vector<Launch> &launches;
  const Uses &uses;
  const std::vector<int> &order;
  std::vector<int> position; ///< in `order`, by launch
  int compute;
};

} // namespace

/// Puts `launches` into `order`, cycle by cycle: a second array of a large segment would be new
/// memory.
static void issue(std::vector<Launch> &launches, const std::vector<int> &order) {
  std::vector<bool> placed(order.size());
  for (size_t first = 0; first < order.size(); ++first) {
    if (placed[first])
      continue;
    Launch held = std::move(launches[first]);
    size_t place = first;
    for (size_t from = order[place]; from != first; from = order[place]) {
      launches[place] = std::move(launches[from]);
      placed[place] = true;
      place = from;
    }
    launches[place] = std::move(held);
    placed[place] = true;
  }
}

std::vector<int> mlir::fsdp::schedule::orderIssue(Segment &segment, const IssueGroups &groups,
                                                  int64_t prefetch, bool *isLimited) {
  std::vector<Launch> &launches = segment.launches;
  int count = static_cast<int>(launches.size());
  // Sort key: after which launch of the computation, then whether it is that launch itself (0) or
  // which gather.
  std::vector<std::pair<int, int>> key(count);
  for (int l = 0; l < count; ++l)
    key[l] = {l, 0};
  Uses uses(launches);
  for (int l : groups.early) {
    key[l] = {-2, 0};
    for (const Access &written : launches[l].writes)
      for (int before : uses.of(written.buffer))
        if (before < l)
          key[l] = std::max(key[l], key[before]);
  }

  std::map<int, int> lastReceive; // by stream: after which launch the last one is issued
  for (int l : groups.receives) {
    const auto own = std::lower_bound(groups.partBegins.begin(), groups.partBegins.end(), l);
    if (own == groups.partBegins.begin())
      continue;
    key[l] = {std::min(l, *std::prev(own) - 1), 1};
    // A value may be received in the place of the gradient that a deferred update reads.
    for (const Access &written : launches[l].writes)
      for (int before : uses.of(written.buffer))
        if (before < l)
          key[l].first = std::max(key[l].first, key[before].first);
    // Messages of a stream keep their order, which is that of the sends.
    auto [last, isFirst] = lastReceive.try_emplace(launches[l].stream, key[l].first);
    key[l].first = last->second = std::max(last->second, key[l].first);
  }
  std::vector<UnshardedUnit> units;
  for (const std::vector<int> &gathers : groups.gathers) {
    const bool isPart =
        std::find(groups.parts.begin(), groups.parts.end(), gathers.back()) != groups.parts.end();
    UnshardedUnit unit{gathers, count, gathers.back(), {}, isPart};
    for (int gather : gathers) {
      for (const Access &whole : launches[gather].writes)
        for (int l : uses.of(whole.buffer))
          if (l > gather) {
            unit.needed = std::min(unit.needed, l);
            unit.last = std::max(unit.last, l);
            unit.users.push_back(l);
          }
      unit.users.push_back(gather);
    }
    if (unit.needed == count) // gathered for nothing
      unit.needed = gathers.back();
    units.push_back(unit);
  }
  // Units are requested in the order in which they are needed, independent of the order of the
  // gathers: otherwise a unit would wait, on the stream of gathers, for the budget of a later unit,
  // which may wait for users of the first.
  std::sort(units.begin(), units.end(), [](const UnshardedUnit &a, const UnshardedUnit &b) {
    return std::make_pair(a.needed, a.makers.front()) < std::make_pair(b.needed, b.makers.front());
  });
  // An update that computation reads before any gather does keeps its place.
  std::set<int> gathers, updates;
  for (const UnshardedUnit &unit : units)
    gathers.insert(unit.makers.begin(), unit.makers.end());
  for (int update : groups.updates) {
    int first = count;
    for (const Access &written : launches[update].writes)
      for (int l : uses.of(written.buffer))
        if (l > update)
          first = std::min(first, l);
    if (gathers.count(first))
      updates.insert(update);
  }
  // The launch, at least `after`, after which all operands of `launch` are available.
  auto writtenBefore = [&](int launch, int after) {
    for (const Access &read : launches[launch].reads)
      for (int l : uses.writesOf(read.buffer))
        if (l < launch)
          after = std::max(after, key[l].first);
    return after;
  };
  // The last launch of the computation before the first one that overwrites an operand of `launch`.
  auto overwrittenAfter = [&](int launch) {
    int after = count;
    for (const Access &read : launches[launch].reads)
      for (int l : uses.writesOf(read.buffer))
        if (l > launch)
          after = std::min(after, std::min(l, key[l].first) - 1);
    return after;
  };
  int previous = -1, asked = 0;
  std::vector<UnshardedUnit> whole;
  std::copy_if(units.begin(), units.end(), std::back_inserter(whole),
               [](const UnshardedUnit &unit) { return !unit.isPart; });
  PrefetchWindow gatherBudget(whole, prefetch);
  std::set<int> pending; // gathers without a position yet
  for (const UnshardedUnit &unit : units)
    pending.insert(unit.makers.begin(), unit.makers.end());
  size_t next = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    // A part stays for a long time anyway: nothing has to be done before it is gathered.
    std::vector<int> done;
    if (!units[i].isPart)
      done = gatherBudget.mustBeDone(next++);
    for (int gather : units[i].makers) {
      int after = previous;
      for (int l : done) {
        // A gather that is issued here or later may itself use a unit that is done then: a part
        // that it completes.
        if (pending.count(l))
          continue;
        launches[gather].waits.push_back(l);
        // A gather of another unit is complete before this one starts: both are on one stream.
        after = std::max(after, key[l].first);
      }
      // Not before its operands are available.
      for (const Access &read : launches[gather].reads)
        for (int l : uses.writesOf(read.buffer)) {
          if (l >= gather)
            continue;
          if (updates.erase(l)) // for the first gather
            key[l] = {std::min(writtenBefore(l, previous), overwrittenAfter(l)), ++asked};
          after = std::max(after, key[l].first);
        }
      key[gather] = {after, ++asked};
      pending.erase(gather);
      previous = after;
    }
  }

  std::vector<UnshardedUnit> gradients;
  for (const std::vector<int> &buffers : groups.gradients) {
    UnshardedUnit gradient{{}, count, 0, {}};
    for (int buffer : buffers) {
      for (int l : uses.writesOf(buffer)) {
        gradient.makers.push_back(l);
        gradient.needed = std::min(gradient.needed, l);
      }
      for (int l : uses.of(buffer)) {
        gradient.users.push_back(l);
        gradient.last = std::max(gradient.last, l);
      }
    }
    gradients.push_back(gradient);
  }
  std::sort(gradients.begin(), gradients.end(),
            [](const UnshardedUnit &a, const UnshardedUnit &b) { return a.needed < b.needed; });
  PrefetchWindow gradientBudget(gradients, prefetch);
  auto isIssuedBefore = [&](int a, int b) {
    return std::make_pair(key[a], a) < std::make_pair(key[b], b);
  };
  for (size_t i = 0; i < gradients.size(); ++i)
    for (int l : gradientBudget.mustBeDone(i))
      for (int maker : gradients[i].makers)
        if (isIssuedBefore(l, maker)) // a message may arrive earlier, in a place of its own
          launches[maker].waits.push_back(l);
  if (isLimited)
    *isLimited |= gatherBudget.isLimited() || gradientBudget.isLimited();

  std::vector<int> order(count), position(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), isIssuedBefore);
  MessageWindow messages(launches, uses, order, groups.compute);
  messages.limitReceives(groups.receives);
  for (const std::vector<std::vector<int>> &parts : groups.sends)
    messages.limitSends(parts);

  for (int i = 0; i < count; ++i)
    position[order[i]] = i;
  for (Launch &launch : launches)
    for (int &wait : launch.waits)
      wait = position[wait];
  issue(launches, order);
  return order;
}
