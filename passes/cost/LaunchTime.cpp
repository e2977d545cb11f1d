//===- LaunchTime.cpp -----------------------------------------------------===//

#include "passes/cost/LaunchTime.h"

#include <algorithm>

using namespace mlir::fsdp;
using namespace mlir::fsdp::cost;

double mlir::fsdp::cost::secondsOf(const schedule::LaunchCost &cost, const Machine &machine,
                                   const std::string &kind) {
  const auto bytes = static_cast<double>(cost.bytesRead + cost.bytesWritten);
  auto memory = [&](double moved) {
    return moved > 0 ? moved / machine.memoryRate(kind, moved) : 0;
  };
  const double loops = static_cast<double>(cost.flops - cost.productFlops) / machine.loopFlops;
  double product = 0;
  if (cost.productFlops > 0)
    product = static_cast<double>(cost.productFlops) /
              machine.productRate(cost.product.str(), cost.productType.str(), cost.productExtent,
                                  cost.productKeys);
  int64_t separate = 0;
  if (machine.epilogues == Epilogues::library)
    separate = cost.remainingBytes;
  else if (cost.epilogueIsOperandSum ||
           (machine.epilogues == Epilogues::separate && !cost.epilogueIsBias))
    separate = cost.epilogueBytes;
  if (separate > 0)
    return 2 * machine.launchSeconds + std::max(product, memory(bytes)) +
           std::max(loops, memory(static_cast<double>(separate)));
  return machine.launchSeconds + std::max(product + loops, memory(bytes));
}

/// Whether a collective among one rank finds its result where it is, so that nothing is copied.
static bool isInPlace(const schedule::Role &role, const schedule::Launch &launch) {
  if (launch.reads.size() != 1 || launch.writes.size() != 1)
    return false;
  const schedule::Access &from = launch.reads.front(), &to = launch.writes.front();
  const int64_t source = role.buffers[from.buffer].offset, target = role.buffers[to.buffer].offset;
  return from == to || (source >= 0 && target >= 0 && source + from.begin == target + to.begin);
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
        const std::string kind = launch.kind.substr(launch.kind.find('.') + 1).str();
        const double alone = secondsOf(launch.cost, machine, kind);
        if (launch.collective && groups[launch.collective->communicator].ranks() == 1) {
          time.seconds = isInPlace(role, launch) ? 0 : alone - machine.launchSeconds;
          ofSegment.push_back(machine.launchSeconds + time.seconds);
        } else if (launch.collective) {
          time = timeOf(launch.collective->kind, static_cast<double>(launch.collective->bytes),
                        groups[launch.collective->communicator], machine);
          ofSegment.push_back(machine.launchSeconds + time.seconds);
        } else {
          ofSegment.push_back(alone);
        }
        collectivesOfSegment.push_back(time);
      }
    }
  }
  return times;
}
