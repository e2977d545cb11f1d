//===- LaunchTime.h - how long a launch takes alone -------------*- C++ -*-===//

#ifndef PASSES_COST_LAUNCHTIME_H
#define PASSES_COST_LAUNCHTIME_H

#include "passes/cost/Collectives.h"
#include "passes/schedule/Problem.h"

namespace mlir::fsdp::cost {

/// Seconds of a kernel with this work: the longer of its flops and its bytes (the roofline model:
/// Williams, Waterman, Patterson, CACM 2009), besides the time that each launch takes.
/// If the machine's kernels have no epilogues, loops after a product are a separate launch. `kind`:
/// the mnemonic of the op.
double secondsOf(const schedule::LaunchCost &cost, const Machine &machine,
                 const std::string &kind = "");

/// The launches of a problem on a machine: [role][segment][launch].
struct LaunchTimes {
  std::vector<std::vector<std::vector<double>>> seconds;
  /// For collectives only; other launches have no algorithm. A collective of a single rank is a
  /// copy: it has no algorithm either, and takes no time if the result overwrites the operand.
  std::vector<std::vector<std::vector<CollectiveTime>>> collectives;
};

/// `groups`: the shape of the slowest group of each communicator of the problem.
LaunchTimes timeLaunches(const schedule::Problem &problem, llvm::ArrayRef<GroupShape> groups,
                         const Machine &machine);

} // namespace mlir::fsdp::cost

#endif // PASSES_COST_LAUNCHTIME_H
