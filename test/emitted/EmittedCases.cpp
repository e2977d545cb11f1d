//===- EmittedCases.cpp - random models as programs, with what they should leave ---===//
//
//   emitted-cases --precision=bf16 --seed=1 --cases=50 --files=2 -o FOLDER
//
// writes FOLDER/cases, what each case is given and should leave (Case.h), and FOLDER/cpu-N.cpp and
// FOLDER/cuda-N.cu, the programs of the cases, each in a namespace of its own. A case is a function
// of its seed and the precision; --print shows its IR, --noise=N gives the interpreter N runs with
// noise of each kind, --cases-only writes no programs, --seeds=1,7,12 takes these seeds in the
// place of a range, and --stages=P divides P percent of the models into stages, where they can be.
//
//===----------------------------------------------------------------------===//

#include "test/emitted/Coverage.h"
#include "test/emitted/Expectation.h"
#include "test/unit/interpreter/RandomModule.h"

#include "codegen/EmitProgram.h"
#include "dialect/nn/NNDialect.h"
#include "interpreter/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using ::fsdp::emitted::Case;
using ::fsdp::emitted::CaseFile;
using ::fsdp::emitted::Numbers;

namespace {

struct Arguments {
  std::string precision = "f32", folder;
  std::vector<uint64_t> seeds;
  uint64_t stages = kEmittedStages;
  int64_t files = 1, noise = 4;
  bool print = false, casesOnly = false;
};

/// Models of no more ranks than the emulator and two cores run in little time.
constexpr int64_t kMaxRanks = 4;
/// With this many cases every op has stood in one, in each kind of launch.
constexpr size_t kCasesForAllOps = 1000;

} // namespace

static void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

/// Multiples of 1/32 up to 2 in magnitude, which bf16 holds: sums of products of such numbers are
/// exact in f32, in whatever order, and so are those of their products with others.
static double dyadic(double value) { return std::round(std::clamp(value, -2.0, 2.0) * 32) / 32; }

/// Data and first values; those of every other case are dyadic.
static interpreter::DataSet fill(RandomCase &random, Case &wanted) {
  bool rounds = wanted.seed % 2 == 0;
  interpreter::DataSet data;
  for (auto [name, tensor] : random.data.getInputs()) {
    Numbers numbers{name, {}};
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (rounds && tensor.isFloat())
        tensor.setNumber(i, dyadic(tensor.getNumber(i)));
      numbers.values.push_back(tensor.getNumber(i));
    }
    wanted.samples = tensor.getType().getDimSize(0);
    (void)data.add(random.module->getLoc(), name, tensor);
    wanted.inputs.push_back(std::move(numbers));
  }
  for (ParamOp param : random.module->getOps<ParamOp>()) {
    interpreter::Tensor tensor = interpreter::initialValue(param, wanted.seed);
    Numbers numbers{param.getSymName().str(), {}};
    for (int64_t i = 0; i < tensor.size(); ++i)
      numbers.values.push_back(rounds ? dyadic(tensor.getNumber(i)) : tensor.getNumber(i));
    wanted.parameters.push_back(std::move(numbers));
  }
  return data;
}

static LogicalResult lower(ModuleOp module, const PipelineOptions &options) {
  PassManager manager(module.getContext());
  buildGlobalPipeline(manager, options);
  buildLocalPipeline(manager, options);
  buildScheduledPipeline(manager, options);
  return manager.run(module);
}

