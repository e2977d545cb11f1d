//===- Finding.h - a fault of a schedule ---------------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_FINDING_H
#define PASSES_SCHEDULE_FINDING_H

#include <string>

namespace mlir::fsdp::schedule {

/// One end of a conflict; indices, or -1 if absent.
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
  updated      ///< a storage that is updated twice in a step, or under a condition of another one
};

struct Finding {
  Fault fault;
  std::string message; ///< names both ends
  End first, second;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_FINDING_H
