//===- LaunchTime.cpp -----------------------------------------------------===//

#include "passes/cost/LaunchTime.h"

#include <algorithm>

using namespace mlir::fsdp;
using namespace mlir::fsdp::cost;

double mlir::fsdp::cost::secondsOf(const schedule::LaunchCost &cost, const Machine &machine) {
  const auto bytes = static_cast<double>(cost.bytesRead + cost.bytesWritten);
  auto memory = [&](double moved) { return moved > 0 ? moved / machine.memoryRates.at(moved) : 0; };
  const double loops = static_cast<double>(cost.flops - cost.productFlops) / machine.loopFlops;
  double product = 0;
  if (cost.productFlops > 0)
    product =
        static_cast<double>(cost.productFlops) /
        machine.productRate(cost.product, cost.productType, cost.productExtent, cost.productKeys);
  if (machine.separateEpilogues && cost.epilogueBytes > 0)
    return 2 * machine.launchSeconds + std::max(product, memory(bytes)) +
           std::max(loops, memory(static_cast<double>(cost.epilogueBytes)));
  return machine.launchSeconds + std::max(product + loops, memory(bytes));
}

LaunchTimes mlir::fsdp::cost::timeLaunches(const schedule::Problem &problem,
                                           llvm::ArrayRef<GroupShape> groups,
                                           const Machine &machine) {
  LaunchTimes times;
  for (const schedule::Role &role : problem.roles) {
    auto &seconds = times.seconds.emplace_back();
    auto &collectives = times.collectives.emplace_back();
    for (const schedule::Segment &segment : role.segments) {
      auto &ofSegment = seconds.emplace_back();
      auto &collectivesOfSegment = collectives.emplace_back();
      for (const schedule::Launch &launch : segment.launches) {
        CollectiveTime time;
        if (launch.collective) {
          time = timeOf(launch.collective->kind, static_cast<double>(launch.collective->bytes),
                        groups[launch.collective->communicator], machine);
          ofSegment.push_back(machine.launchSeconds + time.seconds);
        } else {
          ofSegment.push_back(secondsOf(launch.cost, machine));
        }
        collectivesOfSegment.push_back(time);
      }
    }
  }
  return times;
}
