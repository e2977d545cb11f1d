//===- Checker.h - checks schedules -----------------------------*- C++ -*-===//
// Shares only Problem.h with the planner and the wait elision, and checks their results.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULE_CHECKER_H
#define PASSES_SCHEDULE_CHECKER_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// One end of a conflict; indices, -1 if there is none.
struct End {
  int role = -1, segment = -1, launch = -1, buffer = -1;
};

enum class Fault {
  malformed,   ///< an index or range that does not exist
  deadlock,    ///< launches that wait for one another, on one rank or across roles
  unissued,    ///< a wait for a launch that is issued later
  race,        ///< conflicting accesses without an order
  unwritten,   ///< a read of bytes that nothing wrote before
  overlap,     ///< buffers that share bytes while both are live
  outside,     ///< a buffer that is not inside the arena, or not aligned
  members,     ///< an access across the members of a flat storage, or to its padding
  advanced,    ///< a use of the step's number after it was advanced
  collectives, ///< ranks that issue different collectives on a communicator
  segments,    ///< roles that go through different segments, or a segment that is never reached
  updated      ///< a storage that is updated twice in a step
};

struct Finding {
  Fault fault;
  std::string message; ///< names both ends
  End first, second;
};

/// All faults on any path through the segments. Independent of the scheduler. Each role is run in
/// issue order on the launches in flight, the contents of bytes and their last accesses, to a fixed
/// point over its segment graph: races; reads of bytes that were
/// never written, or were overwritten through another buffer; collectives in no fixed order; uses
/// of the step's number after it was advanced, and storages updated twice in a step; and, where the
/// role has an arena, buffers outside it or on what the driver fills. Then the segment graphs of
/// all roles are run together: the same segments, the same requests on each communicator in one
/// order, no cycle of waits. Empty: the schedule is correct.
std::vector<Finding> checkSchedule(const Problem &problem);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_CHECKER_H
