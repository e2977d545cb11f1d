//===- ModuleMutationTest.cpp - no IR text brings a tool down -------------===//
//
// The modules of the tests, in every phase, are changed at random and given to all that the tools
// do with a module: parsing, verification, single passes, the pipelines, execution, translation.
// Each must work or fail with a message, in bounded time and memory. FSDP_MUTANT=N repeats one
// mutant and prints it, FSDP_MUTANT=M-N all from M to N.
//
//===----------------------------------------------------------------------===//

#include "codegen/EmitProgram.h"
#include "codegen/EmitRecord.h"
#include "interpreter/Machine.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/scheduled/MemoryReport.h"
#include "test/mutation/Batches.h"
#include "test/mutation/Seeds.h"
#include "test/mutation/TextMutator.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace mlir;
using namespace mlir::fsdp;
using namespace ::fsdp::mutation;
namespace files = std::filesystem;

namespace {

constexpr int64_t kMutants = 40000; // about ten seconds

enum Counter { kParsed, kPassed, kLocal, kScheduled, kRan, kTranslated };

/// A context that counts errors.
class Context {
public:
  Context() {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect,
                    func::FuncDialect>();
    nn::registerElementwiseModels(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    handler = std::make_unique<ScopedDiagnosticHandler>(context.get(), [&](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
      if (verbose)
        llvm::errs() << diagnostic.getLocation() << ": " << diagnostic << "\n";
    });
  }

  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  int64_t errors = 0;
  bool verbose = false;
};

/// The initial modules: those of the tests that parse, and the results of the pipelines on them.
std::vector<std::string> collectSeeds() {
  std::vector<std::string> names;
  for (const auto &entry :
       files::recursive_directory_iterator(std::string(std::getenv("FSDP_SOURCE_DIR")) + "/test"))
    if (entry.path().extension() == ".mlir" || entry.path().extension() == ".test")
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  std::vector<std::string> seeds;
  Context context;
  for (const std::string &name : names) {
    std::stringstream text;
    text << std::ifstream(name).rdbuf();
    for (const std::string &part : splitModules(text.str())) {
      if (part.size() > 20000 || part.find("fsdp.") == std::string::npos)
        continue;
      auto module = parseSourceString<ModuleOp>(part, context.context.get());
      if (!module)
        continue;
      seeds.push_back(part);
      if (module->getOps<StepOp>().empty() || getPhase(*module) != Phase::global)
        continue;
      PipelineOptions plain, deferred, chunked;
      deferred.deferUpdates = "on";
      chunked.lossChunks = chunked.accumulate = 2;
      for (const PipelineOptions &options : {plain, deferred, chunked}) {
        OwningOpRef<ModuleOp> lowered = module->clone();
        for (auto build : {buildGlobalPipeline, buildLocalPipeline, buildScheduledPipeline}) {
          PassManager manager(context.context.get());
          build(manager, options);
          if (failed(manager.run(*lowered)))
            break;
          std::string printed;
          llvm::raw_string_ostream(printed) << *lowered;
          if (printed.size() < 40000 && (seeds.empty() || seeds.back() != printed))
            seeds.push_back(printed);
        }
      }
    }
  }
  return seeds;
}

/// One run of a mutant through all that the tools do.
class Trial {
public:
  Trial(Context &context, std::mt19937 &random, int64_t *counters)
      : context(context), random(random), counters(counters) {}

  /// A complaint, or nothing.
  std::string run(const std::string &text) {
    context.errors = 0;
    OwningOpRef<ModuleOp> module;
    if (!attempt("parsing", [&] {
          module = parseSourceString<ModuleOp>(text, context.context.get());
          return success(static_cast<bool>(module));
        }))
      return complaint;
    ++counters[kParsed];
    {
      OwningOpRef<ModuleOp> copy = module->clone();
      runPass(*copy);
    }
    runAll(*module);
    if (getPhase(*module) == Phase::global) {
      PipelineOptions options = drawOptions();
      if (!lower(*module, buildGlobalPipeline, options) ||
          !lower(*module, buildLocalPipeline, options))
        return complaint;
      ++counters[kLocal];
      runAll(*module);
      if (!lower(*module, buildScheduledPipeline, options))
        return complaint;
      ++counters[kScheduled];
      runAll(*module);
    }
    return complaint;
  }

private:
  int draw(size_t below) { return static_cast<int>(random() % below); }

