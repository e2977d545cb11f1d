//===- ProgramOrder.cpp - conflicting accesses keep their order -----------===//

#include "passes/schedule/ProgramOrder.h"

#include <algorithm>
#include <unordered_map>

using namespace mlir::fsdp::schedule;

namespace {

/// The accesses to one buffer so far, in issue order.
struct History {
  struct Entry {
    Access access;
    int launch = 0; ///< index in issue order
    bool writes = false, isMinimum = false;
  };

  std::vector<Entry> entries;
  /// The latest place in the computation of any access and of a write.
  int lastAccess = -1, lastWrite = -1;
};

} // namespace

std::optional<ReorderedAccess>
mlir::fsdp::schedule::findReordered(const std::vector<Launch> &issued,
                                    const std::vector<int> &order) {
  std::unordered_map<int, History> histories;
  for (size_t l = 0; l < issued.size(); ++l) {
    const int launch = static_cast<int>(l), place = order[l];
    for (const bool writes : {false, true})
      for (const Access &access : writes ? issued[l].writes : issued[l].reads) {
        const std::vector<Access> &minima = issued[l].minima;
        const bool isMinimum = std::find(minima.begin(), minima.end(), access) != minima.end();
        History &history = histories[access.buffer];
        // Only a launch with a later place can be out of order, and of two reads none is.
        if ((writes ? history.lastAccess : history.lastWrite) > place)
          for (const History::Entry &entry : history.entries)
            if ((writes || entry.writes) && !(isMinimum && entry.isMinimum) &&
                order[entry.launch] > place && entry.access.overlaps(access))
              return ReorderedAccess{launch, entry.launch, access.buffer};
        history.entries.push_back({access, launch, writes, isMinimum});
        history.lastAccess = std::max(history.lastAccess, place);
        if (writes)
          history.lastWrite = std::max(history.lastWrite, place);
      }
  }
  return std::nullopt;
}
