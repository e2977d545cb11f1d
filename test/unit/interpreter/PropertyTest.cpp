//===- PropertyTest.cpp - a sharded step computes what the unsharded does -===//
//
// Random modules x random meshes x random placements x random precisions: the global phase on one
// device, the local phase on N ranks and the scheduled phase on N ranks with streams and an arena
// must log the same numbers and leave the same parameters and states behind. Rematerialization, and
// in f32 checkpoints of the model too, change no bit in the global phase. A case is a function of
// its seed:
//
//   property-tests --cases=20000            many cases (or FSDP_PROPERTY_CASES)
//   property-tests --seed=123 --cases=1     one case again (or FSDP_PROPERTY_SEED)
//   property-tests --seed=123 --cases=1 --print     its IR too
//   property-tests --coverage                       how often each op was split in each way
//   property-tests --pipelines --cases=3000         compares so many cases in stages, no others
//                                                   (or FSDP_PROPERTY_PIPELINES)
//
//===----------------------------------------------------------------------===//

#include "RandomModule.h"
#include "SplitCoverage.h"
#include "StepTrace.h"

#include "interpreter/Machine.h"
#include "mlir/IR/Verifier.h"
#include "passes/Pipelines.h"
#include "passes/global/CheckpointRegions.h"
#include "passes/sharding/MeshAxes.h"
#include "test/Extent.h"
#include "llvm/Support/Format.h"
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

static int64_t numCases = ::fsdp::test::casesOf(200, 5000);
static uint64_t firstSeed = 1;
static bool printModules = false, printCoverage = false, onlyPipelines = false;

/// Those that differ from the defaults, as on a command line.
static std::string spellOptions(const PipelineOptions &options) {
  const PipelineOptions defaults;
  std::string text;
  llvm::raw_string_ostream out(text);
#define FSDP_WORD(field, flag, ...)                                                                \
  if (options.field != defaults.field)                                                             \
    out << "--" flag "=" << options.field << " ";
#define FSDP_FLAG(field, flag, ...) FSDP_WORD(field, flag)
#define FSDP_TEXT(field, flag, ...) FSDP_WORD(field, flag)
#define FSDP_COUNT(type, field, flag, ...) FSDP_WORD(field, flag)
#include "passes/PipelineOptions.def"
  for (const std::string &axis : options.batchAxes)
    out << "--batch-axes=" << axis << " ";
  for (const std::string &pattern : options.shardPatterns)
    out << "--shard=" << pattern << " ";
  return text;
}

namespace {

constexpr const char *columns[] = {"flat",      "dimension", "replicated", "uneven",      "2-D",
                                   "3-D",       "order",     "bf16",       "bf16 reduce", "copy",
                                   "kept part", "split",     "padded"};
constexpr size_t numColumns = std::size(columns);

/// How often each op stood in a case of each kind.
using Coverage = std::map<std::string, std::array<int64_t, numColumns>>;

/// The results of a run of two training steps and an evaluation, and another step if updates are
/// deferred.
class Case {
public:
  Case(MLIRContext &context, uint64_t seed, uint64_t stages = kPropertyStages)
      : seed(seed),
        random(makeRandomCase(context, seed, /*mostRanks=*/16, kPropertyWishes, stages)),
        handler(&context, [this](Diagnostic &diagnostic) {
          messages += "\n  " + diagnostic.str();
          return success();
        }) {}

  bool isPipeline() const { return random.isPipeline; }
  /// Empty when all phases agree, else what went wrong.
  std::string check(Coverage &coverage, SplitCoverage &splitCoverage);