  /// False where `action` fails; a failure without an error is a complaint.
  template <typename Action> bool attempt(const std::string &what, Action action) {
    int64_t before = context.errors;
    if (succeeded(action()))
      return true;
    if (context.errors == before && complaint.empty())
      complaint = what + " fails without a message";
    return false;
  }

  PipelineOptions drawOptions() {
    const char *strategies[] = {"fsdp", "ddp", "hsdp", "zero1", "zero2"};
    PipelineOptions options;
    options.strategy = strategies[draw(4) ? 0 : draw(5)];
    options.reshard = draw(4) ? "always" : "never";
    options.prefetch = draw(3);
    options.precision = draw(4) ? "f32" : "bf16";
    options.deferUpdates = draw(3) ? "off" : "on";
    options.lossChunks = draw(4) ? 1 : 2;
    options.accumulate = draw(4) ? 1 : 1 + draw(3);
    return options;
  }

  bool lower(ModuleOp module, void (*build)(OpPassManager &, const PipelineOptions &),
             const PipelineOptions &options) {
    return attempt("a pipeline", [&] {
      PassManager manager(context.context.get());
      build(manager, options);
      return manager.run(module);
    });
  }

  void runPass(ModuleOp module) {
    const char *passes[] = {"fsdp-verify-phase",
                            "fsdp-derive-evaluation",
                            "fsdp.step(fsdp-differentiate)",
                            "fsdp.step(fsdp-apply-optimizer)",
                            "fsdp-shard-parameters",
                            "fsdp-mixed-precision",
                            "fsdp-propagate",
                            "fsdp-partition",
                            "fsdp-chunk-loss{chunks=2}",
                            "fsdp.program(fsdp-join-all-reduces)",
                            "fsdp.program(fsdp-join-kernels)",
                            "fsdp-defer-updates",
                            "fsdp.program(fsdp-fuse)",
                            "fsdp-schedule",
                            "fsdp-plan-memory",
                            "fsdp-link-segments",
                            "fsdp-verify-schedule",
                            "canonicalize",
                            "cse"};
    for (int i = 0; i < 2; ++i) {
      const char *name = passes[draw(std::size(passes))];
      if (!attempt(name, [&] {
            PassManager manager(context.context.get());
            if (failed(parsePassPipeline(name, manager)))
              llvm::report_fatal_error(llvm::Twine("no pass '") + name + "'");
            return manager.run(module);
          }))
        return;
    }
    ++counters[kPassed];
  }

  /// Small enough to be run in a moment.
  static bool isSmall(ModuleOp module) {
    int64_t ranks = getMesh(module).getNumRanks(), elements = 0;
    auto count = [&](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (auto buffer = dyn_cast<BufferType>(type))
        tensor = buffer.getTensor();
      if (tensor && tensor.hasStaticShape())
        elements += nn::countElements(tensor.getShape()).value_or(1 << 30);
      elements = std::min<int64_t>(elements, 1 << 30);
    };
    module.walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        count(type);
      if (auto param = dyn_cast<ParamOp>(op))
        count(param.getType());
      if (auto storage = dyn_cast<StorageOp>(op))
        count(storage.getShard());
      if (auto buffer = dyn_cast<BufferOp>(op))
        elements += std::min<int64_t>(buffer.getOffset().value_or(0), 1 << 30);
    });
    return ranks <= 16 && elements * ranks < 100000;
  }