/// False where the model of `random` cannot be computed in microbatches, or its loss in chunks.
/// Says nothing, changes nothing.
static bool isCompiled(RandomCase &random) {
  if (random.options.accumulate == 1 && random.options.lossChunks == 1)
    return true;
  ScopedDiagnosticHandler handler(random.module->getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module = ModuleOp(*random.module).clone();
  return succeeded(lower(*module, random.options));
}

/// Adds a file of a program that stands in a namespace: headers are included once, and in no
/// namespace; there is no `main`.
static void addFile(StringRef file, std::string &text) {
  for (StringRef line : llvm::split(file, '\n')) {
    bool kept = !line.starts_with("#include") && !line.starts_with("#pragma once") &&
                !line.starts_with("int main(");
    text += kept ? line.str() + "\n" : std::string("\n");
  }
}

/// Adds the files of a plan of several roles, each role in a namespace. Returns the name of the
/// program of one of them, which refers to all.
static std::string addRoles(const EmittedProgram &program, TargetKind target, std::string &text) {
  const auto isHeader = [](StringRef file) { return file.ends_with(".h"); };
  const auto isRole = [](StringRef file) { return file.starts_with("plan_"); };
  for (const auto &[name, contents] : program.files)
    if (isHeader(name))
      addFile(contents, text);
  // The functions of hosts and those of devices are visible in one file, as in CudaTarget.cpp.
  if (target == TargetKind::Cuda)
    text += "namespace fused { using ::fsdp::rt::device::maximum, ::fsdp::rt::device::minimum; }\n";
  for (const auto &[name, contents] : program.files)
    if (!isHeader(name) && !isRole(name) && name != "train.cpp")
      addFile(contents, text);
  std::string first;
  int roles = 0;
  for (const auto &[name, contents] : program.files) {
    if (isHeader(name) || !isRole(name))
      continue;
    // The last line defines the program in the namespace that declares all.
    const std::string space = "role_" + std::to_string(roles++);
    auto [body, definition] = StringRef(contents).rtrim('\n').rsplit('\n');
    text += "namespace " + space + " {\n";
    addFile(body, text);
    text += "} // namespace " + space + "\n" + definition.split(" = ").first.str() + " = " + space +
            "::program;\n";
    first = StringRef(name).split('.').first.str();
  }
  return "plans::" + first;
}

/// The text of the program of `module` as a namespace without a `main`.
static FailureOr<std::string> programOf(ModuleOp module, TargetKind target, uint64_t seed) {
  EmitOptions options;
  options.target = target;
  std::string number = std::to_string(seed);
  options.name = "case " + number;
  options.communicator = target == TargetKind::Cuda ? "loopback" : "auto";
  options.singleFile = true;
  EmittedProgram program;
  if (failed(emitProgram(module, options, program)))
    return failure();
  std::string text = "#line 1 \"case-" + number + "\"\nnamespace case_" + number + " {\n";
  std::string name = "program";
  if (program.files.size() == 1)
    addFile(program.files.front().second, text);
  else
    name = addRoles(program, target, text);
  return text + "::fsdp::emitted::Registered registered(" + number + ", " + name +
         ");\n} // namespace case_" + number + "\n";
}

static LogicalResult write(const std::string &path, const std::string &text) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  os << text;
  os.close();
  if (!error && !os.has_error())
    return success();
  llvm::errs() << "cannot write '" << path << "'\n";
  return failure();
}

