//===- NodeLocalGroup.h - ranks of one machine that share memory ------------===//
#ifndef FSDP_RUNTIME_JOB_NODELOCALGROUP_H
#define FSDP_RUNTIME_JOB_NODELOCALGROUP_H

#include "runtime/comm/SharedSegment.h"
#include "runtime/job/RunIdentity.h"

#include <string>

namespace fsdp::rt {

/// Some ranks of a launcher's job that share a segment.
struct NodeLocalGroup {
  int rank = 0, first = 0; ///< this rank, and the one that creates the segment
  int count = 1;
  /// The same text on all of them, and on no other ranks of this machine.
  std::string key;
  /// How this rank was started; compared with the first rank.
  RunIdentity identity;
};

/// The segment that they share: created by the first rank, found by the others through `key`.
/// Returns when all ranks have it. Errors: a rank does not join in time, joins twice, or was
/// started differently than the first rank. Throws Aborted if another rank has reported the
/// failure.
SharedSegment joinSegment(const SharedSegment::Layout &layout, const NodeLocalGroup &group,
                          double timeoutSeconds);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_NODELOCALGROUP_H
