//===- StrategyCost.cpp ---------------------------------------------------===//

#include "passes/cost/StrategyCost.h"

#include <cmath>
#include <numeric>

using namespace mlir::fsdp::cost;

std::optional<StrategyCost> mlir::fsdp::cost::costOfStrategy(llvm::StringRef strategy,
                                                             const ModelSize &model, int64_t units,
                                                             const Machine &machine) {
  struct Row {
    llvm::StringRef name;
    bool splitsStates, splitsGradients, splitsParameters;
    std::vector<std::string> collectives; ///< of each unit in a step
  };
  // Rajbhandari et al.: ZeRO, SC 2020, section 5 (its P_os, P_os+g, P_os+g+p) and section 7.
  static const Row rows[] = {
      {"ddp", false, false, false, {"all_reduce"}},
      {"zero1", true, false, false, {"reduce_scatter", "all_gather"}},
      {"zero2", true, true, false, {"reduce_scatter", "all_gather"}},
      {"fsdp", true, true, true, {"all_gather", "all_gather", "reduce_scatter"}},
  };
  for (const Row &row : rows) {
    if (row.name != strategy)
      continue;
    const double bytes = model.parameters * model.elementBytes;
    auto held = [&](bool split) {
      return split ? bytes / static_cast<double>(model.ranks) : bytes;
    };
    StrategyCost cost;
    cost.memory = held(row.splitsParameters) + held(row.splitsGradients) +
                  static_cast<double>(model.states) * held(row.splitsStates);
    std::vector<int64_t> group(model.ranks);
    std::iota(group.begin(), group.end(), 0);
    const GroupShape shape = shapeOf(group, machine);
    for (const std::string &kind : row.collectives) {
      const CollectiveTime time = timeOf(kind, bytes / static_cast<double>(units), shape, machine);
      cost.sent += static_cast<double>(units) * time.busBytes;
      cost.seconds += static_cast<double>(units) * time.seconds;
    }
    return cost;
  }
  return std::nullopt;
}

double mlir::fsdp::cost::efficiencyOf(double compute, double exposed) {
  return compute > 0 ? compute / (compute + exposed) : 0;
}

double mlir::fsdp::cost::hidingBandwidth(double bytes, int64_t ranks, double compute,
                                         double latency) {
  const double P = static_cast<double>(ranks), left = compute - (P - 1) * latency;
  return left > 0 ? (P - 1) / P * bytes / left : HUGE_VAL;
}
