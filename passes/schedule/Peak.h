//===- Peak.h - where the arena is fullest ----------------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_PEAK_H
#define PASSES_SCHEDULE_PEAK_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// The buffers that make the arena as large as it has to be.
struct Peak {
  /// Bytes that no plan can do without: `buffers`, each in whole kAlignment but for one that stands
  /// on top.
  int64_t bytes = 0;
  int segment = -1; ///< index in the role; -1 where only persistent buffers exist
  /// The last launch of the segment, in issue order, with which one of `buffers` comes alive: when
  /// it starts, none of them need be free yet. -1 where there is no segment.
  int launch = -1;
  /// Indices in the role, rising: the persistent ones, and transient ones that may all be alive
  /// together. Of buffers that take each other's place, the one that stands there at `launch`.
  std::vector<int> buffers;
};

/// The peak of `role`: of all segments the first that needs most.
Peak findPeak(const Role &role);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_PEAK_H
