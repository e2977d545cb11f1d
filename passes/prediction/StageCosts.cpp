//===- StageCosts.cpp -----------------------------------------------------===//

#include "passes/prediction/StageCosts.h"

#include "dialect/fsdp/Structure.h"
#include "passes/scheduled/PipelineParts.h"
#include "passes/scheduled/SegmentPlan.h"

#include <array>
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

constexpr size_t kResources = 3;
using Seconds = std::array<double, kResources>;

/// The seconds of each unit of each stage in a step.
class StageUnits {
public:
  StageUnits(ArrayRef<UnitRun> runs, ArrayRef<int64_t> stages) {
    for (auto [run, stage] : llvm::zip_equal(runs, stages)) {
      known.insert({stage, run.unit.getValue()});
      last[stage] = run.unit.getValue();
    }
  }

  void add(int64_t stage, StringAttr unit, size_t resource, double time) {
    StringRef name = unit ? unit.getValue() : "";
    // Parameters that several stages use have a unit of their own (fsdp-assign-stages).
    if (!known.count({stage, name}))
      name = name.substr(0, name.rfind(".stage"));
    if (!known.count({stage, name}))
      name = last[stage];
    seconds[{stage, name}][resource] += time;
  }
  const Seconds &of(int64_t stage, StringRef unit) { return seconds[{stage, unit}]; }

private:
  std::set<std::pair<int64_t, StringRef>> known;
  std::map<int64_t, StringRef> last;
  std::map<std::pair<int64_t, StringRef>, Seconds> seconds;
};

} // namespace

/// The resource that launches of a stream use; nothing for transfers, inputs and updates.
static std::optional<size_t> resourceOf(StringRef stream) {
  if (stream == streams::compute || stream == streams::activation)
    return 0;
  if (stream == streams::gather)
    return 1;
  if (stream == streams::reduce)
    return 2;
  return std::nullopt;
}

std::vector<std::vector<double>> mlir::fsdp::timeRuns(const StepSimulation &simulation,
                                                      ArrayRef<UnitRun> runs,
                                                      ArrayRef<int64_t> stages) {
  const ScheduleProblem &schedule = simulation.getSchedule();
  const auto ranks = static_cast<int64_t>(schedule.programs.size());
  StageUnits units(runs, stages);
  for (auto [role, segments] : llvm::enumerate(schedule.segments))
    for (auto [segment, op] : llvm::enumerate(segments)) {
      if (SegmentOp(op).getKind() != StepKind::train || SegmentOp(op).getDrain())
        continue;
      for (auto [number, launch] : llvm::enumerate(schedule.launches[role][segment])) {
        const Structure structure = getStructure(launch);
        const std::optional<size_t> resource = resourceOf(LaunchOp(launch).getStream());
        if (!resource || structure.direction == Direction::update)
          continue;
        // Each rank computes the ops without a stage that it needs.
        const auto rank = static_cast<int64_t>(role);
        const int64_t stage = structure.stage % ranks == rank ? structure.stage : rank;
        units.add(stage, structure.unit, *resource,
                  simulation.getTimes().seconds[role][segment][number]);
      }
    }
  std::map<std::pair<int64_t, StringRef>, std::pair<double, double>> all; // runs of a unit, flops
  for (auto [run, stage] : llvm::zip_equal(runs, stages)) {
    auto &[count, flops] = all[{stage, run.unit.getValue()}];
    count += 1;
    flops += static_cast<double>(run.flops);
  }
  const auto microbatches = static_cast<double>(PipelineParts(schedule).getMicrobatches());
  std::vector<std::vector<double>> costs;
  for (auto [run, stage] : llvm::zip_equal(runs, stages)) {
    const auto [count, flops] = all[{stage, run.unit.getValue()}];
    const double share = flops > 0 ? static_cast<double>(run.flops) / flops : 1 / count;
    std::vector<double> &cost = costs.emplace_back();
    for (double seconds : units.of(stage, run.unit))
      cost.push_back(share * seconds / microbatches);
  }
  return costs;
}