  /// Cases in microbatches, those that are refused in microbatches or for uneven positions, those
  /// whose loss is computed in chunks, those with manual regions, and those whose sequences are
  /// split.
  static inline int64_t accumulated = 0, refused = 0, uneven = 0, chunked = 0, regions = 0,
                        sequences = 0;
  /// The last of these, by the kind of their attention ("ring"), with the order of positions where
  /// they are in zigzag order ("ring zigzag").
  static inline std::map<std::string, int64_t> attentions = {
      {"all-to-all", 0}, {"gather", 0}, {"gather zigzag", 0}, {"ring", 0}, {"ring zigzag", 0}};
  /// Those in stages, by schedule.
  static inline std::map<std::string, int64_t> pipelines;
  static int64_t countPipelines() {
    int64_t sum = 0;
    for (const auto &[schedule, count] : pipelines)
      sum += count;
    return sum;
  }

private:
  using Stage = void (*)(OpPassManager &, const PipelineOptions &);
  bool lower(Stage stage) { return lower(stage, random.options); }
  bool lower(Stage stage, const PipelineOptions &options) {
    PassManager manager(random.module->getContext());
    manager.enableVerifier(false);
    stage(manager, options);
    if (printModules)
      llvm::errs() << "// " << spellOptions(options) << "\n" << *random.module << "\n";
    return succeeded(manager.run(*random.module)) && succeeded(verify(*random.module));
  }
  FailureOr<StepTrace> trace(Numerics numerics, bool poison);
  std::string compareModel(const StepTrace &global);
  FailureOr<StepTrace> traceWithoutRegions();
  /// Equal up to `tolerance`, relative; the first difference as text.
  std::string compare(const StepTrace &expected, const StepTrace &got, StringRef phase,
                      double tolerance);
  /// Notes the ops of the module as it is; `cover` counts them for the kinds that the case is of.
  void noteOps();
  void cover(Coverage &coverage);

  uint64_t seed;
  RandomCase random;
  std::string messages;
  std::set<std::string> ops; ///< of all phases
  bool hasRegion = false;
  SplitCoverage::Cells splits;
  ScopedDiagnosticHandler handler;
};

} // namespace

FailureOr<StepTrace> Case::trace(Numerics numerics, bool poison) {
  MachineOptions options;
  options.numerics = numerics;
  options.seed = seed;
  options.totalSteps = 4;
  options.poison = poison;
  // Further samples of a batch have no effect on the log of an evaluation: with `poison` they are
  // other data.
  options.samples = 1 + static_cast<int64_t>(seed % 11);
  return traceSteps(*random.module, options, random.data, random.options.deferUpdates == "on");
}

/// The first difference above rounding, or nothing. An element is a sum whose terms may be as large
/// as other elements: it is off by `tolerance` of itself or of the root mean square of all.
static std::string compareTensors(const Tensor &expected, const Tensor &got, double tolerance) {
  if (expected.getType() != got.getType())
    return "the type differs";
  double squares = 0;
  for (int64_t i = 0; i < expected.size(); ++i)
    squares += expected.getNumber(i) * expected.getNumber(i);
  const double mean =
      expected.size() > 0 && std::isfinite(squares) ? std::sqrt(squares / expected.size()) : 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    double a = expected.getNumber(i), b = got.getNumber(i);
    if (std::abs(a - b) <= tolerance * std::max({1e-3, mean, std::abs(a), std::abs(b)}) ||
        (std::isnan(a) && std::isnan(b)))
      continue;
    std::string text;
    llvm::raw_string_ostream(text) << "[" << i << "] is " << llvm::format("%.17g", b)
                                   << ", expected " << llvm::format("%.17g", a);
    return text;
  }
  return {};
}

std::string Case::compare(const StepTrace &expected, const StepTrace &got, StringRef phase,
                          double tolerance) {
  for (auto [step, outputs] : llvm::enumerate(expected.outputs)) {
    if (outputs.size() != got.outputs[step].size())
      return (phase + " logs another number of outputs").str();
    for (const auto &[name, value] : outputs) {
      auto it = got.outputs[step].find(name);
      if (it == got.outputs[step].end())
        return (phase + " does not log '" + name + "'").str();
      if (std::string text = compareTensors(value, it->second, tolerance); !text.empty())
        return (phase + ", step " + Twine(step + 1) + ": '" + name + "'" + text).str();
    }
  }
  for (const auto &[name, value] : expected.tensors) {
    auto it = got.tensors.find(name);
    // A frozen parameter has no state where it is stored, and zeros where it is whole.
    std::string text = compareTensors(
        value, it == got.tensors.end() ? Tensor(value.getType()) : it->second, tolerance);
    if (!text.empty())
      return (phase + ": '" + name + "'" + text).str();
  }
  return {};
}

