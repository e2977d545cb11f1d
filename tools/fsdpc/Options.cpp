//===- Options.cpp - names, checks and defaults of the command line -------===//

#include "tools/fsdpc/Options.h"

#include "base/GroupOptions.h"
#include "base/Options.h"
#include "base/PrintableText.h"
#include "base/ShellWords.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/UpdateRule.h"
#include "passes/CountOption.h"
#include "passes/global/Strategies.h"
#include "passes/local/partition/StorageLayout.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/sharding/ShardSpec.h"
#include "runtime/program/Limits.h"
#include "tools/fsdpc/Decisions.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <set>

namespace ir = mlir::fsdp;

namespace fsdpc {

//===----------------------------------------------------------------------===//
// Checks of single values
//===----------------------------------------------------------------------===//

static constexpr int64_t mostRanks = 1 << 20;
static constexpr base::IntegerRange<int64_t> fromZero = {0, INT64_MAX}, fromOne = {1, INT64_MAX};
static constexpr base::NumberRange anyAmount = {}, share = {0, false, 1};

static std::string checkReshard(const std::string &text) {
  return text == kAutomaticWord || ir::parseReshard(text)
             ? ""
             : base::mismatch(text, "auto, " + ir::reshardForm.str());
}

static std::string checkStages(const std::string &text) {
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(text).split(words, ',');
  int64_t units = 0;
  const bool isList = llvm::all_of(words, [&](llvm::StringRef word) {
    return base::parseInteger(word.str(), fromOne, units).empty();
  });
  return text == kAutomaticWord || isList
             ? ""
             : base::mismatch(text, "auto, or the number of units of each stage, at least 1, "
                                    "separated by commas");
}

static std::string checkPipelineSchedule(const std::string &text) {
  ir::schedule::PipelineSchedule schedule;
  if (text == kAutomaticWord)
    return "";
  const std::string fault = ir::schedule::parsePipelineSchedule(text, schedule);
  return fault.empty() ? "" : fault + ", or auto";
}

static std::string checkBuckets(const std::string &text) {
  return text == kAutomaticWord || ir::Buckets::parse(text)
             ? ""
             : base::mismatch(text, "auto, " + ir::bucketsForm.str());
}

static std::string checkRematPolicy(const std::string &text) {
  static const std::string every = "every:";
  static const std::vector<std::string> words = {"none", "full", "selective", kAutomaticWord};
  int64_t blocks = 0;
  if (llvm::is_contained(words, text) ||
      (text.rfind(every, 0) == 0 &&
       base::parseInteger(text.substr(every.size()), fromOne, blocks).empty()))
    return "";
  return base::mismatch(text,
                        "none, full, selective, auto or every:K with K " + fromOne.describe());
}

/// "20GiB" in bytes; nothing if it is not a size.
static std::optional<double> parseByteCount(llvm::StringRef text) {
  static const std::map<std::string, double> units = {
      {"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
      {"TiB", 0x1p40}, {"KB", 1e3}, {"MB", 1e6},     {"GB", 1e9}};
  const llvm::StringRef digits =
      text.take_while([](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  auto unit = units.find(text.drop_front(digits.size()).str());
  double count = 0;
  if (unit == units.end() ||
      !base::parseNumber(digits.str(), {0, /*aboveLeast=*/true}, count).empty())
    return std::nullopt;
  const double bytes = count * unit->second;
  return bytes >= 1 && bytes < 0x1p62 ? std::optional<double>(bytes) : std::nullopt;
}

/// Parses "context:128". Returns the fault, or an empty text.
static std::string parseFit(const std::string &text, std::string &option, int64_t &step) {
  static const std::vector<std::string> names = {"batch", "context", "layers", "width"};
  const auto [name, size] = llvm::StringRef(text).split(':');
  option = name.str();
  step = 0;
  if (llvm::is_contained(names, option) &&
      (name.size() == text.size() ||
       base::parseInteger(size.str(), base::IntegerRange<int64_t>{1, 1 << 20}, step).empty()))
    return "";
  return base::mismatch(text, base::listed(names) + ", or one with :STEP from 1 to 1048576");
}

static std::string checkShardPattern(const std::string &text) {
  auto [pattern, spec] = ir::splitShardPattern(text);
  if (!pattern.empty() && !spec.empty() && text.find(';') == std::string::npos &&
      ir::parseShardSpec(spec))
    return "";
  return base::mismatch(text, "PATTERN:SPEC with SPEC " + ir::shardSpecForm.str());
}

/// Parses `a,b`; sets `message` on an error.
static std::vector<std::string> parseAxes(const std::string &text, std::string &message) {
  std::vector<std::string> names;
  for (llvm::StringRef part : llvm::split(text, ',')) {
    const std::string name = part.str();
    if (!ir::isAxisName(name))
      message = base::mismatch(text, "names of mesh axes, separated by commas");
    else if (llvm::is_contained(names, name))
      message = "axis " + base::inQuotes(name) + " appears twice; name each once";
    if (!message.empty())
      break;
    names.push_back(name);
  }
  return names;
}

std::string describe(const MeshAxes &mesh) {
  std::string text;
  for (const auto &[name, size] : mesh)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}

MeshAxes parseMesh(const std::string &text, std::string &message) {
  MeshAxes axes;
  int64_t ranks = 1;
  for (llvm::StringRef axis : llvm::split(text, ',')) {
    const std::string name = axis.split('=').first.str();
    int64_t size = 0;
    if (!ir::isAxisName(name) || !axis.contains('='))
      message = base::mismatch(axis.str(), "AXIS=SIZE, separated by commas");
    else if (std::string wrong = base::parseInteger(
                 axis.split('=').second.str(), base::IntegerRange<int64_t>{1, mostRanks}, size);
             !wrong.empty())
      message = "size of axis " + base::inQuotes(name) + ": " + wrong;
    else if (llvm::any_of(axes, [&](auto &other) { return other.first == name; }))
      message = "axis " + base::inQuotes(name) + " appears twice; give each axis its own name";
    else if ((ranks *= size) > mostRanks) // both are at most 2^20
      message =
          base::inQuotes(text) + " has more ranks than the maximum of " + std::to_string(mostRanks);
    if (!message.empty())
      return {};
    axes.emplace_back(name, size);
  }
  if (axes.size() > ir::kMaxMeshAxes) {
    message = base::inQuotes(text) + " has " + std::to_string(axes.size()) +
              " axes, expected at most " + std::to_string(ir::kMaxMeshAxes) +
              "; leave out those of size 1";
    return {};
  }
  return axes;
}

std::vector<MeshAxes> parseMeshes(const std::string &text, std::string &message) {
  std::vector<MeshAxes> meshes;
  for (llvm::StringRef one : llvm::split(text, '|')) {
    MeshAxes axes = parseMesh(one.str(), message);
    if (message.empty() && llvm::is_contained(meshes, axes))
      message = "mesh " + base::inQuotes(one) + " appears twice; give each plan a different mesh";
    if (!message.empty())
      return {};
    meshes.push_back(std::move(axes));
  }
  return meshes;
}

//===----------------------------------------------------------------------===//
// The options
//===----------------------------------------------------------------------===//

/// "--weight-decay" for the constant `weight_decay`.
static std::string optionOf(std::string constant) {
  std::replace(constant.begin(), constant.end(), '_', '-');
  return "--" + constant;
}

/// "decay of the first moment of adam and adamw; ...": the distinct descriptions of the rules.
static std::string describeConstant(llvm::StringRef name) {
  std::vector<std::string> texts;
  for (const ir::UpdateRule &rule : ir::UpdateRule::all())
    for (const ir::UpdateRule::Constant &constant : rule.constants) {
      if (constant.name != name)
        continue;
      auto says = [&](const ir::UpdateRule &other) {
        return llvm::any_of(other.constants, [&](const ir::UpdateRule::Constant &its) {
          return its.name == name && its.description == constant.description;
        });
      };
      std::string text = constant.description.str();
      if (!llvm::all_of(ir::UpdateRule::all(), says))
        text += " of " + ir::UpdateRule::list("and", says);
      if (!llvm::is_contained(texts, text))
        texts.push_back(text);
    }
  return llvm::join(texts, "; ");
}

static void declareOptimizer(CLI::App &app, OptimizerOptions &o) {
  CLI::App &group = *app.add_option_group("Training", "overrides the model's own settings");
  auto number = [&](const std::string &name, std::optional<double> &value,
                    const std::string &description, base::NumberRange range) {
    base::addNumber(group, name, "X", value, description, range);
  };
  std::vector<std::string> rules;
  for (const ir::UpdateRule &rule : ir::UpdateRule::all())
    rules.push_back(rule.name.str());
  base::addChoice(group, "--optimizer", o.rule, "update rule", rules);
  number("--lr", o.lr, "learning rate", anyAmount);
  for (const ir::UpdateRule &rule : ir::UpdateRule::all())
    for (const ir::UpdateRule::Constant &constant : rule.constants)
      if (auto [entry, isNew] = o.constants.try_emplace(constant.name.str()); isNew)
        number(optionOf(entry->first), entry->second, describeConstant(constant.name),
               constant.fraction ? share : anyAmount);
  number("--clip", o.clip, "largest global norm of the gradients; 0 for no clipping", anyAmount);
  base::addInteger(group, "--warmup", "N", o.warmup,
                   "steps over which the learning rate rises to --lr", fromZero);
  base::addChoice(group, "--schedule", o.schedule,
                  "learning rate after warmup, until the last step",
                  {"constant", "linear", "cosine", "inverse-sqrt", "wsd"});
  number("--min-lr", o.minLr, "learning rate at which the schedule ends", anyAmount);
  number("--decay-share", o.decayShare,
         "share of the steps, the last ones, in which the rate of the schedule wsd falls", share);
  base::addGroupOptions(group, o.groups, "instead of the model's own");
}

static void declareDistribution(CLI::App &app, Options &o) {
  CLI::App &group = *app.add_option_group("Distribution");
  base::addOption(
      group, "--mesh", "AXIS=SIZE,...",
      "mesh axes and their sizes (fsdp=1); several meshes, separated by '|', are plans of one "
      "program",
      [&o](const std::string &text) {
        std::string message;
        parseMeshes(text, message);
        o.mesh = text;
        return message;
      });
  base::addOption(group, "--batch-axes", "AXIS,...",
                  "axes that split the batch besides data and fsdp", [&o](const std::string &text) {
                    std::string message;
                    o.pipeline.batchAxes = parseAxes(text, message);
                    return message;
                  });
#define FSDP_WORD(field, flag, initial, words, description)                                        \
  base::addChoice(group, "--" flag, o.pipeline.field, description, CLI::detail::split(words, '|')) \
      ->default_str(initial);
#define FSDP_WORD_OR_AUTO(field, flag, initial, words, description)                                \
  FSDP_WORD(field, flag, initial, words "|auto", description)
#define FSDP_FLAG(field, flag, description)                                                        \
  base::addFlag(group, "--" flag, o.pipeline.field, description);
#define FSDP_TEXT(field, flag, initial, form, check, description)                                  \
  base::addOption(group, "--" flag, form, description, [&o](const std::string &text) {             \
    o.pipeline.field = text;                                                                       \
    return check(text);                                                                            \
  })->default_str(initial);
#define FSDP_COUNT(type, field, flag, initial, letter, description)                                \
  base::addInteger(group, "--" flag, letter, o.pipeline.field, description, ir::type::range)       \
      ->default_str(#initial);
#define FSDP_COUNT_OR_AUTO(type, field, flag, initial, letter, description)                        \
  base::addOption(group, "--" flag, letter, description, [&o](const std::string &text) {           \
    if (text != kAutomaticWord)                                                                    \
      return base::parseInteger(text, ir::type::range, o.pipeline.field);                          \
    o.pipeline.field = kAutomaticCount;                                                            \
    return std::string();                                                                          \
  })->default_str(#initial);
#define FSDP_PIPELINE_COUNT(...)
#include "passes/PipelineOptions.def"
  base::addRepeated(group, "--shard", "PATTERN:SPEC",
                    "placement of the parameters whose names match PATTERN: how they are stored "
                    "(flat, replicated, or a dimension), or an "
                    "axis or _ for each dimension as in _,tensor or _,tensor@flat, over which they "
                    "are split in compute; may be given "
                    "several times",
                    [&o](const std::string &text) {
                      o.pipeline.shardPatterns.push_back(text);
                      return checkShardPattern(text);
                    });
  group.get_option("--strategy")->each([&o](const std::string &) { o.strategyGiven = true; });
  base::addOption(group, "--memory-limit", "SIZE", "memory limit of a rank, such as 20GiB",
                  [&o](const std::string &text) {
                    o.memoryLimit = text;
                    return parseByteCount(text) ? "" : base::mismatch(text, "a size such as 20GiB");
                  });
  base::addOption(group, "--fit", "OPTION[:STEP]",
                  "print the largest batch, context, layers or width (of multiples of STEP) whose "
                  "plan fits --memory-limit, or the machine's memory; writes no program",
                  [&o](const std::string &text) { return parseFit(text, o.fit, o.fitStep); });
  base::addText(group, "--json", "FILE.json", o.json,
                "write the results of --fit or 'plan' to this file as data");
  base::addChoice(
      group, "--communicator", o.communicator,
      "transport between ranks: auto, shm, tcp or mpi; for --target=cuda auto, nccl or loopback",
      {"auto", "shm", "tcp", "mpi", "nccl", "loopback"})
      ->default_str(o.communicator);
  group.callback([&o, &group] {
    for (const CLI::Option *option : group.get_options())
      if (option->get_name() != "--mesh" && option->count() > 0) {
        // For options with one value, the last one applies.
        const std::vector<std::string> &values = option->results();
        for (size_t i = option->get_expected_max() > 1 ? 0 : values.size() - 1; i < values.size();
             ++i)
          o.distribution += (o.distribution.empty() ? "" : " ") + option->get_name() +
                            (option->get_expected_min() == 0 ? "" : "=" + values[i]); // of a flag
      }
  });
}

void Options::declare(CLI::App &app) {
  base::addText(app, "-o,--output", "PATH", output,
                "output path (for IR, standard output by default)");
  base::addChoice(app, "--emit", emit,
                  "output kind; model is IR text that fsdpc reads, with the mesh and training "
                  "options given here",
                  {"model", "global", "local", "scheduled", "source", "binary"})
      ->each([this](const std::string &) { emitGiven = true; })
      ->default_str(emit);
  base::addFlag(app, "--emit-locations", emitLocations,
                "print IR with the locations of its operations, as --emit=model does");
  base::addChoice(app, "--target", target, "device that the program runs on", {"cpu", "cuda"})
      ->default_str(target);
  base::addOption(
      app, "--cuda-arch", "CC,...",
      "compute capabilities of the GPUs, such as 90 or 80,90a,100 (90); newer GPUs use the "
      "PTX of the newest",
      [this](const std::string &text) {
        std::string message;
        ir::parseCudaArchitectures(text, message);
        cudaArch = text;
        return message;
      });
  base::addFlag(app, "--record", record,
                "generate a program that prints its actions instead of executing them");
  base::addText(
      app, "--report", "[=FILE.json]", report,
      "print the memory table and the predicted time of a step; with =FILE.json, write them and "
      "the collectives to that file");
  base::addText(
      app, "--machine", "NAME|FILE[,nodes=N][,network=NAME][,kernels=NAME]", machine,
      "machine for which times are predicted, and whose peak the program's log uses: " +
          base::listed(ir::cost::getMachineNames()) +
          ", or a file that bench/calibrate writes (host; for --target=cuda h100x8); kernels: the "
          "implementation whose rates count (own)");
  base::addText(app, "--timeline", "FILE.json", timeline,
                "write the predicted step to this file, in the format of a program's --trace");
  base::addText(app, "--explain", "FILE.html", explain,
                "write a page that shows the plan to this file: memory over the step, timeline, "
                "collectives, shardings");
  base::addFlag(app, "--print-shardings", pipeline.printShardings,
                "print the sharding of every value to standard error");
  base::addOption(
      app, "--draw-sharding", "NAME[=FILE.svg]",
      "draw which rank holds which part of the value or parameter NAME, on standard error or "
      "as SVG",
      [this](const std::string &text) -> std::string {
        const std::size_t equals = text.find('=');
        if (text.empty() || equals == 0 || equals + 1 == text.size())
          return "got " + base::inQuotes(text) + ", expected NAME or NAME=FILE.svg";
        pipeline.drawSharding = text;
        return "";
      });
  base::addText(
      app, "--explain-shardings", "PATTERN", pipeline.explainShardings,
      "print the op, operand and priority that gave each axis to the values of these names");
  declareDistribution(app, *this);
  declareOptimizer(app, optimizer);
  app.footer(
      std::string("Of an option that is given several times the last value counts; those of "
                  "--shard, --lr-scale and --no-decay add up. @FILE.toml is replaced by "
                  "the options of a file.\n") +
      "The word 'plan' before all options searches for the fastest plans: " + app.get_name() +
      " plan --devices=N; its own options are in " + app.get_name() + " plan --help.");
}

const std::set<std::string> &Options::getOutputOptions() {
  static const std::set<std::string> names = {
      "--output",          "--emit",          "--emit-locations",    "--record",   "--report",
      "--print-shardings", "--draw-sharding", "--explain-shardings", "--timeline", "--explain"};
  return names;
}

void Options::refuseOutputs(const CLI::App &app, const std::string &what) {
  for (const std::string &name : getOutputOptions())
    if (app.get_option(name)->count() > 0)
      throw UsageError(what + " compiles no program, got " + name +
                       "; leave it out, and give it with the command of a plan");
}

std::string Options::listGiven(const CLI::App &app, const std::vector<std::string> &omitted) {
  std::string given;
  // In the order of the help: the model's options first, and groups after options without a group.
  for (const CLI::Option *option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || getOutputOptions().count(name) ||
        llvm::is_contained(omitted, name) || name.compare(0, 2, "--") != 0)
      continue;
    if (option->get_expected_min() == 0) // a flag
      base::addShellWord(given, name);
    else
      for (const std::string &value : option->results())
        base::addShellWord(given, name + "=" + value);
  }
  for (const CLI::App *group : app.get_subcommands([](const CLI::App *) { return true; }))
    if (const std::string words = listGiven(*group, omitted); !words.empty())
      given += (given.empty() ? "" : " ") + words;
  return given;
}

bool Options::predicts() const { return !(report.empty() && timeline.empty() && explain.empty()); }

bool Options::onlyReport() const { return predicts() && output.empty() && !emitGiven; }

bool Options::choosesPlan() const {
  return llvm::any_of(getDecisions(),
                      [&](const Decision &decision) { return decision.isOpen(pipeline); });
}

int64_t Options::getMemoryLimit() const {
  return memoryLimit.empty() ? 0 : static_cast<int64_t>(*parseByteCount(memoryLimit));
}

ir::cost::Machine Options::findMachine(int64_t ranks) const {
  const std::string request = !machine.empty() ? machine : target == "cuda" ? "h100x8" : "host";
  std::string error;
  if (std::optional<ir::cost::Machine> found = ir::cost::findMachine(request, ranks, error))
    return *found;
  if (llvm::sys::fs::exists(llvm::StringRef(request).split(',').first))
    throw Failure("--machine: " + error);
  throw UsageError("--machine: " + error);
}

std::vector<MeshAxes> Options::getMeshes() const {
  std::string message;
  return mesh.empty() ? std::vector<MeshAxes>(1) : parseMeshes(mesh, message);
}

ir::CudaArchitectures Options::getCudaArchitectures() const {
  std::string message;
  return cudaArch.empty() ? ir::defaultCudaArchitectures()
                          : ir::parseCudaArchitectures(cudaArch, message);
}

/// The word of the command line, with '-' for '_' in the IR.
static std::string wordOf(ir::ScheduleKind kind) {
  std::string word = ir::stringifyScheduleKind(kind).str();
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}
static ir::ScheduleKind scheduleOf(std::string word) {
  std::replace(word.begin(), word.end(), '-', '_');
  return *ir::symbolizeScheduleKind(word);
}

ir::OptimizerAttr OptimizerOptions::apply(ir::OptimizerAttr optimizer) const {
  const ir::UpdateRule &rule =
      this->rule ? *ir::UpdateRule::find(*this->rule) : optimizer.getUpdateRule();
  const std::string kind = schedule.value_or(wordOf(optimizer.getSchedule()));
  if (minLr && kind == "constant")
    throw UsageError("--min-lr has no effect with --schedule=constant, which never falls; leave it "
                     "out or change --schedule");
  if (decayShare && kind != "wsd")
    throw UsageError("--decay-share applies to --schedule=wsd only, got " + kind +
                     "; leave it out or change --schedule");
  std::map<std::string, double> values = {{"lr", optimizer.getLr()},
                                          {"clip", optimizer.getClip()},
                                          {"min_lr", optimizer.getMinLr()},
                                          {"decay_share", optimizer.getDecayShare()}};
  if (rule.name == optimizer.getRule())
    for (auto [name, value] : optimizer.getNamedConstants())
      values[name.str()] = value;
  else if (rule.reads("weight_decay"))
    values["weight_decay"] = rule.chosenDecay;
  for (const auto &[name, value] : constants) {
    if (!value)
      continue;
    // An option that the rule does not read would be ignored silently.
    if (!rule.reads(name))
      throw UsageError(optionOf(name) + " applies to " + ir::UpdateRule::readersOf(name) +
                       " only, got optimizer " + rule.name.str() +
                       "; leave it out or change --optimizer");
    values[name] = *value;
  }
  if (lr)
    values["lr"] = *lr;
  if (clip)
    values["clip"] = *clip;
  if (minLr)
    values["min_lr"] = *minLr;
  if (decayShare)
    values["decay_share"] = *decayShare;
  const base::ParameterGroups all = groups.over(optimizer.getGroups());
  if (const std::string fault = all.faultOfRate(static_cast<float>(values["lr"])); !fault.empty())
    throw UsageError(fault);
  std::vector<ir::OptimizerAttr::Constant> given(values.begin(), values.end());
  mlir::MLIRContext *context = optimizer.getContext();
  return ir::OptimizerAttr::create([&] { return mlir::emitError(mlir::UnknownLoc::get(context)); },
                                   context, rule.name, given, scheduleOf(kind),
                                   warmup ? *warmup : optimizer.getWarmup(), all);
}

void OptimizerOptions::checkGroups(ir::StepOp step) const {
  if (std::optional<base::GroupFault> fault = step.findFaultOf(groups.over({})))
    throw UsageError(optionOf(fault->setting) + ": " + fault->why);
}

std::string OptimizerOptions::remarkOnGroups(ir::StepOp step) const {
  if (!step.getOptimizer() || !groups.noDecay || groups.noDecay->empty())
    return "";
  checkGroups(step);
  const ir::OptimizerAttr optimizer = apply(*step.getOptimizer());
  if (optimizer.getConstant("weight_decay") == 0)
    return "got --no-decay, but the update rule " + base::inQuotes(optimizer.getRule().str()) +
           " has no weight decay: leave it out, or give --weight-decay, here or to the program";
  std::vector<std::string> decaying;
  for (ir::ParamOp param : step->getParentOfType<mlir::ModuleOp>().getOps<ir::ParamOp>())
    if (param.getFileRank() >= 2 && !param.getFrozen())
      decaying.push_back(param.getSymName().str());
  return groups.over({}).remarkOnNoDecay(decaying);
}

std::vector<std::string> normalizeArguments(int argc, char **argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  for (auto [option, given] :
       {std::pair("--report", "--report=-"), {"--batch-sweep", "--batch-sweep=auto"}})
    std::replace(arguments.begin(), arguments.end(), std::string(option), std::string(given));
  return arguments;
}

} // namespace fsdpc
