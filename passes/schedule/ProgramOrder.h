//===- ProgramOrder.h - conflicting accesses keep their order ---*- C++ -*-===//

#ifndef PASSES_SCHEDULE_PROGRAMORDER_H
#define PASSES_SCHEDULE_PROGRAMORDER_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// Two launches of the computation that access the same bytes, at least one of them as a writer,
/// and are issued in the opposite order.
struct ReorderedAccess {
  int earlier = 0, later = 0; ///< by their place in the computation: indices in `issued`
  int buffer = 0;             ///< the buffer that both access
};

/// Whether `issued`, whose launch i was launch `order[i]` of the computation, still computes the
/// same values as the computation: launches that access the same bytes, at least one of them as a
/// writer, are issued in the order of the computation, unless both take a minimum there. Returns a
/// pair for which this does not hold, or nothing.
///
/// The checker cannot detect such a pair: a schedule that reads a parameter before its update is as
/// free of races as one that reads it afterwards. `order` is a permutation. Takes time linear in
/// the number of accesses if nothing is out of order.
std::optional<ReorderedAccess> findReordered(const std::vector<Launch> &issued,
                                             const std::vector<int> &order);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_PROGRAMORDER_H
