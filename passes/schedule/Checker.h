//===- Checker.h - checks schedules -----------------------------*- C++ -*-===//
// Shares only Problem.h with the planner and the wait elision, and checks their results.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULE_CHECKER_H
#define PASSES_SCHEDULE_CHECKER_H

#include "passes/schedule/Finding.h"
#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// All faults on any path through the segments. Independent of the scheduler. Each role is run in
/// issue order on the launches in flight, the contents of bytes and their last accesses, to a fixed
/// point over its segment graph: races; reads of bytes that were never written, or were overwritten
/// through another buffer; collectives without a fixed order; uses of the step's number after it
/// was advanced, and storages updated twice in a step; and, where the role has an arena, buffers
/// outside it or over bytes that the driver fills. Then the segment graphs of all roles are run
/// together: the same segments, the same requests on each communicator in one order, no cycle of
/// waits. Empty: the schedule is correct.
std::vector<Finding> checkSchedule(const Problem &problem);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_CHECKER_H
