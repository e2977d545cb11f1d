//===- Decisions.cpp ------------------------------------------------------===//

#include "tools/fsdpc/Decisions.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/NNDialect.h"
#include "passes/global/Strategies.h"
#include "passes/local/partition/StorageLayout.h"
#include "passes/sharding/MeshAxes.h"
#include "passes/sharding/ShardSpec.h"
#include "tools/fsdpc/PlanCosts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <set>

using namespace mlir;
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

/// "axes:A" for the leading axes A of each flat storage, and for parts of one that has one axis.
static std::vector<std::string> findKeptAxes(ir::MeshAttr mesh,
                                             const ir::PipelineOptions &pipeline) {
  std::vector<std::vector<std::string>> storages = {{}};
  for (StringAttr axis : ir::getStorageAxes(mesh))
    storages.front().push_back(axis.str());
  if (storages.front().empty())
    storages.clear();
  for (const std::string &pattern : pipeline.shardPatterns)
    if (auto storage = ir::parseShardSpec(ir::splitShardPattern(pattern).second)->storage;
        storage && storage->kind == ir::StorageKind::flat && !storage->axes.empty())
      storages.push_back(storage->axes);
  std::vector<std::string> values;
  for (const std::vector<std::string> &axes : storages) {
    for (size_t count = 1; count < axes.size(); ++count)
      values.push_back("axes:" + llvm::join(axes.begin(), axes.begin() + count, "+"));
    if (axes.size() > 1 || !ir::parseAxisPart(axes.front())->isWhole())
      continue;
    const int64_t size = ir::positionsOf(mesh, axes.front());
    for (int64_t kept : {2, 4})
      if (size > kept && size % kept == 0)
        values.push_back("axes:" + axes.front() + ":(1)" + std::to_string(kept));
  }
  llvm::sort(values);
  values.erase(llvm::unique(values), values.end());
  return values;
}

bool gathersParameters(ModuleOp model, const ir::PipelineOptions &pipeline) {
  // With a strategy that splits nothing, a pattern splits all three; with others only the tensors
  // that they split.
  const ir::Strategy &strategy = *ir::findStrategy(pipeline.strategy);
  return strategy.splitsParameter || (!strategy.splits() && !pipeline.shardPatterns.empty()) ||
         llvm::any_of(model.getOps<ir::ParamOp>(),
                      [](ir::ParamOp param) { return bool(param.getPlacement()); });
}

/// Strategies that keep parameters on every rank have nothing to release.
static std::vector<std::string> findReshards(ModuleOp model, const ir::PipelineOptions &pipeline) {
  if (!gathersParameters(model, pipeline))
    return {"always"};
  std::vector<std::string> values = getDecision("reshard-after-forward").values;
  if (ir::MeshOp mesh = ir::getMeshOp(model))
    llvm::append_range(values, findKeptAxes(mesh.getMesh(), pipeline));
  return values;
}

static std::string explainReshard(const OpenDecision &choice, const PlanCosts &,
                                  const ir::PipelineOptions &pipeline) {
  return choice.values.size() > 1
             ? ""
             : "parameters stay on every rank with --strategy=" + pipeline.strategy;
}

/// The kinds of context attention, and `auto` where attentions differ so that no kind may take all.
static std::vector<std::string> findAttentions(ModuleOp model, const ir::PipelineOptions &) {
  std::vector<std::string> values = getDecision("context-attention").values;
  std::set<std::pair<bool, bool>> forms;
  model.walk([&](nn::AttentionOp attention) {
    const nn::AttentionLayout sizes = attention.getLayout();
    forms.insert({attention.getBias() || attention.getDocuments(), sizes.queries == sizes.keys});
  });
  if (forms.size() > 1)
    values.push_back(kAutomaticWord);
  return values;
}

/// Numbers of microbatches, and with a pipeline multiples of its ranks too, which fill it.
static std::vector<std::string> findMicrobatches(ModuleOp model, const ir::PipelineOptions &) {
  std::vector<std::string> values = getDecision("accumulate").values;
  const StringAttr axis = ir::findPipelineAxis(model);
  if (!axis)
    return values;
  std::set<int64_t> counts;
  for (const std::string &value : values)
    counts.insert(std::stoll(value));
  const int64_t ranks = ir::getMeshOp(model).getMesh().getAxisSize(axis);
  for (int64_t factor : {1, 2, 4})
    counts.insert(factor * ranks);
  values.clear();
  for (int64_t count : counts)
    if (count <= kMaxPipelineMicrobatches)
      values.push_back(std::to_string(count));
  return values;
}

/// Whether the microbatches and the units allow `interleaved` shows when a plan is compiled.
static std::vector<std::string> findPipelineSchedules(ModuleOp model, const ir::PipelineOptions &) {
  return ir::findPipelineAxis(model) ? getDecision("pipeline-schedule").values
                                     : std::vector<std::string>{"1f1b"};
}

/// More than one unit at once only of models with that many that may be alike.
static std::vector<std::string> findBuckets(ModuleOp model, const ir::PipelineOptions &) {
  std::set<StringRef> units;
  for (auto param : model.getOps<ir::ParamOp>())
    units.insert(param.getUnit());
  std::vector<std::string> values = getDecision("buckets").values;
  llvm::erase_if(values, [&](const std::string &value) {
    return ir::Buckets::parse(value)->units > static_cast<int64_t>(units.size());
  });
  return values;
}

/// "gather 3.1 ms > compute 2.4 ms": the longest gather, and the computation of a step for each.
static std::string compareGathers(const OpenDecision &, const PlanCosts &costs,
                                  const ir::PipelineOptions &) {
  if (costs.gathers == 0)
    return "nothing is gathered";
  const double compute = costs.computing / static_cast<double>(costs.gathers);
  return "gather " + milliseconds(costs.longestGather) +
         (costs.longestGather > compute ? " > " : " <= ") + "compute " + milliseconds(compute);
}

const std::vector<Decision> &getDecisions() {
  using Pipeline = ir::PipelineOptions;
  static const std::vector<Decision> rows = {
      {"remat",
       &Pipeline::remat,
       ir::Phase::global,
       {"none", "selective", "full", "every:2", "every:3"}},
      {"context-attention",
       &Pipeline::contextAttention,
       ir::Phase::global,
       {"all-to-all", "ring", "gather"},
       findAttentions,
       nullptr,
       kFastestWord},
      {"accumulate",
       &Pipeline::accumulate,
       ir::Phase::global,
       {"1", "2", "4", "8", "16"},
       findMicrobatches},
      {"pipeline-schedule",
       &Pipeline::pipelineSchedule,
       ir::Phase::global,
       {"1f1b", "gpipe", "zb", "interleaved:2"},
       findPipelineSchedules},
      {"reshard-after-forward",
       &Pipeline::reshard,
       ir::Phase::global,
       {"always", "never"},
       findReshards,
       explainReshard},
      {"buckets",
       &Pipeline::buckets,
       ir::Phase::local,
       {"unit", "parameter", "units:2", "units:4"},
       findBuckets,
       nullptr,
       kAutomaticWord,
       /*leads=*/true},
      {"defer-updates", &Pipeline::deferUpdates, ir::Phase::local, {"off", "on"}},
      {"prefetch",
       &Pipeline::prefetch,
       ir::Phase::scheduled,
       {"0", "1", "2", "3", "4"},
       nullptr,
       compareGathers},
  };
  return rows;
}

const Decision &getDecision(llvm::StringRef option) {
  return *llvm::find_if(getDecisions(),
                        [&](const Decision &decision) { return decision.option == option; });
}

} // namespace fsdpc
