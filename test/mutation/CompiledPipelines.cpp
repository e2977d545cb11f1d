//===- CompiledPipelines.cpp ----------------------------------------------===//

#include "test/mutation/CompiledPipelines.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipelines.h"
#include "test/mutation/Seeds.h"
#include "test/unit/interpreter/RandomModule.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;
using namespace ::fsdp::mutation;

namespace fsdp::mutation {
/// A model, its data, and what a user would choose for it.
struct PipelineSource {
  mlir::fsdp::interpreter::DataSet data;
  mlir::fsdp::PipelineOptions options;
  /// Of all roles: more would take too long to run in many orders.
  int64_t mostLaunches = 1 << 20;
};
} // namespace fsdp::mutation

namespace {

constexpr const char *kSchedules[] = {"1f1b", "gpipe", "zb", "interleaved:2"};

class Draw {
public:
  explicit Draw(std::mt19937 random) : random(random) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  template <typename T, size_t n> T oneOf(const T (&list)[n]) {
    return list[between(0, static_cast<int64_t>(n) - 1)];
  }
  uint64_t seed() { return random(); }

private:
  std::mt19937 random;
};

/// What models of layers have in common, and what only some have.
struct LayersSource {
  int64_t ranks = 0, shards = 0, batch = 0, layers = 0;
  bool pairs = false;  ///< two values of one type lead from layer to layer
  bool skips = false;  ///< the first value is used by the last layer too
  bool biases = false; ///< a unit has two parameters
  bool adam = false;
};

/// The text of a model with layers between two uses of one table.
std::string writeModel(const LayersSource &of) {
  const auto [ranks, shards, batch, layers, pairs, skips, biases, adam] = of;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "fsdp.mesh @mesh <[\"pipeline\"=" << ranks << ", \"fsdp\"=" << shards << "]>\n"
      << "fsdp.param @table : tensor<4x4xf32> unit \"ends\" init <normal, 0.5>\n";
  for (int64_t layer = 0; layer < layers; ++layer) {
    out << "fsdp.param @w" << layer << " : tensor<4x4xf32> unit \"layer" << layer
        << "\" init <normal, 0.5>\n";
    if (biases)
      out << "fsdp.param @bias" << layer << " : tensor<4xf32> unit \"layer" << layer
          << "\" init <normal, 0.5>\n";
  }
  out << "fsdp.step @train train optimizer <"
      << (adam ? "adamw, lr = 0.01, eps = 1.0e-3, weight_decay = 0.1, clip = 1.0"
               : "sgd, lr = 0.1, momentum = 0.9, clip = 10.0")
      << "> {\n";
  const std::string type = "tensor<" + std::to_string(batch) + "x4xf32>";
  std::string unit;
  auto structure = [&] { return " {fsdp.structure = #fsdp.structure<\"" + unit + "\">} : "; };
  auto product = [&](const std::string &result, const std::string &x, const std::string &weight) {
    out << "  " << result << " = nn.einsum \"bi,io->bo\" " << x << ", " << weight << structure()
        << "(" << type << ", tensor<4x4xf32>) -> " << type << "\n";
  };
  auto apply = [&](const std::string &result, const char *op, const std::string &operands) {
    out << "  " << result << " = " << op << " " << operands << structure() << type << "\n";
  };
  unit = "ends";
  out << "  %x = fsdp.input \"x\" sample_dim 0 : " << type << "\n"
      << "  %table = fsdp.read @table" << structure() << "tensor<4x4xf32>\n";
  product("%h", "%x", "%table");
  std::string value = "%h";
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string n = std::to_string(layer);
    unit = "layer" + n;
    out << "  %w" << n << " = fsdp.read @w" << n << structure() << "tensor<4x4xf32>\n";
    product("%p" + n, value, "%w" + n);
    std::string sum = "%p" + n;
    if (biases) {
      out << "  %bias" << n << " = fsdp.read @bias" << n << structure() << "tensor<4xf32>\n"
          << "  %rows" << n << " = nn.repeat \"o -> b o\" %bias" << n << structure()
          << "tensor<4xf32> -> " << type << "\n";
      sum = "%q" + n;
      apply(sum, "arith.addf", "%p" + n + ", %rows" + n);
    }
    apply("%a" + n, "math.tanh", sum);
    value = "%a" + n;
    if (pairs) {
      apply("%b" + n, "math.sin", sum);
      // What uses both is the next unit's.
      unit = layer + 1 < layers ? "layer" + std::to_string(layer + 1) : "ends";
      apply("%c" + n, "arith.mulf", "%a" + n + ", %b" + n);
      value = "%c" + n;
    }
    if (skips && layer + 1 == layers) {
      apply("%s" + n, "arith.addf", value + ", %h");
      value = "%s" + n;
    }
  }
  unit = "ends";
  product("%y", value, "%table");
  apply("%squares", "arith.mulf", "%y, %y");
  out << "  %sum = nn.reduce sum \"b o ->\" %squares" << structure() << type << " -> tensor<f64>\n"
      << "  %weight = arith.constant dense<" << batch * 4 << ".0> : tensor<f64>\n"
      << "  fsdp.loss %sum over %weight\n}\n";
  return text;
}