/// Runs the step as it was before any pass, up to its loss: the first of `global` is the same.
std::string Case::compareModel(const StepTrace &global) {
  MachineOptions options;
  options.seed = seed;
  options.totalSteps = 4;
  auto machine = Machine::create(*random.module, options);
  if (failed(machine))
    return "the model is not compiled";
  FailureOr<Outputs> outputs = (*machine)->run("train", random.data);
  if (failed(outputs))
    return "the model does not run";
  for (const auto &[name, value] : *outputs)
    if (std::string text = compareTensors(value, global.outputs.front().at(name), 1e-6);
        !text.empty())
      return "global: '" + name + "'" + text;
  return {};
}

/// The results of the global phase without recomputation; the module does not change.
FailureOr<StepTrace> Case::traceWithoutRegions() {
  OwningOpRef<ModuleOp> module = random.module->clone();
  std::swap(random.module, module);
  SmallVector<CheckpointOp> checkpoints;
  random.module->walk([&](CheckpointOp checkpoint) { checkpoints.push_back(checkpoint); });
  llvm::for_each(checkpoints, inlineCheckpoint);
  PipelineOptions options = random.options;
  options.remat = "none";
  FailureOr<StepTrace> plain = failure();
  if (lower(buildGlobalPipeline, options))
    plain = trace(Numerics::exact, /*poison=*/false);
  std::swap(random.module, module);
  return plain;
}

