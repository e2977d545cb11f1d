//===- IssueOrder.cpp - early gathers within a budget ---------------------===//

#include "passes/schedule/IssueOrder.h"

#include <algorithm>
#include <numeric>

using namespace mlir::fsdp::schedule;

namespace {

bool touches(const std::vector<Access> &accesses, int buffer) {
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access &access) { return access.buffer == buffer; });
}

/// A whole unit in the order of the computation.
struct Whole {
  std::vector<int> makers; ///< launches that fill it
  int needed = 0;          ///< the first launch that cannot do without its place
  int last = 0;            ///< the last launch that uses it
  std::vector<int> users;  ///< all that do
};

/// The launches that must be complete before `wholes[index]` may be filled: the users of all but
/// the last `prefetch` of the units that are done before it is needed.
std::vector<int> mustBeDone(const std::vector<Whole> &wholes, size_t index, int prefetch) {
  std::vector<std::pair<int, size_t>> done;
  for (size_t i = 0; i < index; ++i)
    if (wholes[i].last < wholes[index].needed)
      done.push_back({wholes[i].last, i});
  std::sort(done.begin(), done.end());
  std::vector<int> launches;
  for (size_t i = 0; i + prefetch < done.size(); ++i)
    launches.insert(launches.end(), wholes[done[i].second].users.begin(),
                    wholes[done[i].second].users.end());
  return launches;
}

} // namespace

std::vector<int> mlir::fsdp::schedule::orderIssue(Segment &segment, const IssueGroups &groups,
                                                  int prefetch) {
  std::vector<Launch> &launches = segment.launches;
  int count = static_cast<int>(launches.size());
  // Sort key: after which launch of the computation, then whether it is that launch itself.
  std::vector<std::pair<int, int>> key(count);
  for (int l = 0; l < count; ++l)
    key[l] = {l, 0};
  for (int l : groups.early)
    key[l] = {-2, 0};

  std::vector<Whole> units;
  for (const std::vector<int> &gathers : groups.gathers) {
    Whole unit{gathers, count, gathers.back(), {}};
    for (int gather : gathers) {
      for (int l = gather + 1; l < count; ++l)
        for (const Access &whole : launches[gather].writes)
          if (touches(launches[l].reads, whole.buffer) ||
              touches(launches[l].writes, whole.buffer)) {
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
  int previous = -1;
  for (size_t i = 0; i < units.size(); ++i) {
    std::vector<int> done = mustBeDone(units, i, prefetch);
    for (int gather : units[i].makers) {
      int after = previous;
      for (int l : done) {
        launches[gather].waits.push_back(l);
        // A gather of another unit is complete before this one starts: both are on one stream.
        after = std::max(after, key[l].first);
      }
      // Not before what it reads is there.
      for (int l = 0; l < gather; ++l)
        for (const Access &read : launches[gather].reads)
          if (touches(launches[l].writes, read.buffer))
            after = std::max(after, key[l].first);
      key[gather] = {after, 1};
      previous = after;
    }
  }

  std::vector<Whole> gradients;
  for (const std::vector<int> &buffers : groups.gradients) {
    Whole gradient{{}, count, 0, {}};
    for (int l = 0; l < count; ++l)
      for (int buffer : buffers) {
        if (touches(launches[l].writes, buffer)) {
          gradient.makers.push_back(l);
          gradient.needed = std::min(gradient.needed, l);
        }
        if (touches(launches[l].reads, buffer) || touches(launches[l].writes, buffer)) {
          gradient.users.push_back(l);
          gradient.last = l;
        }
      }
    gradients.push_back(gradient);
  }
  std::sort(gradients.begin(), gradients.end(),
            [](const Whole &a, const Whole &b) { return a.needed < b.needed; });
  for (size_t i = 0; i < gradients.size(); ++i)
    for (int l : mustBeDone(gradients, i, prefetch))
      for (int maker : gradients[i].makers)
        launches[maker].waits.push_back(l);

  std::vector<int> order(count), position(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(key[a], a) < std::make_pair(key[b], b);
  });
  std::vector<Launch> issued;
  for (int i = 0; i < count; ++i) {
    position[order[i]] = i;
    issued.push_back(std::move(launches[order[i]]));
  }
  for (Launch &launch : issued)
    for (int &wait : launch.waits)
      wait = position[wait];
  launches = std::move(issued);
  return order;
}
