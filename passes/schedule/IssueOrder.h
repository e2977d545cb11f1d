//===- IssueOrder.h - issue order, budgets of gathers and messages -*- C++ -*-===//

#ifndef PASSES_SCHEDULE_ISSUEORDER_H
#define PASSES_SCHEDULE_ISSUEORDER_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// Launches that issue order treats specially.
struct IssueGroups {
  std::vector<int> early; ///< launches that are issued as early as possible, in order: inputs
  /// Launches whose results a gather reads, issued directly before it: deferred updates.
  std::vector<int> updates;
  /// The gathers of one unit each, each list in the order of the computation.
  std::vector<std::vector<int>> gathers;
  /// The launches of `gathers` whose result is only a part of a unit, which is kept and gathered
  /// further by others.
  std::vector<int> parts;
  /// The buffers that hold the gradient of one unit each before it is reduced.
  std::vector<std::vector<int>> gradients;
  /// The launches that receive from another role.
  std::vector<int> receives;
  /// Of a rank of a pipeline: the first launch on `compute` of each part of the computation, such
  /// as the forward of a microbatch in a stage, in order.
  std::vector<int> partBegins;
  /// The launches that send to another role, of one direction each: lists of those of one part, in
  /// the order of the computation.
  std::vector<std::vector<std::vector<int>>> sends;
  int compute = 0; ///< the stream of the computation
};

/// Brings the launches of `segment` from the order of the computation into issue order:
/// - those of `early` first, or directly after the last launch before them that uses the bytes that
/// they write: the copy of the previous microbatch, where inputs are loaded several times;
/// - gathers in the order in which their units are needed, as early as the budget allows: of the
/// units whose last use precedes a unit's first use, all but the last `prefetch` have been used to
/// the end when its gathers start. So at most `prefetch` + 1 units are unsharded at once, if the
/// computation needs only one; a part does not count in the budget, and is gathered when the unit
/// before it is;
/// - each of `updates` directly before the first gather that reads the bytes that it writes, unless
/// other launches read them before;
/// - everything else stays in order, except that launches that write a gradient wait, by the same
///   rule, until earlier ones are reduced.
/// Bounds the places of messages, which otherwise nothing waits for:
/// - a receive is issued before the part that precedes its own, during which the message arrives,
///   and waits for the computation that is issued before it;
/// - launches that compute the messages of a part wait until all earlier messages of the same
///   direction are sent, except those of the part before. So a direction has messages of two parts
///   at once.
/// Adds the waits that keep the budgets. Requires launches without waits. Returns the old index of
/// each launch of the result. Sets `isLimited` if the budgets count units off: then a larger
/// `prefetch` may give another result, else each gives this one.
std::vector<int> orderIssue(Segment &segment, const IssueGroups &groups, int64_t prefetch,
                            bool *isLimited = nullptr);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_ISSUEORDER_H
