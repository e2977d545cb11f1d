//===- OptionChecks.cpp - options that do not fit together ----------------===//

#include "base/PrintableText.h"
#include "dialect/fsdp/AxisParts.h"
#include "tools/fsdpc/Decisions.h"
#include "tools/fsdpc/Options.h"

#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/NNDialect.h"
#include "passes/global/Strategies.h"
#include "passes/schedule/PipelineOrder.h"
#include "runtime/program/Limits.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

namespace ir = mlir::fsdp;

namespace fsdpc {

static constexpr const char *kContext = "context"; ///< the mesh axis of the options below
/// Options about sequences that are split, up to their value.
static const std::pair<std::string, std::string ir::PipelineOptions::*> contextOptions[] = {
    {"--context-attention=", &ir::PipelineOptions::contextAttention},
    {"--context-order=", &ir::PipelineOptions::contextOrder}};

bool hasStages(const MeshAxes &mesh) {
  return llvm::any_of(mesh, [](const auto &axis) {
    return ir::getAxisRole(axis.first).carriesRoles && axis.second > 1;
  });
}

bool Options::choosesStages(const MeshAxes &mesh) const {
  return !machine.empty() && pipeline.stages == kAutomaticWord && getEmit() != Emit::Model &&
         hasStages(mesh);
}

bool Options::choosesAttention() const {
  const std::vector<MeshAxes> meshes = getMeshes();
  return !machine.empty() && pipeline.contextAttention == kAutomaticWord && meshes.size() == 1 &&
         getEmit() != Emit::Model && llvm::any_of(meshes.front(), [](const auto &axis) {
           return axis.first == kContext && axis.second > 1;
         });
}

std::string Options::getContextOption() const {
  for (const auto &[option, word] : contextOptions)
    if (pipeline.*word != kAutomaticWord && pipeline.*word != kFastestWord)
      return option + pipeline.*word;
  return "";
}

static bool namesAxis(const MeshAxes &mesh, llvm::StringRef name) {
  return llvm::any_of(mesh, [&](const auto &axis) { return axis.first == name; });
}

/// Options that divide the model over the mesh axis of the stages, up to their value.
static const std::pair<std::string, std::string ir::PipelineOptions::*> pipelineOptions[] = {
    {"--stages=", &ir::PipelineOptions::stages},
    {"--pipeline-schedule=", &ir::PipelineOptions::pipelineSchedule}};

std::string Options::getPipelineOption() const {
  for (const auto &[option, word] : pipelineOptions)
    if (pipeline.*word != ir::PipelineOptions().*word)
      return option + pipeline.*word;
  return "";
}

void Options::checkPipeline(int64_t ranks, const std::string &mesh) const {
  if (const std::string option = getPipelineOption(); ranks == 1 && !option.empty())
    throw UsageError(option + " divides the model over the mesh axis 'pipeline', got mesh " + mesh +
                     "; give that axis a size of 2 or more, or leave the option out");
  if (ranks == 1)
    return;
  if (pipeline.generate)
    throw UsageError("--generate is not possible where ranks along 'pipeline' run different "
                     "programs, got mesh " +
                     mesh + "; compile the program that generates for a mesh without that axis");
  if (pipeline.accumulate > kMaxPipelineMicrobatches)
    throw UsageError(llvm::formatv(
        "--accumulate={0} gives {0} microbatches to ranks along 'pipeline', expected at most {1}, "
        "as the program of a step has all of them; give fewer",
        pipeline.accumulate, kMaxPipelineMicrobatches));
  ir::schedule::PipelineSchedule schedule;
  if (ir::schedule::parsePipelineSchedule(pipeline.pipelineSchedule, schedule).empty() &&
      schedule.kind == ir::schedule::PipelineSchedule::Kind::interleaved &&
      pipeline.accumulate != kAutomaticCount && pipeline.accumulate % ranks != 0)
    throw UsageError(llvm::formatv(
        "--pipeline-schedule={0} got --accumulate={1}, expected a multiple of the {2} ranks along "
        "'pipeline'; give --accumulate={3}, or another schedule",
        pipeline.pipelineSchedule, pipeline.accumulate, ranks,
        (pipeline.accumulate / ranks + 1) * ranks));
}

std::string Options::remarkOnPipeline(mlir::ModuleOp module) const {
  const mlir::StringAttr axis = ir::findPipelineAxis(module);
  ir::schedule::PipelineSchedule schedule;
  if (!axis || !ir::schedule::parsePipelineSchedule(pipeline.pipelineSchedule, schedule).empty())
    return "";
  const int64_t ranks = ir::getMeshOp(module).getMesh().getAxisSize(axis);
  const int64_t microbatches = pipeline.accumulate;
  if (microbatches >= ranks || choseMicrobatches)
    return "";
  const ir::schedule::PipelineTimes times =
      ir::schedule::timePipeline(ir::schedule::orderPipeline(schedule, ranks, microbatches), {});
  const double idle =
      static_cast<double>(*llvm::max_element(times.idle)) / static_cast<double>(times.makespan);
  return llvm::formatv(
      "--accumulate={0} gives {0} microbatch{1} to {2} ranks along 'pipeline': each "
      "is idle {3:F0} % of the time between first forward and last backward; give "
      "--accumulate={2} or more, or fewer ranks along 'pipeline' where the model needs all samples "
      "of a step at once",
      microbatches, microbatches == 1 ? "" : "es", ranks, 100 * idle);
}

/// Rates of kinds are those of ops of these dialects; a rate of another name would never count.
static void checkKinds(const ir::cost::Machine &machine) {
  if (machine.memoryRatesOfKinds.empty())
    return;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<mlir::nn::NNDialect, ir::FSDPDialect>();
  for (const auto &[kind, rates] : machine.memoryRatesOfKinds)
    if (!mlir::RegisteredOperationName::lookup("nn." + kind, &context) &&
        !mlir::RegisteredOperationName::lookup("fsdp." + kind, &context))
      throw Failure("--machine: field 'kinds': got kind '" + kind +
                    "', expected the mnemonic of an op of the dialects nn and fsdp, such as "
                    "layer_norm_grad");
}

void Options::check() const {
  bool writesProgram = getEmit() >= Emit::Source && !onlyReport();
  if (writesProgram && output.empty())
    throw UsageError("--emit=" + emit + " needs '-o PATH'");
  if (emitLocations && getEmit() >= Emit::Source)
    throw UsageError("--emit-locations applies to IR text; got --emit=" + emit +
                     ", expected global, local or scheduled");
  if (record && onlyReport())
    throw UsageError("--record needs a program, and --report alone writes none; give '-o PATH'");
  if (record && getEmit() < Emit::Source)
    throw UsageError("--record applies to programs; got --emit=" + emit +
                     ", expected source or binary");
  if (getEmit() == Emit::Model && getMeshes().size() > 1)
    throw UsageError(
        "--emit=model writes one model, got the meshes --mesh=" + base::inQuotes(mesh) +
        "; give one, or leave --mesh out and give it when the model is compiled");
  // Options that the written model does not contain would be ignored silently.
  if (getEmit() == Emit::Model && report.empty()) {
    std::string lost = distribution.substr(0, distribution.find('='));
    if (pipeline.printShardings)
      lost = "--print-shardings";
    if (!pipeline.drawSharding.empty())
      lost = "--draw-sharding";
    if (!pipeline.explainShardings.empty())
      lost = "--explain-shardings";
    if (!lost.empty())
      throw UsageError(
          lost +
          " cannot be stored in a model, got --emit=model; give it when the model is compiled");
  }
  if (pipeline.accumulateReduce != "auto" && pipeline.accumulate == 1)
    throw UsageError("--accumulate-reduce=" + pipeline.accumulateReduce +
                     " chooses among microbatches, got --accumulate=1; give --accumulate=K of at "
                     "least 2, or leave it out");
  if (pipeline.minShardSize > 0 && !ir::findStrategy(pipeline.strategy)->splits())
    throw UsageError("--min-shard-size applies to what a strategy splits, got --strategy=" +
                     pipeline.strategy + ", which splits nothing; leave it out");

  if (!cudaArch.empty() && target != "cuda")
    throw UsageError("--cuda-arch applies to programs for GPUs; got --target=" + target +
                     ", expected cuda");
  const std::set<std::string> communicators =
      target == "cuda" ? std::set<std::string>{"auto", "nccl", "loopback"}
                       : std::set<std::string>{"auto", "shm", "tcp", "mpi"};
  if (!communicators.count(communicator))
    throw UsageError("--target=" + target + " has no --communicator=" + communicator +
                     "; use auto, " + (target == "cuda" ? "nccl or loopback" : "shm, tcp or mpi"));
  if (!machine.empty() && getEmit() < Emit::Source && !predicts() && !choosesPlan() &&
      memoryLimit.empty() && fit.empty() && !choosesAttention() &&
      llvm::none_of(getMeshes(), [&](const MeshAxes &axes) { return choosesStages(axes); }))
    throw UsageError("--machine applies to programs, for the 'mfu' of their log, to predicted "
                     "times, and to stages and attention that it chooses; add --report, "
                     "--timeline=FILE.json or --explain=FILE.html, or leave it out");
  if ((choosesPlan() || !memoryLimit.empty() || !fit.empty()) && getMeshes().size() > 1)
    throw UsageError(std::string(choosesPlan()          ? "'auto' chooses for"
                                 : !memoryLimit.empty() ? "--memory-limit is of"
                                                        : "--fit is of") +
                     " one plan, got the meshes --mesh=" + base::inQuotes(mesh) + "; give one");
  for (const auto &[option, file] : {std::pair("--timeline", &timeline), {"--explain", &explain}}) {
    if (!file->empty() && getMeshes().size() > 1)
      throw UsageError(std::string(option) + " is of one plan, got the meshes --mesh=" +
                       base::inQuotes(mesh) + "; give one");
    if (!file->empty() && getEmit() == Emit::Model)
      throw UsageError(std::string(option) + " is of a compiled model, got --emit=model; give it "
                                             "when the model is compiled");
  }
  checkKinds(findMachine(1));
}

void Options::checkMesh(mlir::ModuleOp module) const {
  // Without a mesh, compilation gives the module the mesh of one rank.
  mlir::Builder builder(module.getContext());
  ir::MeshOp mesh = ir::getMeshOp(module);
  ir::MeshAttr axes =
      mesh ? mesh.getMesh()
           : ir::MeshAttr::get(builder.getContext(), {builder.getStringAttr(ir::getStorageAxis())},
                               {1}, llvm::ArrayRef<int64_t>());
  if (communicator == "loopback" && axes.getNumRanks() > limits::kMaxLoopbackRanks)
    throw UsageError(llvm::formatv("--communicator=loopback takes at most {0} ranks on one GPU, "
                                   "got {1}; use nccl, or a smaller mesh",
                                   limits::kMaxLoopbackRanks, axes.getNumRanks()));
  auto has = [&](llvm::StringRef name) { return ir::hasAxis(axes, name); };
  const std::string got = ", got mesh " + ir::spellMesh(axes) + "; ";
  if (strategyGiven)
    if (std::string mismatch = ir::explainMismatch(*ir::findStrategy(pipeline.strategy), axes);
        !mismatch.empty())
      throw UsageError("--strategy=" + pipeline.strategy + " " + mismatch);
  for (const std::string &name : pipeline.batchAxes)
    if (!has(name))
      throw UsageError("--batch-axes names axis " + base::inQuotes(name) + got +
                       "name one of its axes");
  for (const std::string &name : pipeline.batchAxes)
    if (ir::getAxisRole(name).splitsCompute)
      throw UsageError("--batch-axes names axis " + base::inQuotes(name) +
                       ", which is reserved; choose another name for the axis");
  // An axis that only the model names has size 1 here.
  const bool hasContext =
      this->mesh.empty() ? has(kContext) : llvm::any_of(getMeshes(), [](const MeshAxes &given) {
        return namesAxis(given, kContext);
      });
  if (const std::string option = getContextOption(); !option.empty() && !hasContext)
    throw UsageError(option + " applies to sequences that the mesh axis 'context' splits" + got +
                     "give it that axis, or leave the option out");
  if (pipeline.reshard != "always" && pipeline.reshard != kAutomaticWord &&
      !gathersParameters(module, pipeline))
    throw UsageError(
        "--reshard-after-forward applies to parameters that are gathered, got --strategy=" +
        pipeline.strategy + ", which keeps them on every rank; leave it out");
  const mlir::StringAttr stages = ir::findPipelineAxis(module);
  checkPipeline(stages ? axes.getAxisSize(stages) : 1, ir::spellMesh(axes));
  std::vector<std::string> stored;
  for (const std::string &pattern : pipeline.shardPatterns)
    for (const std::string &name :
         ir::parseShardSpec(ir::splitShardPattern(pattern).second)->getAxes())
      stored.push_back(name);
  if (mlir::StringAttr unused = ir::findUnusedAxis(module, pipeline.batchAxes, stored))
    throw UsageError(
        "nothing uses axis " + base::inQuotes(unused.str()) +
        " of the mesh: " + ir::listBatchAxes() +
        " split the "
        "batch, others if --batch-axes names them, and parameters and values are split as the "
        "model or --shard says; use it there, or leave it out");
}

Emit Options::getEmit() const {
  static const std::vector<std::string> names = {"model",     "global", "local",
                                                 "scheduled", "source", "binary"};
  return static_cast<Emit>(std::find(names.begin(), names.end(), emit) - names.begin());
}

Options Options::forMesh(const MeshAxes &mesh, const std::vector<MeshAxes> &meshes) const {
  std::string unknown;
  auto keeps = [&](llvm::StringRef name) {
    if (llvm::none_of(meshes, [&](const MeshAxes &other) { return namesAxis(other, name); }))
      unknown = name.str();
    return namesAxis(mesh, name);
  };
  auto requireKnown = [&](const std::string &what) {
    if (!unknown.empty())
      throw UsageError(what + ", but no mesh has an axis " + base::inQuotes(unknown) +
                       "; name one of --mesh");
  };
  Options own = *this;
  for (std::string &shard : own.pipeline.shardPatterns) {
    std::string kept = mlir::fsdp::keepAxes(shard, keeps);
    requireKnown("--shard splits by " + base::inQuotes(shard));
    shard = std::move(kept);
  }
  llvm::erase_if(own.pipeline.batchAxes, [&](const std::string &name) { return !keeps(name); });
  requireKnown("--batch-axes names axis " + base::inQuotes(unknown));
  for (const auto &[option, word] : contextOptions) {
    if (own.pipeline.*word != "auto" && !keeps(kContext))
      own.pipeline.*word = "auto";
    requireKnown(llvm::StringRef(option).drop_back().str() + " got " +
                 base::inQuotes(pipeline.*word));
  }
  for (const auto &[option, word] : pipelineOptions) {
    const std::string initial = ir::PipelineOptions().*word;
    if (own.pipeline.*word != initial && llvm::none_of(meshes, hasStages))
      throw UsageError(
          option + own.pipeline.*word +
          " divides the model over the mesh axis 'pipeline', but no mesh has it with a "
          "size of 2 or more; leave the option out");
    if (!hasStages(mesh))
      own.pipeline.*word = initial;
  }
  // Parts over axes that this mesh lacks are not kept.
  if (auto choice = ir::parseReshard(own.pipeline.reshard);
      choice && choice->reshard == ir::Reshard::axes) {
    llvm::erase_if(choice->axes, [&](const std::string &name) {
      std::optional<ir::AxisPart> part = ir::parseAxisPart(name);
      return !keeps(part ? part->axis : name);
    });
    requireKnown("--reshard-after-forward got " + base::inQuotes(own.pipeline.reshard));
    own.pipeline.reshard =
        choice->axes.empty() ? "always" : "axes:" + llvm::join(choice->axes, "+");
  }
  return own;
}

} // namespace fsdpc
