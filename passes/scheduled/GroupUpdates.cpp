//===- GroupUpdates.cpp - updates of several storages as one launch -------===//
//
// A unit has a storage for each set of axes that split its parameters, and a model many units. An
// update of a small storage takes as long as its launch.
//
//===----------------------------------------------------------------------===//

#include "passes/scheduled/GroupUpdates.h"

#include "dialect/fsdp/UpdateGroup.h"
#include "passes/scheduled/LaunchConflicts.h"
#include "runtime/program/Limits.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The last update of `launch`; null if it has none.
static OptimizerStepOp updateOf(const PlannedLaunch &launch) {
  return launch.body.empty() ? OptimizerStepOp() : dyn_cast<OptimizerStepOp>(launch.body.back());
}

static bool areAlike(const PlannedLaunch &a, const PlannedLaunch &b) {
  return a.stream == b.stream && a.structure.in(StringAttr()) == b.structure.in(StringAttr()) &&
         mayShareLaunch(updateOf(a), updateOf(b));
}

static size_t countUpdates(const PlannedLaunch &launch) {
  return llvm::count_if(launch.body, llvm::IsaPred<OptimizerStepOp>);
}

/// Adds `member` to `group`, of which nothing remains in `member`.
static void append(PlannedLaunch &group, PlannedLaunch &member, UniqueNames &names) {
  if (countUpdates(group) == 1) {
    if (group.structure.unit != member.structure.unit)
      group.structure.unit = nullptr;
    group.name = names.get(updateOf(group)->getName().stripDialect(), group.structure);
  }
  for (Operation *op : std::exchange(member.body, {}))
    if (!llvm::is_contained(group.body, op)) // constants may be shared
      group.body.push_back(op);
  for (auto [value, place] : llvm::zip_equal(member.values, member.ins))
    if (!llvm::is_contained(group.values, value)) {
      group.values.push_back(value);
      group.ins.push_back(place);
    }
  group.results.append(member.results);
  group.outs.append(member.outs);
}

void mlir::fsdp::groupUpdates(SegmentPlan &plan) {
  std::vector<PlannedLaunch> &launches = plan.launches;
  std::optional<size_t> group; // the latest, which is still before other launches
  for (size_t i = 0; i < launches.size(); ++i) {
    PlannedLaunch &launch = launches[i];
    if (OptimizerStepOp update = updateOf(launch)) {
      const bool joins =
          group && areAlike(launches[*group], launch) && !haveConflict(launches[*group], launch) &&
          countUpdates(launches[*group]) < limits::mostUpdates(update.getStates().size());
      if (joins) {
        append(launches[*group], launch, plan.launchNames);
        std::swap(launches[*group], launch);
      }
      group = i;
    } else if (group && (haveConflict(launches[*group], launch) ||
                         launch.state.conflictsWith(launches[*group].state))) {
      group.reset();
    }
  }
  llvm::erase_if(launches, [](const PlannedLaunch &launch) { return launch.body.empty(); });
}
