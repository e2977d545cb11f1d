//===- Peak.h - the peak of the arena ---------------------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_PEAK_H
#define PASSES_SCHEDULE_PEAK_H

#include "passes/schedule/Interference.h"

namespace mlir::fsdp::schedule {

/// The buffers that determine the minimum size of the arena.
struct Peak {
  /// Bytes that every plan needs: `buffers`, each rounded up to kAlignment except the last.
  int64_t bytes = 0;
  int segment = -1; ///< index in the role; -1 where only persistent buffers exist
  /// The last launch of the segment, in issue order, with which the lifetime of one of `buffers`
  /// begins: when it starts, none of them is free yet. -1 where there is no segment.
  int launch = -1;
  /// Indices in the role, rising: the persistent ones, and transient ones that may all be alive
  /// together. Of buffers that replace each other, the current one at `launch`.
  std::vector<int> buffers;
};

/// The peak of `role`: of all segments, of which `touches` are given in order, the first that needs
/// most.
Peak findPeak(const Role &role, const std::vector<SegmentTouches> &touches);
Peak findPeak(const Role &role);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_PEAK_H