  void execute(ModuleOp module) {
    using namespace mlir::fsdp::interpreter;
    if (!isSmall(module))
      return;
    MachineOptions options;
    options.seed = random();
    options.numerics = draw(2) ? Numerics::exact : Numerics::typed;
    attempt("execution", [&]() -> LogicalResult {
      FailureOr<std::unique_ptr<Machine>> machine = Machine::create(module, options);
      if (failed(machine))
        return failure();
      DataSet data;
      llvm::StringMap<RankedTensorType> inputs;
      module.walk([&](InputOp input) {
        auto type = cast<RankedTensorType>(input.getType());
        SmallVector<int64_t> shape(type.getShape());
        shape.erase(shape.begin() + input.getSampleDim());
        shape.insert(shape.begin(), 4);
        inputs.try_emplace(input.getName(), RankedTensorType::get(shape, type.getElementType()));
      });
      for (const auto &input : inputs) {
        Tensor tensor(input.getValue());
        for (int64_t i = 0; i < tensor.size(); ++i)
          tensor.setNumber(i, draw(3));
        if (failed(data.add(module.getLoc(), input.getKey(), tensor)))
          return failure();
      }
      for (const std::string &walk : (*machine)->getWalks())
        if (failed((*machine)->run(walk, data)))
          return failure();
      if (failed((*machine)->finish()))
        return failure();
      for (ParamOp param : module.getOps<ParamOp>())
        if (failed((*machine)->get(param.getSymName(), "parameter")))
          return failure();
      ++counters[kRan];
      return success();
    });
  }

  void runAll(ModuleOp module) {
    execute(module);
    if (module.getOps<ProgramOp>().empty())
      return;
    for (TargetKind target : {TargetKind::Cpu, TargetKind::Cuda})
      attempt("translation", [&] {
        EmitOptions options;
        options.target = target;
        options.singleFile = true;
        EmittedProgram program;
        LogicalResult result = emitProgram(module, options, program);
        counters[kTranslated] += succeeded(result);
        return result;
      });
    attempt("the record", [&] {
      std::string text;
      llvm::raw_string_ostream out(text);
      return emitRecord(module, out);
    });
    if (getPhase(module) == Phase::scheduled)
      computeMemoryReport(module);
  }

  Context &context;
  std::mt19937 &random;
  int64_t *counters;
  std::string complaint;
};

TEST(ModuleMutationTest, ToolsSurviveEveryText) {
  registerPasses();
  registerTransformsPasses();
  std::vector<std::string> seeds = collectSeeds();
  ASSERT_GT(seeds.size(), 200u);
  // Deferred updates and loss chunks are among them: what the tests of the passes hold, and what
  // becomes of others.
  for (const char *part :
       {" drain next", " deferred ", "nn.cross_entropy_grad", "fsdp.microbatch_samples"})
    EXPECT_GE(llvm::count_if(seeds,
                             [&](const std::string &seed) { return seed.find(part) != seed.npos; }),
              4)
        << part;
  auto mutant = [&](int64_t number, std::mt19937 &random) {
    const std::string &other = seeds[random() % seeds.size()];
    return mutateText(seeds[random() % seeds.size()], other, random);
  };
  std::optional<Range> range = getRange();
  bool alone = range && range->first == range->last;
  std::unique_ptr<Context> context;
  int64_t used = 0;
  Outcome outcome = runBatches(getNumMutants(kMutants), Limits(),
                               [&](int64_t number, int64_t *counters) -> std::string {
                                 // Types and attributes are never freed: a new context from time to
                                 // time.
                                 if (!context || ++used % 50 == 0)
                                   context = std::make_unique<Context>();
                                 context->verbose = alone;
                                 std::mt19937 random = randomFor(number);
                                 std::string text = mutant(number, random);
                                 if (alone)
                                   llvm::errs() << text << "\n";
                                 return Trial(*context, random, counters).run(text);
                               });
  std::printf(
      "%lld seeds, %lld mutants: %lld parsed, %lld passed, %lld local, %lld scheduled, %lld ran, "
      "%lld translated\n",
      static_cast<long long>(seeds.size()), static_cast<long long>(getNumMutants(kMutants)),
      static_cast<long long>(outcome.counters[kParsed]),
      static_cast<long long>(outcome.counters[kPassed]),
      static_cast<long long>(outcome.counters[kLocal]),
      static_cast<long long>(outcome.counters[kScheduled]),
      static_cast<long long>(outcome.counters[kRan]),
      static_cast<long long>(outcome.counters[kTranslated]));
  for (const auto &[number, what] : outcome.findings) {
    std::mt19937 random = randomFor(number);
    ADD_FAILURE() << "mutant " << number << " " << what << ":\n" << mutant(number, random);
  }
}

} // namespace