/// A model of layers, in schedule number `number`.
OwningOpRef<ModuleOp> makeLayers(MLIRContext &context, int64_t number, Draw draw,
                                 PipelineSource &source) {
  PipelineOptions &options = source.options;
  const int64_t ranks = draw.between(2, 4), shards = draw.chance(40) ? 2 : 1;
  options.pipelineSchedule = kSchedules[number % 4];
  const bool interleaves = number % 4 == 3;
  options.accumulate =
      interleaves ? ranks * draw.between(1, ranks == 2 ? 3 : 1) : draw.between(1, 6);
  const int64_t stages = ranks * (interleaves ? 2 : 1);
  const int64_t layers = stages - 2 + draw.between(stages > 2 ? 0 : 1, 2);
  const int64_t batch = options.accumulate * shards * draw.between(1, 2);
  const char *strategies[] = {"fsdp", "fsdp", "zero1", "zero2", "ddp"};
  options.strategy = draw.oneOf(strategies);
  options.reshard = draw.chance(60) ? "always" : "never";
  options.deferUpdates = draw.chance(40) ? "on" : "off";
  options.prefetch = draw.between(0, 2);
  const char *policies[] = {"none", "none", "full", "selective"};
  options.remat = draw.oneOf(policies);
  const char *reductions[] = {"auto", "each", "last"};
  options.accumulateReduce = draw.oneOf(reductions);
  options.precision = draw.chance(25) ? "bf16" : "f32";
  options.tiedGradients = draw.chance(50) ? "once" : "each";
  options.buckets = draw.chance(75) ? "unit" : "parameter";
  LayersSource model{ranks, shards, batch, layers};
  model.pairs = draw.chance(50);
  model.skips = draw.chance(30);
  model.adam = draw.chance(50);
  model.biases = draw.chance(60);
  if (model.biases && draw.chance(50)) // whose collectives form a group then
    options.buckets = "parameter";
  const std::string text = writeModel(model);
  auto type = RankedTensorType::get({batch * 2, 4}, Float32Type::get(&context));
  Tensor samples(type);
  for (int64_t i = 0; i < samples.size(); ++i)
    samples.setNumber(i, static_cast<double>(draw.between(-32, 32)) / 16);
  if (failed(source.data.add(UnknownLoc::get(&context), "x", samples)))
    return nullptr;
  return parseSourceString<ModuleOp>(text, &context);
}

