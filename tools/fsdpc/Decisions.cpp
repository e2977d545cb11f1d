//===- Decisions.cpp ------------------------------------------------------===//

#include "tools/fsdpc/Decisions.h"
#include "llvm/ADT/STLExtras.h"

namespace ir = mlir::fsdp;

namespace fsdpc {

std::string Decision::get(const Pipeline &pipeline) const {
  if (const auto *word = std::get_if<std::string Pipeline::*>(&field))
    return pipeline.*(*word);
  const int64_t count = pipeline.*std::get<int64_t Pipeline::*>(field);
  return count == kAutomaticCount ? kAutomaticWord : std::to_string(count);
}

void Decision::set(Pipeline &pipeline, const std::string &value) const {
  if (const auto *word = std::get_if<std::string Pipeline::*>(&field))
    pipeline.*(*word) = value;
  else
    pipeline.*std::get<int64_t Pipeline::*>(field) =
        value == kAutomaticWord ? kAutomaticCount : std::stoll(value);
}

const std::vector<Decision> &getDecisions() {
  using Pipeline = ir::PipelineOptions;
  static const std::vector<Decision> rows = {
      {"remat",
       &Pipeline::remat,
       ir::Phase::global,
       {"none", "selective", "full", "every:2", "every:3"}},
      {"accumulate", &Pipeline::accumulate, ir::Phase::global, {"1", "2", "4", "8", "16"}},
      {"reshard-after-forward", &Pipeline::reshard, ir::Phase::global, {"always", "never"}},
      {"buckets", &Pipeline::buckets, ir::Phase::local, {"unit", "parameter"}},
      {"defer-updates", &Pipeline::deferUpdates, ir::Phase::local, {"off", "on"}},
      {"prefetch", &Pipeline::prefetch, ir::Phase::scheduled, {"0", "1", "2", "3", "4"}},
  };
  return rows;
}

const Decision &getDecision(llvm::StringRef option) {
  return *llvm::find_if(getDecisions(),
                        [&](const Decision &decision) { return decision.option == option; });
}

} // namespace fsdpc
