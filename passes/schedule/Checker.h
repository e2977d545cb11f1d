//===- Checker.h - what is wrong with a schedule ----------------*- C++ -*-===//
//
// Independent of the planner and of the wait elision: it sees only their results.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULE_CHECKER_H
#define PASSES_SCHEDULE_CHECKER_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// One of the two things that do not fit together; indices, -1 where there is none.
struct End {
  int role = -1, segment = -1, launch = -1, buffer = -1;
};

enum class Fault {
  malformed,  ///< an index or range that does not exist
  deadlock,   ///< launches that wait for one another, on one rank or across roles
  unissued,   ///< a wait for a launch that is issued later
  race,       ///< conflicting accesses without an order
  unwritten,  ///< a read of bytes that nothing wrote before
  overlap,    ///< buffers that share bytes while both are live
  outside,    ///< a buffer that is not inside the arena, or not aligned
  members,     ///< an access across the members of a flat storage, or to its padding
  advanced,    ///< a use of the step's number after it was advanced
  collectives, ///< ranks that issue different collectives on a communicator
  segments     ///< roles that go through different segments
};

struct Finding {
  Fault fault;
  std::string message; ///< names both ends
  End first, second;
};

/// Everything that is wrong: waits in a circle or for what is not issued yet; races; reads of
/// bytes that were never written, or were overwritten through another buffer; buffers
/// outside the arena; accesses across members of flat storages; uses of the step's number after it
/// was advanced; collectives of which the order is open on one rank or differs between roles; roles
/// whose segments follow one another differently.
/// On edges to `next` segments too. Memory is checked where the role has an arena. Empty: the
/// schedule is right.
std::vector<Finding> checkSchedule(const Problem &problem);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_CHECKER_H
