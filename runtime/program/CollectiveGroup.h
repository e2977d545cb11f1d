//===- CollectiveGroup.h - collectives that ranks meet in once --*- C++ -*-===//

#ifndef FSDP_RUNTIME_PROGRAM_COLLECTIVEGROUP_H
#define FSDP_RUNTIME_PROGRAM_COLLECTIVEGROUP_H

#include "runtime/program/CollectiveRequest.h"
#include "runtime/program/GroupLimit.h"

namespace fsdp::rt {

/// One of the collectives of a group, which are all AllGather or all ReduceScatter, and
/// limits::kMaxGroupedCollectives at most. No target may
/// overlap another buffer of the group, except a piece in its own whole.
struct GroupedCollective {
  CollectiveRequest request;
  const void *source;
  void *target;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_COLLECTIVEGROUP_H
