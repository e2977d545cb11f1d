//===- Waits.cpp - waits from conflicts, and their transitive reduction ---===//

#include "passes/schedule/Waits.h"
#include "passes/schedule/HappensBefore.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

static void sortUnique(std::vector<int> &values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

void mlir::fsdp::schedule::materializeWaits(Segment &segment) {
  struct Past {
    Access access;
    int launch;
    bool write;
  };
  int buffers = 0;
  for (const Launch &launch : segment.launches)
    for (const std::vector<Access> *accesses : {&launch.reads, &launch.writes})
      for (const Access &access : *accesses)
        buffers = std::max(buffers, access.buffer + 1);
  std::vector<std::vector<Past>> past(buffers); // by buffer
  for (size_t i = 0; i < segment.launches.size(); ++i) {
    Launch &launch = segment.launches[i];
    auto waitForConflicts = [&](const Access &access, bool write) {
      for (const Past &earlier : past[access.buffer])
        if ((write || earlier.write) && access.overlaps(earlier.access))
          launch.waits.push_back(earlier.launch);
    };
    for (const Access &access : launch.reads)
      waitForConflicts(access, false);
    for (const Access &access : launch.writes)
      waitForConflicts(access, true);
    for (const Access &access : launch.reads)
      past[access.buffer].push_back({access, static_cast<int>(i), false});
    for (const Access &access : launch.writes)
      past[access.buffer].push_back({access, static_cast<int>(i), true});
    sortUnique(launch.waits);
  }
}

void mlir::fsdp::schedule::elideImpliedWaits(Segment &segment) {
  HappensBefore order(segment.launches);
  for (size_t i = 0; i < segment.launches.size(); ++i) {
    std::vector<int> &waits = segment.launches[i].waits;
    sortUnique(waits);
    int previous = order.previousOnStream(static_cast<int>(i));
    auto implied = [&](int wait) {
      if (previous >= 0 && (wait == previous || order.before(wait, previous)))
        return true;
      return std::any_of(waits.begin(), waits.end(),
                         [&](int other) { return other != wait && order.before(wait, other); });
    };
    std::vector<int> kept;
    std::copy_if(waits.begin(), waits.end(), std::back_inserter(kept),
                 [&](int wait) { return !implied(wait); });
    waits = kept;
  }
}
