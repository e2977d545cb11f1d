//===- NodeLocalGroup.h - ranks of one machine that share memory ------------===//
#ifndef FSDP_RUNTIME_JOB_NODELOCALGROUP_H
#define FSDP_RUNTIME_JOB_NODELOCALGROUP_H

#include "runtime/comm/SharedSegment.h"
#include "runtime/job/RunIdentity.h"

#include <string>

namespace fsdp::rt {

/// Some ranks of a launcher's job that share a segment.
struct NodeLocalGroup {
  int rank = 0, first = 0; ///< this one, and the one that makes the segment
  int count = 1;
  /// The same text on all of them, and on no other ranks of this machine.
  std::string key;
  /// What this rank was started with; compared with the first one's.
  RunIdentity identity;
};

/// The segment that they share: made by the first, found by the others through `key`. Returns when
/// all have it. Errors: a rank that does not come in time, comes twice, or was started otherwise
/// than the first. Throws Aborted where another rank has reported the failure.
SharedSegment joinSegment(const SharedSegment::Layout &layout, const NodeLocalGroup &group,
                          double timeoutSeconds);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_NODELOCALGROUP_H
