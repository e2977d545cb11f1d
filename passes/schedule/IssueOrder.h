//===- IssueOrder.h - when gathers are issued, and how many are whole -*- C++ -*-===//

#ifndef PASSES_SCHEDULE_ISSUEORDER_H
#define PASSES_SCHEDULE_ISSUEORDER_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// Brings the launches of `segment` from the order of the computation into issue order:
/// - launches of `early` (inputs) first;
/// - those of `gathers` as early as the budget allows: of the units that are done before a gather
///   is needed, all but the last `prefetch` have been used to the end when it starts. So at most
///   `prefetch` + 1 units are whole at once, where the computation itself needs only one;
/// - everything else stays in order, but the launches that write a buffer of `reduced` (gradients
///   before their reduction) wait, by the same rule, until earlier ones are reduced.
/// Adds the waits that keep the budgets. Requires launches without waits. Returns where each launch
/// of the result stood before.
std::vector<int> orderIssue(Segment &segment, const std::vector<int> &early,
                            const std::vector<int> &gathers, const std::vector<int> &reduced,
                            int prefetch);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_ISSUEORDER_H
