//===- StageEstimate.cpp --------------------------------------------------===//

#include "tools/fsdpc/StageEstimate.h"
#include "passes/schedule/BalancedCut.h"
#include "passes/schedule/PipelineOrder.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace fsdpc {

using mlir::fsdp::schedule::PipelineSchedule;

static PipelineSchedule scheduleOf(const PlanSpec &plan) {
  PipelineSchedule schedule;
  mlir::fsdp::schedule::parsePipelineSchedule(plan.schedule, schedule);
  return schedule;
}

double timePipeline(const PlanSpec &plan, double computing, const StageTransfers &transfers) {
  const PipelineSchedule schedule = scheduleOf(plan);
  const auto ranks = static_cast<double>(plan.stageRanks()),
             count = static_cast<double>(plan.accumulate),
             chunks = static_cast<double>(schedule.chunks);
  const double own = computing / count;
  double fill = (ranks - 1) / chunks * own, inFlight = 0;
  switch (schedule.kind) {
  case PipelineSchedule::Kind::gpipe: // all are
    break;
  case PipelineSchedule::Kind::oneForwardOneBackward: // P
    inFlight = own + 2 * transfers.sum / ranks;
    break;
  case PipelineSchedule::Kind::zeroBubble: // P, until the cotangents are computed
    fill /= 3;
    inFlight = 2 * own / 3 + 2 * transfers.sum / ranks;
    break;
  case PipelineSchedule::Kind::interleaved: // of all stages of a rank together, P (V + 1)
    inFlight = own / 2 + chunks * transfers.sum / (ranks - 1);
    break;
  }
  return count * std::max({own, 2 * chunks * transfers.slowest, inFlight}) + fill +
         2 * transfers.sum;
}

/// The most microbatches whose activations the first or the last rank keeps, each of all of its
/// stages.
static double countKept(const PlanSpec &plan, bool first) {
  const PipelineSchedule schedule = scheduleOf(plan);
  const int64_t ranks = plan.stageRanks(), chunks = schedule.chunks;
  if (schedule.kind == PipelineSchedule::Kind::gpipe)
    return static_cast<double>(plan.accumulate);
  if (schedule.kind == PipelineSchedule::Kind::oneForwardOneBackward && !first)
    return 1;
  if (chunks == 1)
    return static_cast<double>(std::min(ranks, plan.accumulate));
  const int64_t warmUp = (first ? 2 * (ranks - 1) : 0) + (chunks - 1) * ranks + 1;
  return static_cast<double>(std::min(plan.accumulate * chunks, warmUp)) /
         static_cast<double>(chunks);
}

std::vector<double> timeUnits(const PlanCosts &whole, llvm::ArrayRef<UnitWork> units,
                              int64_t blocks) {
  std::map<std::string, double> flops; // of all runs of a unit
  for (const UnitWork &unit : units)
    flops[unit.unit] += unit.flops;
  // The blocks are the units with flops that as many units have as there are blocks.
  std::map<double, int64_t> counts;
  for (const auto &[unit, own] : flops)
    ++counts[own];
  auto equal = llvm::find_if(counts, [&](const auto &entry) { return entry.second == blocks; });
  double ofBlock = whole.secondsOfBlock, rest = whole.step - ofBlock * static_cast<double>(blocks);
  const bool knowsBlocks = blocks > 0 && ofBlock > 0 && rest >= 0 && equal != counts.end();
  auto isBlock = [&](const UnitWork &unit) {
    return knowsBlocks && flops[unit.unit] == equal->first;
  };
  if (!knowsBlocks)
    rest = whole.step;
  double others = 0; // flops
  for (const UnitWork &unit : units)
    others += isBlock(unit) ? 0 : unit.flops;
  std::vector<double> seconds;
  for (const UnitWork &unit : units)
    seconds.push_back(isBlock(unit) ? ofBlock * unit.flops / equal->first
                      : others > 0  ? rest * unit.flops / others
                                    : 0);
  return seconds;
}

/// The largest sum over a rank's stages, of the sum of all.
static double largestShare(llvm::ArrayRef<double> costs, llvm::ArrayRef<int64_t> stages,
                           int64_t ranks) {
  std::vector<double> ofRank(ranks);
  for (auto [stage, size] : llvm::enumerate(stages)) {
    ofRank[stage % ranks] += std::accumulate(costs.begin(), costs.begin() + size, 0.0);
    costs = costs.drop_front(size);
  }
  const double sum = std::accumulate(ofRank.begin(), ofRank.end(), 0.0);
  return sum > 0 ? *std::max_element(ofRank.begin(), ofRank.end()) / sum
                 : 1 / static_cast<double>(ranks);
}

std::optional<PlanCosts> estimateStages(PlanSpec &plan, const PlanCosts &whole,
                                        llvm::ArrayRef<UnitWork> units, int64_t blocks,
                                        const StageTransfers &transfers) {
  const int64_t ranks = plan.stageRanks(), count = plan.countStages();
  const bool isInterleaved = scheduleOf(plan).chunks > 1;
  if (count > static_cast<int64_t>(units.size()) || (isInterleaved && plan.accumulate % ranks != 0))
    return std::nullopt;
  const std::vector<double> seconds = timeUnits(whole, units, whole.exact ? 0 : blocks);
  const std::vector<int64_t> stages = mlir::fsdp::schedule::cutBalanced(seconds, count);
  if (!whole.exact)
    plan.stages = stages;
  std::vector<double> elements;
  for (const UnitWork &unit : units)
    elements.push_back(unit.elements);
  const double time = largestShare(seconds, stages, ranks),
               stored = largestShare(elements, stages, ranks);
  PlanCosts costs = whole;
  costs.exact = false;
  // The first rank keeps the activations of most microbatches, of its part of the layers; the last
  // one has the head.
  auto part = [](int64_t bytes, double share) {
    return static_cast<int64_t>(static_cast<double>(bytes) * share);
  };
  costs.stored = part(whole.stored, stored);
  costs.saved = part(whole.saved, time * countKept(plan, /*first=*/true));
  const int64_t head = whole.arena - whole.stored - whole.saved - whole.working;
  costs.arena =
      costs.stored + whole.working +
      std::max(costs.saved, part(whole.saved, time * countKept(plan, /*first=*/false)) + head);
  costs.computing *= time;
  costs.step = timePipeline(plan, whole.step * time, transfers);
  costs.exposed = costs.exposed * time + costs.step - timePipeline(plan, whole.step * time, {});
  costs.modelFlops /= static_cast<double>(ranks);
  const double faster = whole.step / costs.step;
  costs.itemsPerSecond *= faster;
  costs.mfu *= faster / static_cast<double>(ranks);
  return costs;
}

} // namespace fsdpc
