//===- Functions.cpp ------------------------------------------------------===//

#include "codegen/Functions.h"

#include "dialect/fsdp/CollectiveGroup.h"
#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// The streams of a timeline that carry collectives, and those that carry gathers.
struct Communication {
  llvm::StringSet<> streams, gathers;

  explicit Communication(const Timeline &timeline) {
    for (const Action &action : timeline.actions) {
      LaunchOp launch = action.launch;
      for (CollectiveOpInterface collective : getCollectives(launch)) {
        streams.insert(launch.getStream());
        if (isa<AllGatherOp>(collective))
          gathers.insert(launch.getStream());
      }
    }
  }
};
} // namespace

/// The function of `launch`, which runs `op` alone if that is not null, without its actions; one
/// without a part if the launch is grouped with its neighbours: communication with adjacent casts,
/// input and output, arithmetic outside units.
static FunctionRange functionOf(LaunchOp launch, Operation *op,
                                const Communication &communication) {
  if (isa_and_nonnull<InputOp, OutputOp, OutputSumOp>(op) ||
      communication.streams.contains(launch.getStream()))
    return {};
  Structure structure = getStructure(launch);
  if (structure.direction == Direction::update)
    return {nullptr, "update"};
  if (!structure.unit)
    return {};
  return {structure.unit, stringifyDirection(structure.direction).str()};
}

std::vector<FunctionRange> mlir::fsdp::cutIntoFunctions(const ScheduledProgram &program,
                                                        const Timeline &timeline, size_t limit) {
  std::vector<FunctionRange> ranges;
  const Communication communication(timeline);
  size_t count = timeline.actions.size();
  // Loads and gathers are grouped with the following launches, all others with the preceding ones.
  size_t cut = 0; ///< where the next function would begin
  for (size_t i = 0; i < count; ++i) {
    LaunchOp launch = timeline.actions[i].launch;
    Operation *op = onlyOp(launch);
    FunctionRange own = functionOf(launch, op, communication);
    bool isAhead =
        isa_and_nonnull<InputOp>(op) || communication.gathers.contains(launch.getStream());
    if (own.part.empty() && !isAhead) {
      cut = i + 1;
      continue;
    }
    if (own.part.empty())
      continue;
    if (ranges.empty()) {
      ranges.push_back(own);
    } else if (ranges.back().unit != own.unit || ranges.back().part != own.part) {
      ranges.back().end = cut;
      own.begin = cut;
      ranges.push_back(own);
    }
    cut = i + 1;
  }
  if (ranges.empty() && count > 0)
    ranges.push_back({nullptr, "actions"});
  if (!ranges.empty())
    ranges.back().end = count;

  std::vector<FunctionRange> pieces;
  for (const FunctionRange &range : ranges)
    for (size_t begin = range.begin; begin < range.end; begin += limit)
      pieces.push_back({range.unit, range.part, begin, std::min(begin + limit, range.end)});
  return pieces;
}
