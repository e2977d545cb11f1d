//===- Options.cpp - names, checks and defaults of the command line -------===//

#include "tools/fsdpc/Options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace ir = mlir::fsdp;

namespace fsdpc {

//===----------------------------------------------------------------------===//
// Checks of single values
//===----------------------------------------------------------------------===//

/// "a, b or c"
static std::string listed(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

static CLI::Validator oneOf(std::vector<std::string> words) {
  std::string names = CLI::detail::join(words, "|");
  return CLI::Validator(
      [words = std::move(words)](std::string &got) -> std::string {
        if (std::find(words.begin(), words.end(), got) != words.end())
          return "";
        return "got '" + got + "', expected " + listed(words);
      },
      names);
}

static bool parseWhole(const std::string &text, int64_t &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

static CLI::Validator wholeFrom(int64_t least) {
  return CLI::Validator(
      [least](std::string &got) -> std::string {
        int64_t value;
        if (parseWhole(got, value) && value >= least)
          return "";
        return "got '" + got + "', expected a whole number of at least " + std::to_string(least);
      },
      "N");
}

/// A finite number of at least 0, below `limit` where that is finite.
static CLI::Validator numberBelow(double limit) {
  return CLI::Validator(
      [limit](std::string &got) -> std::string {
        char *end = nullptr;
        double value = std::strtod(got.c_str(), &end);
        if (!got.empty() && *end == 0 && std::isfinite(value) && value >= 0 && value < limit)
          return "";
        return "got '" + got + "', expected " +
               (std::isfinite(limit) ? "a number in [0, 1)" : "a finite number of at least 0");
      },
      "X");
}

/// `none|full|every:K|selective|auto`, `K|auto`, `20GiB`: words, or what a predicate takes.
static CLI::Validator oneOfOr(std::vector<std::string> words, const std::string &otherwise,
                              bool (*takes)(const std::string &)) {
  std::string names = CLI::detail::join(words, "|") + (words.empty() ? "" : "|") + otherwise;
  return CLI::Validator(
      [words = std::move(words), otherwise, takes](std::string &got) -> std::string {
        if (std::find(words.begin(), words.end(), got) != words.end() || takes(got))
          return "";
        std::vector<std::string> expected = words;
        expected.push_back(otherwise == "K"      ? "a whole number"
                           : otherwise == "SIZE" ? "a size such as 20GiB"
                                                 : otherwise);
        return "got '" + got + "', expected " + listed(expected);
      },
      names);
}

static bool isWhole(const std::string &text) {
  int64_t value;
  return parseWhole(text, value) && value >= 0;
}

static bool isEvery(const std::string &text) {
  int64_t value;
  return text.rfind("every:", 0) == 0 && parseWhole(text.substr(6), value) && value >= 1;
}

static bool isByteCount(const std::string &text) {
  size_t unit = text.find_first_not_of("0123456789.");
  if (unit == 0 || text.empty())
    return false;
  std::string name = unit == std::string::npos ? "B" : text.substr(unit);
  static const std::vector<std::string> units = {"B", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB"};
  return std::find(units.begin(), units.end(), name) != units.end();
}

static CLI::Validator shardPattern() {
  return CLI::Validator(
      [](std::string &got) -> std::string {
        size_t colon = got.rfind(':');
        std::string spec = colon == std::string::npos ? "" : got.substr(colon + 1);
        if (colon > 0 && (spec == "flat" || spec == "replicated" || isWhole(spec)))
          return "";
        return "got '" + got + "', expected PATTERN:flat, PATTERN:replicated or PATTERN:DIMENSION";
      },
      "PATTERN:SPEC");
}

std::vector<std::pair<std::string, int64_t>> parseMesh(const std::string &text,
                                                       std::string &message) {
  std::vector<std::pair<std::string, int64_t>> axes;
  int64_t ranks = 1;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string axis = text.substr(begin, end - begin);
    size_t equals = axis.find('=');
    std::string name = axis.substr(0, equals);
    int64_t size = 0;
    bool spelled = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '_';
    });
    if (!spelled || equals == std::string::npos || !parseWhole(axis.substr(equals + 1), size))
      message = "got '" + axis + "', expected AXIS=SIZE, several joined by commas";
    else if (size < 1)
      message = "axis '" + name + "' got size " + std::to_string(size) + ", expected at least 1";
    else if (std::any_of(axes.begin(), axes.end(),
                         [&](auto &other) { return other.first == name; }))
      message = "axis '" + name + "' stands twice; give each axis its own name";
    else if (__builtin_mul_overflow(ranks, size, &ranks) || ranks > (1 << 20))
      message = "'" + text + "' has more ranks than the 1048576 that are possible";
    if (!message.empty())
      return {};
    axes.emplace_back(name, size);
    begin = end + 1;
  }
  return axes;
}

static CLI::Validator meshAxes() {
  return CLI::Validator(
      [](std::string &got) {
        std::string message;
        parseMesh(got, message);
        return message;
      },
      "AXIS=SIZE,...");
}

static CLI::Validator cudaArchitectures() {
  return CLI::Validator(
      [](std::string &got) {
        std::string message;
        ir::parseCudaArchitectures(got, message);
        return message;
      },
      "CC,...");
}

//===----------------------------------------------------------------------===//
// The options
//===----------------------------------------------------------------------===//

/// Adds an option that shows what `check` takes as its type.
template <typename T>
static CLI::Option *add(CLI::App &group, const std::string &name, T &value,
                        const std::string &description, CLI::Validator check) {
  std::string type = check.get_description();
  return group.add_option(name, value, description)->check(check.description(""))->type_name(type);
}

static void declareOptimizer(CLI::App &app, OptimizerOptions &o) {
  CLI::App &group = *app.add_option_group("Training", "instead of what the model says");
  const double any = INFINITY;
  add(group, "--optimizer", o.kind, "update rule", oneOf({"sgd", "adam", "adamw"}));
  add(group, "--lr", o.lr, "learning rate", numberBelow(any));
  add(group, "--momentum", o.momentum, "momentum of sgd", numberBelow(1));
  add(group, "--beta1", o.beta1, "decay of the first moment", numberBelow(1));
  add(group, "--beta2", o.beta2, "decay of the second moment", numberBelow(1));
  add(group, "--eps", o.eps, "added to the root of the second moment", numberBelow(any));
  add(group, "--weight-decay", o.weightDecay, "decay of parameters of rank two and more",
      numberBelow(any));
  add(group, "--clip", o.clip, "largest global norm of the gradients; 0 for no clipping",
      numberBelow(any));
  add(group, "--warmup", o.warmup, "steps over which the rate rises to --lr", wholeFrom(0));
  add(group, "--schedule", o.schedule, "the rate after warmup, until the last step",
      oneOf({"constant", "linear", "cosine"}));
}

static void declareDistribution(CLI::App &app, Options &o) {
  CLI::App &group = *app.add_option_group("Distribution");
  add(group, "--mesh", o.mesh, "named axes over the ranks (fsdp=1)", meshAxes());
  add(group, "--strategy", o.strategy, "what is sharded over 'fsdp'",
      oneOf({"ddp", "zero1", "zero2", "fsdp", "hsdp"}))
      ->capture_default_str();
  add(group, "--shard", o.shard,
      "storage of the parameters whose name PATTERN matches: flat, replicated, or a dimension",
      shardPattern())
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add(group, "--min-shard-size", o.minShardSize, "smaller parameters stay whole, in elements",
      wholeFrom(0))
      ->capture_default_str();
  add(group, "--precision", o.precision, "of compute and gathers", oneOf({"f32", "bf16"}))
      ->capture_default_str();
  add(group, "--reduce-precision", o.reducePrecision, "of gradient reductions",
      oneOf({"f32", "bf16"}))
      ->capture_default_str();
  add(group, "--accumulate", o.accumulate, "microbatches per step", wholeFrom(1))
      ->capture_default_str();
  add(group, "--accumulate-reduce", o.accumulateReduce, "which microbatches reduce gradients",
      oneOf({"each", "last"}))
      ->capture_default_str();
  add(group, "--reshard-after-forward", o.reshard, "when gathered parameters are given up",
      oneOf({"always", "never"}))
      ->capture_default_str();
  add(group, "--remat", o.remat, "which activations are computed again in backward",
      oneOfOr({"none", "full", "selective", "auto"}, "every:K", isEvery))
      ->capture_default_str();
  add(group, "--memory-limit", o.memoryLimit, "bytes of a rank that the plan must fit, as in 20GiB",
      oneOfOr({}, "SIZE", isByteCount));
  add(group, "--prefetch", o.prefetch, "gathers that run ahead of the unit in use",
      oneOfOr({"auto"}, "K", isWhole))
      ->capture_default_str();
  add(group, "--buckets", o.buckets, "what one gather holds", oneOf({"unit", "parameter"}))
      ->capture_default_str();
  add(group, "--communicator", o.communicator, "how ranks talk",
      oneOf({"auto", "shm", "tcp", "mpi", "nccl", "loopback"}))
      ->capture_default_str();
}

void Options::declare(CLI::App &app) {
  app.add_option("-o,--output", output, "where the result goes (IR: standard output by default)")
      ->type_name("PATH");
  add(app, "--emit", emit,
      "what to write; a model is text for fsdpc, with the mesh and the training options given here",
      oneOf({"model", "global", "local", "scheduled", "source", "binary"}))
      ->each([this](const std::string &) { emitGiven = true; })
      ->capture_default_str();
  add(app, "--target", target, "what the program runs on", oneOf({"cpu", "cuda"}))
      ->capture_default_str();
  add(app, "--cuda-arch", cudaArch,
      "compute capabilities of the GPUs, as in 90 or 80,90a,100 (90); newer ones use the newest's "
      "PTX",
      cudaArchitectures());
  app.add_flag("--record", record, "a program that prints its log of actions instead of acting");
  app.add_option("--report", report,
                 "print the memory table; with =FILE.json, write it and the collectives there")
      ->type_name("[=FILE.json]");
  declareDistribution(app, *this);
  declareOptimizer(app, optimizer);
}

/// Fails unless `available`.
static void require(bool available, const std::string &what) {
  if (!available)
    throw Failure("not available yet: " + what);
}

void Options::check() const {
  bool writesProgram = getEmit() >= Emit::Source && !onlyReport();
  if (writesProgram && output.empty())
    throw UsageError("--emit=" + emit + " needs '-o PATH'");
  if (record && getEmit() < Emit::Source)
    throw UsageError("--record is of programs; got --emit=" + emit + ", expected source or binary");

  if (!cudaArch.empty() && target != "cuda")
    throw UsageError("--cuda-arch is of programs for GPUs; got --target=" + target +
                     ", expected cuda");
  const std::set<std::string> communicators =
      target == "cuda" ? std::set<std::string>{"auto", "nccl", "loopback"}
                       : std::set<std::string>{"auto", "shm", "tcp", "mpi"};
  if (!communicators.count(communicator))
    throw UsageError("--target=" + target + " has no --communicator=" + communicator +
                     "; use auto, " + (target == "cuda" ? "nccl or loopback" : "shm, tcp or mpi"));
  require(accumulate == 1, "--accumulate=" + std::to_string(accumulate) + "; use 1");
  require(remat == "none", "--remat=" + remat + "; use none");
  require(memoryLimit.empty(), "--memory-limit; leave it out");
  require(prefetch != "auto", "--prefetch=auto; give a number");
  require(buckets == "unit", "--buckets=" + buckets + "; use unit");
  require(strategy != "zero1" && strategy != "zero2",
          "--strategy=" + strategy + "; use ddp, fsdp or hsdp");
  for (auto &[axis, size] : getMesh())
    require(size == 1 || (axis != "tensor" && axis != "pipeline"),
            "a mesh with axis '" + axis + "'; the batch is split over all others");
}

Emit Options::getEmit() const {
  static const std::vector<std::string> names = {"model",     "global", "local",
                                                 "scheduled", "source", "binary"};
  return static_cast<Emit>(std::find(names.begin(), names.end(), emit) - names.begin());
}

bool Options::onlyReport() const { return !report.empty() && output.empty() && !emitGiven; }

std::vector<std::pair<std::string, int64_t>> Options::getMesh() const {
  std::string message;
  return mesh.empty() ? std::vector<std::pair<std::string, int64_t>>() : parseMesh(mesh, message);
}

ir::CudaArchitectures Options::getCudaArchitectures() const {
  std::string message;
  return cudaArch.empty() ? ir::defaultCudaArchitectures()
                          : ir::parseCudaArchitectures(cudaArch, message);
}

ir::PipelineOptions Options::getPipeline() const {
  ir::PipelineOptions pipeline;
  // Axes other than the storage's replicate: hybrid sharding is fsdp on a mesh that has more.
  pipeline.strategy = strategy == "hsdp" ? "fsdp" : strategy;
  pipeline.shardPatterns = shard;
  pipeline.minShardSize = minShardSize;
  pipeline.reshard = reshard == "never" ? ir::Reshard::never : ir::Reshard::always;
  pipeline.precision = precision;
  pipeline.reducePrecision = reducePrecision;
  parseWhole(prefetch, pipeline.prefetch);
  return pipeline;
}

ir::OptimizerAttr OptimizerOptions::apply(ir::OptimizerAttr optimizer) const {
  ir::OptimizerKind rule = optimizer.getKind();
  ir::OptimizerConstants constants = optimizer.getConstants();
  if (kind && *ir::symbolizeOptimizerKind(*kind) != rule) {
    rule = *ir::symbolizeOptimizerKind(*kind);
    ir::OptimizerConstants fresh;
    fresh.lr = constants.lr;
    fresh.clip = constants.clip;
    fresh.weightDecay = rule == ir::OptimizerKind::adamw ? 0.01 : 0;
    constants = fresh;
  }
  auto replace = [](const std::optional<double> &given, double &value) {
    if (given)
      value = *given;
  };
  replace(lr, constants.lr);
  replace(momentum, constants.momentum);
  replace(beta1, constants.beta1);
  replace(beta2, constants.beta2);
  replace(eps, constants.eps);
  replace(weightDecay, constants.weightDecay);
  replace(clip, constants.clip);
  return ir::OptimizerAttr::get(optimizer.getContext(), rule, constants,
                                schedule ? *ir::symbolizeScheduleKind(*schedule)
                                         : optimizer.getSchedule(),
                                warmup ? *warmup : optimizer.getWarmup());
}

std::vector<std::string> normalizeArguments(int argc, char **argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) // CLI11 takes a vector from its back
    arguments.push_back(std::string(argv[i]) == "--report" ? "--report=-" : argv[i]);
  return arguments;
}

} // namespace fsdpc