/// A random model in stages.
OwningOpRef<ModuleOp> makeRandom(MLIRContext &context, uint64_t seed, PipelineSource &source) {
  RandomCase random = makeRandomCase(context, seed, /*mostRanks=*/8, kEmittedWishes,
                                     /*stages=*/100);
  if (!random.isPipeline)
    return nullptr;
  source.data = random.data;
  source.options = random.options;
  source.mostLaunches = 300;
  return std::move(random.module);
}

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  return context;
}

/// The errors of its lifetime.
class Errors {
public:
  explicit Errors(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            text += (text.empty() ? "" : "; ") + diagnostic.str();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

} // namespace

bool CompiledPipeline::forEachOrder(ModuleOp of,
                                    llvm::function_ref<bool(const StepTrace &)> take) const {
  MachineOptions options;
  options.seed = 1;
  options.totalSteps = 4;
  FailureOr<std::unique_ptr<Machine>> machine = Machine::create(of, options);
  if (failed(machine))
    return false;
  for (uint64_t seed = 1; seed <= kOrders; ++seed) {
    if (seed > 1 && failed((*machine)->restart(seed)))
      return false;
    const bool isAhead = seed % 2 == 0;
    FailureOr<StepTrace> results = traceSteps(**machine, of, data, defersUpdates, isAhead);
    if (failed(results))
      return false;
    if (!take(*results))
      return true;
  }
  return true;
}

std::string CompiledPipeline::findHarm(ModuleOp mutant) const {
  Errors errors(context.get());
  std::string difference;
  size_t order = 0;
  const bool runs = forEachOrder(mutant, [&](const StepTrace &results) {
    difference = findDifference(results, expected[order++]);
    return difference.empty();
  });
  if (!runs)
    return errors.text.empty() ? "fails without a message" : errors.text;
  return difference;
}

/// Fills the pipeline; false where the model cannot be divided as the options say.
bool CompiledPipeline::compile(OwningOpRef<ModuleOp> source, const PipelineSource &of) {
  data = of.data;
  defersUpdates = of.options.deferUpdates == "on";
  module = std::move(source);
  Errors errors(context.get());
  auto lower = [&](void (*build)(OpPassManager &, const PipelineOptions &)) {
    PassManager manager(context.get());
    manager.enableVerifier(false);
    build(manager, of.options);
    return succeeded(manager.run(*module)) && succeeded(verify(*module));
  };
  if (!lower(buildGlobalPipeline) || !lower(buildLocalPipeline)) {
    fault = errors.text; // microbatches or positions that a random model cannot have
    return false;
  }
  OwningOpRef<ModuleOp> local = module->clone();
  if (!lower(buildScheduledPipeline)) {
    fault = errors.text;
    return true;
  }
  MeshAttr mesh = getMesh(*module);
  llvm::raw_string_ostream out(description);
  out << mesh << ", " << of.options.pipelineSchedule << ", " << of.options.accumulate
      << " microbatches";
  int64_t launches = 0;
  module->walk([&](LaunchOp) { ++launches; });
  if (launches > of.mostLaunches)
    return false;
  const bool runs = forEachOrder(*local, [&](const StepTrace &results) {
    expected.push_back(results);
    return true;
  });
  fault = runs ? findHarm(*module) : errors.text;
  return true;
}

CompiledPipeline CompiledPipeline::get(int64_t number) {
  std::seed_seq seed{numberFrom("FSDP_MUTATION_SEED", 1), number, int64_t(29)};
  Draw draw{std::mt19937(seed)};
  const bool isRandom = number % 4 == 3;
  while (true) {
    CompiledPipeline pipeline;
    pipeline.context = makeContext();
    PipelineSource source;
    OwningOpRef<ModuleOp> module =
        isRandom ? makeRandom(*pipeline.context, draw.seed(), source)
                 : makeLayers(*pipeline.context, number / 4 + number % 4, draw, source);
    const bool isFit = module && pipeline.compile(std::move(module), source);
    if (isFit || !isRandom)
      return pipeline;
  }
}
