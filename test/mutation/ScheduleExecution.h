//===- ScheduleExecution.h - runs a schedule in many orders -----*- C++ -*-===//
//
// The independent judge of the checker. A schedule is run on simulated ranks, one for each role: a
// launch begins and ends as two events, in between anything may happen that streams and waits
// allow. Bytes of memory hold their last writer; a launch must read the same bytes as if all ran
// one after the other in issue order, with each buffer in separate memory. Ranks continue with the
// next segment as soon as they can; all meet at the end of one that is joined.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_MUTATION_SCHEDULEEXECUTION_H
#define TEST_MUTATION_SCHEDULEEXECUTION_H

#include "passes/schedule/Problem.h"

#include <random>
#include <string>

namespace fsdp::mutation {

/// Runs `problem`, whose indices are in range, in `orders` random orders, each through some
/// segments from the start of a walk on; returns what went wrong, or nothing.
std::string execute(const mlir::fsdp::schedule::Problem &problem, std::mt19937 &random, int orders);

} // namespace fsdp::mutation

#endif // TEST_MUTATION_SCHEDULEEXECUTION_H