static LogicalResult generate(const Arguments &arguments) {
  const std::string headers = "#include \"test/emitted/Registered.h\"\n"
                              "#include <algorithm>\n#include <cmath>\n";
  std::vector<std::string> cpu(arguments.files, headers +
                                                    "#include \"runtime/Runtime.h\"\n"
                                                    "#include \"runtime/numerics/VectorMath.h\"\n");
  std::vector<std::string> cuda(arguments.files,
                                headers + "#include \"runtime/CudaRuntime.h\"\n"
                                          "#include \"runtime/kernels/cuda/FusedKernel.h\"\n");
  CaseFile file(arguments.folder + "/cases", /*writes=*/true);
  Coverage coverage;
  std::unique_ptr<MLIRContext> context;
  for (size_t index = 0; index < arguments.seeds.size(); ++index) {
    uint64_t seed = arguments.seeds[index];
    // A context keeps every type and attribute for ever: take a new one now and then.
    if (index % 100 == 0) {
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      loadDialects(*context);
    }
    auto fail = [&](StringRef what) {
      llvm::errs() << "case " << seed << " in " << arguments.precision << ": " << what << "\n";
      return failure();
    };
    RandomCase random = makeRandomCase(*context, seed, kMaxRanks, kEmittedWishes, arguments.stages);
    random.options.precision = arguments.precision;
    if (arguments.precision == "f32")
      random.options.reducePrecision = "f32";
    if (!isCompiled(random)) // a rank has too few rows, or they depend on each other
      random.options.lossChunks = 1;
    if (!isCompiled(random)) { // its forward needs the whole batch
      random.options.accumulate = 1;
      // Chunks of a rank take turns with microbatches.
      if (StringRef(random.options.pipelineSchedule).starts_with("interleaved")) {
        random.options.pipelineSchedule = PipelineOptions().pipelineSchedule;
        random.options.stages = PipelineOptions().stages;
      }
    }
    Case wanted;
    wanted.seed = seed;
    wanted.totalSteps = 4;
    wanted.evaluated = 1 + static_cast<int64_t>(seed % 11);
    interpreter::DataSet data = fill(random, wanted);
    if (failed(lower(*random.module, random.options))) {
      if (arguments.print)
        llvm::outs() << *random.module << "\n";
      return fail("is not compiled");
    }
    // A separate evaluation has a separate batch.
    random.module->walk([&](SampleCountOp count) {
      wanted.evaluated = std::min<int64_t>(wanted.evaluated, count.getBatch());
    });
    random.module->walk([&](MicrobatchSamplesOp count) {
      wanted.evaluated = std::min<int64_t>(wanted.evaluated, count.getBatch());
    });
    if (arguments.print)
      llvm::outs() << *random.module << "\n";
    if (failed(expect(*random.module, data, arguments.noise, wanted)))
      return fail("is not interpreted");
    file.pass(wanted);
    coverage.add(*random.module);
    if (arguments.casesOnly)
      continue;
    for (auto [target, files] :
         {std::pair(TargetKind::Cpu, &cpu), std::pair(TargetKind::Cuda, &cuda)}) {
      FailureOr<std::string> text = programOf(*random.module, target, seed);
      if (failed(text))
        return fail("is not emitted");
      (*files)[index % arguments.files] += *text;
    }
  }
  if (!file)
    return llvm::errs() << "cannot write '" << arguments.folder << "/cases'\n", failure();
  if (arguments.casesOnly)
    return success();
  for (int64_t i = 0; i < arguments.files; ++i)
    if (failed(write(arguments.folder + "/cpu-" + std::to_string(i) + ".cpp", cpu[i])) ||
        failed(write(arguments.folder + "/cuda-" + std::to_string(i) + ".cu", cuda[i])))
      return failure();
  coverage.print(llvm::outs());
  size_t cases = arguments.seeds.size();
  if (cases < 20 || arguments.stages != kEmittedStages)
    return success();
  std::set<std::string> gaps = coverage.gaps(*context, cases >= kCasesForAllOps);
  for (const std::string &gap : gaps)
    llvm::errs() << "not covered: " << gap << "; teach the generator (test/unit/interpreter)\n";
  return success(gaps.empty());
}

int main(int argc, char **argv) {
  Arguments arguments;
  uint64_t first = 1, cases = 1;
  bool bad = false;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument.consume_front("--precision="))
      arguments.precision = argument.str();
    else if (argument.consume_front("--seed="))
      bad |= argument.getAsInteger(10, first);
    else if (argument.consume_front("--cases="))
      bad |= argument.getAsInteger(10, cases);
    else if (argument.consume_front("--files="))
      bad |= argument.getAsInteger(10, arguments.files);
    else if (argument.consume_front("--noise="))
      bad |= argument.getAsInteger(10, arguments.noise);
    else if (argument.consume_front("--stages="))
      bad |= argument.getAsInteger(10, arguments.stages);
    else if (argument.consume_front("--seeds="))
      for (StringRef seed : llvm::split(argument, ','))
        bad |= seed.getAsInteger(10, arguments.seeds.emplace_back());
    else if (argument == "--print")
      arguments.print = true;
    else if (argument == "--cases-only")
      arguments.casesOnly = true;
    else if (argument == "-o" && i + 1 < argc)
      arguments.folder = argv[++i];
    else
      bad = true;
  }
  if (bad || arguments.folder.empty())
    return llvm::errs() << "emitted-cases: bad arguments, see EmittedCases.cpp\n", 2;
  if (arguments.seeds.empty())
    for (uint64_t i = 0; i < cases; ++i)
      arguments.seeds.push_back(first + i);
  return failed(generate(arguments));
}