static bool hasCheckpoint(ModuleOp module) {
  return module.walk([](CheckpointOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// True where the gradient of a parameter is a sum of three or more terms.
static bool hasLongSum(ModuleOp module) {
  llvm::StringMap<int64_t> uses;
  module.walk([&](ReadOp read) { uses[read.getParam()] += llvm::range_size(read->getUses()); });
  return llvm::any_of(uses, [](const auto &entry) { return entry.second > 2; });
}

static bool hasRegions(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa<ManualOp, EnterManualOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void Case::noteOps() {
  hasRegion |= hasRegions(*random.module);
  random.module->walk([&](Operation *op) {
    if (isa<nn::ShardingRuleOpInterface>(op))
      ops.insert(op->getName().getStringRef().str());
    auto isPartial = [&](auto lookup) { return lookup && lookup.getPartial(); };
    if (isPartial(dyn_cast<nn::EmbeddingOp>(op)) || isPartial(dyn_cast<nn::EmbeddingGradOp>(op)))
      ops.insert(op->getName().getStringRef().str() + " partial");
  });
}

void Case::cover(Coverage &coverage) {
  std::array<bool, numColumns> kinds{};
  for (ParamOp param : random.module->getOps<ParamOp>())
    if (PlacementAttr placement = param.getPlacementAttr()) {
      kinds[0] |= placement.getKind() == StorageKind::flat;
      kinds[1] |= placement.getKind() == StorageKind::dimension;
      kinds[2] |= placement.getKind() == StorageKind::replicated;
      kinds[9] |= placement.hasCopy();
      kinds[10] |= placement.getReshard() == Reshard::axes;
      kinds[11] |= !param.getComputeAxes().empty();
      kinds[12] |= param.getPadded().has_value();
    }
  MeshAttr mesh = getMesh(*random.module);
  kinds[3] = random.unevenBatch;
  // Axes of sequences and pipelines are beside those.
  const size_t axes = mesh.getAxisNames().size() - random.splitsSequence - random.isPipeline;
  kinds[4] = axes == 2;
  kinds[5] = axes == 3;
  kinds[6] = !mesh.getDevices().empty();
  kinds[7] = random.options.precision == "bf16";
  kinds[8] = random.options.reducePrecision == "bf16";
  for (const std::string &op : ops)
    for (size_t i = 0; i < numColumns; ++i)
      coverage[op][i] += kinds[i];
}

std::string Case::check(Coverage &coverage, SplitCoverage &splitCoverage) {
  auto failure = [&](StringRef what) { return (what + messages).str(); };
  if (failed(verify(*random.module)))
    return failure("the generated module is invalid");
  OwningOpRef<ModuleOp> model = random.module->clone();
  FailureOr<StepTrace> plain = traceWithoutRegions();
  if (failed(plain)) {
    // Microbatches of samples that a manual region splits otherwise.
    if (random.options.accumulate > 1 &&
        StringRef(messages).contains("across the microbatches of a step; train without"))
      return {};
    // In a region, attention has all positions; without it, they are split.
    if (hasRegions(*model) && StringRef(messages).contains("of another sequence than its queries"))
      return {};
    return failure("the global phase without regions does not run");
  }
  if (!lower(buildGlobalPipeline))
    return failure("the global stage fails");
  FailureOr<StepTrace> global = trace(Numerics::exact, /*poison=*/false);
  if (failed(global))
    return failure("the global phase does not run");
  // A result of a checkpoint of the model may be cast on both sides of its border: a sum of two
  // cotangents more, in another order. What a checkpoint of the model computes of inputs is not
  // computed from whole ones: in zigzag order sums over positions have another order.
  auto order = (*random.module)->getAttrOfType<StringAttr>(kContextOrderAttrName);
  bool regroups = hasCheckpoint(*model) &&
                  (random.options.precision == "bf16" || (order && order.getValue() == "zigzag"));
  // A checkpoint adds up the terms within it first.
  const double rounding = hasCheckpoint(*model) && hasLongSum(*model) ? 1e-14 : 0;
  if (std::string text = compare(*plain, *global, "rematerialized", regroups ? 1e-9 : rounding);
      !text.empty())
    return failure(text);
  std::swap(random.module, model);
  if (std::string text = compareModel(*global); !text.empty())
    return failure(text);
  std::swap(random.module, model);
  noteOps();
  splits = SplitCoverage::cellsOf(*random.module);

  OwningOpRef<ModuleOp> unsplit = random.options.lossChunks > 1 ? random.module->clone() : nullptr;
  bool isLocal = lower(buildLocalPipeline);
  if (!isLocal && unsplit &&
      StringRef(messages).contains(" rows of logits cannot be computed in ")) {
    // Too few rows on a rank, or rows that depend on each other.
    messages.clear();
    random.module = std::move(unsplit);
    random.options.lossChunks = 1;
    isLocal = lower(buildLocalPipeline);
  }
  chunked += isLocal && random.options.lossChunks > 1;
  if (!isLocal) {
    // Forward needs the whole batch: passes that refuse this report it.
    if (random.options.accumulate > 1 && StringRef(messages).contains("train without")) {
      refused += !hasRegion; // which needs samples that are split as microbatches are
      return {};
    }
    // Positions that a constraint splits unevenly, where padding would be keys.
    if (random.splitsSequence &&
        StringRef(messages).contains(" positions, expected a multiple of ")) {
      ++uneven;
      return {};
    }
    return failure("the local stage fails");
  }
  accumulated += random.options.accumulate > 1;
  sequences += random.splitsSequence;
  if (random.isPipeline)
    ++pipelines[StringRef(random.options.pipelineSchedule).split(':').first.str()];
  if (auto kinds = (*random.module)->getAttrOfType<StringAttr>(kContextAttentionAttrName)) {
    auto order = (*random.module)->getAttrOfType<StringAttr>(kContextOrderAttrName);
    SmallVector<StringRef> each;
    kinds.getValue().split(each, '+');
    for (StringRef kind : each)
      ++attentions[kind.str() + (order.getValue() == "zigzag" ? " zigzag" : "")];
  }
  noteOps();
  Coverage covered;
  cover(covered);
  FailureOr<StepTrace> local = trace(Numerics::exact, /*poison=*/true);
  if (failed(local)) {
    if (printModules)
      llvm::errs() << *random.module << "\n";
    return failure("the local phase does not run");
  }
  if (std::string text = compare(*global, *local, "local", 1e-9); !text.empty())
    return failure(text);
  // Scheduling changes no number at all, in any numerics: now and then the typed ones.
  Numerics numerics = seed % 8 ? Numerics::exact : Numerics::typed;
  if (numerics == Numerics::typed)
    local = trace(numerics, /*poison=*/true);

  if (!lower(buildScheduledPipeline))
    return failure("the scheduled stage fails");
  FailureOr<StepTrace> scheduled = trace(numerics, /*poison=*/true);
  if (failed(scheduled))
    return failure("the scheduled phase does not run");
  if (std::string text = compare(*local, *scheduled, "scheduled", 0); !text.empty())
    return failure(text);

  for (const auto &[op, counts] : covered)
    for (size_t i = 0; i < numColumns; ++i)
      coverage[op][i] += counts[i];
  splitCoverage.add(splits);
  regions += hasRegion;
  return {};
}

static void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
}

/// Every op that can be sharded must have stood in a case of every kind.
static void checkCoverage(const Coverage &coverage) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  std::string table;
  llvm::raw_string_ostream os(table);
  os << llvm::format("%-25s", "cases with op and");
  for (const char *column : columns)
    os << llvm::format("%12s", column);
  os << "\n";
  // Cases with split vocabularies, with tokens only, with generation, or with collectives by hand
  // are rarer than kinds.
  const std::set<std::string> rare{"fsdp.shard_indices",
                                   "nn.partial_cross_entropy",
                                   "nn.embedding partial",
                                   "nn.embedding_grad partial",
                                   "nn.cached_attention",
                                   "nn.write_rows",
                                   "nn.positions_since",
                                   "fsdp.enter_manual",
                                   "fsdp.exit_manual",
                                   "fsdp.pgather",
                                   "fsdp.ppermute",
                                   "fsdp.psum",
                                   "fsdp.psum_scatter",
                                   "fsdp.pswap",
                                   "fsdp.pvary"};
  std::set<std::string> names = rare;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() != "builtin" &&
        name.hasInterface<nn::ShardingRuleOpInterface>() &&
        name.getStringRef() != "fsdp.pmax") // no derivative: check_manual.py has it
      names.insert(name.getStringRef().str());
  for (const std::string &name : names) {
    auto it = coverage.find(name);
    os << llvm::format("%-25s", name.c_str());
    for (size_t i = 0; i < numColumns; ++i) {
      int64_t count = it == coverage.end() ? 0 : it->second[i];
      os << llvm::format("%12lld", static_cast<long long>(count));
      if (rare.count(name) && numCases < 10000)
        continue;
      EXPECT_GT(count, 0) << name << " is in no case that is '" << columns[i]
                          << "'; teach the generator";
    }
    os << "\n";
    EXPECT_TRUE(coverage.count(name)) << name << " is in no case; teach the generator";
  }
  llvm::outs() << table;
  llvm::outs().flush();
}

/// Seeds that once failed: a deferred update that computation reads before any gather does.
TEST(PropertyTest, KeptSeeds) {
  Coverage coverage;
  SplitCoverage splits;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  for (uint64_t seed : {304, 968, 5463, 31830, 100690})
    EXPECT_EQ(Case(context, seed).check(coverage, splits), "") << "case --seed=" << seed;
}

TEST(PropertyTest, ShardedEqualsUnsharded) {
  Coverage coverage;
  SplitCoverage splits;
  int failures = 0;
  auto start = std::chrono::steady_clock::now();
  std::unique_ptr<MLIRContext> context;
  auto numDone = [&](int64_t drawn) {
    return onlyPipelines ? Case::countPipelines() + failures : drawn;
  };
  for (int64_t i = 0; numDone(i) < numCases && failures < 10; ++i) {
    // A context keeps every type and attribute for ever: take a new one now and then.
    if (i % 100 == 0) {
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      loadDialects(*context);
    }
    uint64_t seed = firstSeed + i;
    Case drawn(*context, seed, onlyPipelines ? 100 : kPropertyStages);
    if (onlyPipelines && !drawn.isPipeline())
      continue;
    std::string message = drawn.check(coverage, splits);
    if (message.empty())
      continue;
    ++failures;
    ADD_FAILURE() << "case " << (onlyPipelines ? "--pipelines " : "") << "--seed=" << seed
                  << " --cases=1: " << message;
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  llvm::outs() << llvm::format(
      "%lld cases in %.1f s, %lld in microbatches, %lld refused in microbatches, %lld in chunks, "
      "%lld with regions, %lld over context",
      static_cast<long long>(numCases), seconds, static_cast<long long>(Case::accumulated),
      static_cast<long long>(Case::refused), static_cast<long long>(Case::chunked),
      static_cast<long long>(Case::regions), static_cast<long long>(Case::sequences));
  for (const auto *kinds : {&Case::attentions, &Case::pipelines})
    for (const auto &[kind, count] : *kinds)
      llvm::outs() << ", " << count << " " << kind;
  llvm::outs() << "\n";
  if (numCases >= 100 && !failures)
    for (const char *kind : {"1f1b", "gpipe", "zb", "interleaved"})
      EXPECT_GE((onlyPipelines ? 10 : 100) * Case::pipelines[kind],
                numCases >= 1000 || onlyPipelines ? numCases : 100)
          << "teach the generator more " << kind;
  if (onlyPipelines) // the shares below are those of all cases
    return;
  EXPECT_GE(4 * Case::accumulated, Case::refused)
      << "teach the generator models without batch statistics";
  EXPECT_GE(numCases, 50 * Case::uneven) << "teach the generator even positions";
  EXPECT_GE(10 * Case::sequences, numCases) << "teach the generator more sequences";
  EXPECT_GE(10 * Case::regions, numCases) << "teach the generator more manual regions";
  // A tenth of many cases; of few ones some.
  if (numCases >= 100 && !failures)
    for (const auto &[kind, count] : Case::attentions)
      EXPECT_GE((numCases >= 5000 ? 10 : 40) * count, numCases)
          << "teach the generator more attention by " << kind;
  if (numCases >= 1000 && !failures)
    checkCoverage(coverage);
  if (printCoverage)
    splits.print(llvm::outs());
  llvm::outs().flush();
  // The ways of a factor are rarer than the kinds of a case.
  if (numCases >= 2000 && !failures)
    for (const std::string &gap : splits.findGaps())
      ADD_FAILURE() << gap;
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const char *value = std::getenv("FSDP_PROPERTY_CASES"))
    numCases = std::atoll(value);
  if (const char *value = std::getenv("FSDP_PROPERTY_SEED"))
    firstSeed = std::strtoull(value, nullptr, 10);
  onlyPipelines = std::getenv("FSDP_PROPERTY_PIPELINES") != nullptr;
  for (StringRef argument : llvm::ArrayRef(argv + 1, argc - 1)) {
    if (argument.consume_front("--cases="))
      argument.getAsInteger(10, numCases);
    else if (argument.consume_front("--seed="))
      argument.getAsInteger(10, firstSeed);
    else if (argument == "--print")
      printModules = true;
    else if (argument == "--coverage")
      printCoverage = true;
    else if (argument == "--pipelines")
      onlyPipelines = true;
    else
      return llvm::errs() << "unknown argument '" << argument << "'\n", 2;
  }
  return RUN_ALL_TESTS();
}
