//===- fsdp-run.cpp - run a module of any phase on simulated ranks --------===//

#include "base/Error.h"
#include "base/Numbers.h"
#include "base/PrintableText.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Machine.h"
#include "interpreter/Safetensors.h"
#include "interpreter/Statistics.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "tools/output/FileTool.h"
#include "tools/output/Messages.h"
#include "tools/output/OutputFile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <unistd.h>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;
namespace cl = llvm::cl;

static cl::OptionCategory category("fsdp-run options");

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("FILE.mlir"), cl::init("-"),
                                      cl::cat(category));
static cl::opt<std::string> paramsFile("params",
                                       cl::desc("initial parameters (safetensors, by name)"),
                                       cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string>
    inputsFile("inputs", cl::desc("data: one tensor per input, samples first (safetensors)"),
               cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string>
    outputsFile("outputs",
                cl::desc("file for parameters, optimizer states ('NAME.STATE') and outputs "
                         "('output.NAME') after the last step (safetensors)"),
                cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string>
    seedText("seed", cl::desc("seed of the initial values and of the order in which streams run"),
             cl::value_desc("n"), cl::init("0"), cl::cat(category));
static cl::opt<std::string> stepsText("steps", cl::desc("number of steps"), cl::value_desc("n"),
                                      cl::init("1"), cl::cat(category));
static cl::opt<std::string>
    samplesText("samples",
                cl::desc("number of valid samples in a batch of an evaluation (default: all)"),
                cl::value_desc("n"), cl::cat(category));
static cl::opt<std::string>
    segmentName("segment",
                cl::desc("the step or walk to run (the segment, in a program without "
                         "walks), or several in turn, as in 'train,evaluate' "
                         "(default: the first)"),
                cl::value_desc("name"), cl::cat(category));
static cl::opt<Numerics> numerics(
    "numerics", cl::desc("precision of floating-point arithmetic"), cl::init(Numerics::exact),
    cl::values(clEnumValN(Numerics::exact, "exact", "double precision, whatever the types"),
               clEnumValN(Numerics::typed, "typed", "rounded to the types")),
    cl::cat(category));

static cl::opt<std::string> printPattern(
    "print",
    cl::desc(
        "prints shape, minimum, maximum, mean, number of values that are not finite, and first "
        "elements of each value whose name matches, as in '*.relu', on each rank: names of "
        "operations (of text that was written with --emit-locations), inputs, parameters "
        "and buffers"),
    cl::value_desc("pattern"), cl::cat(category));

static int fail(const Twine &message) {
  llvm::errs() << "fsdp-run: error: " << base::printableLines(message.str()) << "\n";
  return 1;
}

namespace {
/// The parsed texts of the command line.
struct Numbers {
  uint64_t seed = 0;
  int64_t steps = 1;
  int64_t samples = std::numeric_limits<int64_t>::max();
};
} // namespace

/// Exit status 2, or nothing.
static std::optional<int> parseNumbers(Numbers &numbers) {
  std::string wrong =
      base::parseInteger(seedText.getValue(), base::IntegerRange<uint64_t>(), numbers.seed);
  StringRef option = "seed";
  auto parse = [&](const auto &text, int64_t &value) {
    if (!wrong.empty() || text.getNumOccurrences() == 0)
      return;
    option = text.ArgStr;
    wrong = base::parseInteger(text.getValue(), base::IntegerRange<int64_t>{1}, value);
  };
  parse(stepsText, numbers.steps);
  parse(samplesText, numbers.samples);
  if (wrong.empty())
    return std::nullopt;
  fail("--" + option + ": " + wrong);
  return 2;
}

/// Refuses a number of samples that `segment` would not look at, or does not have.
static std::string checkSamples(ModuleOp module, StringRef segment, int64_t samples) {
  std::optional<int64_t> batch;
  llvm::SmallPtrSet<Operation *, 4> parts; // of the walk of that name
  module.walk([&](WalkOp walk) {
    for (auto part : walk.getSegments().getAsRange<FlatSymbolRefAttr>())
      if (walk.getSymName() == segment)
        parts.insert(SymbolTable::lookupSymbolIn(walk->getParentOp(), part.getAttr()));
  });
  auto isOfSegment = [&](Operation *op) {
    auto step = op->getParentOfType<StepOp>();
    auto part = op->getParentOfType<SegmentOp>();
    return (step && step.getSymName() == segment) ||
           (part && (parts.empty() ? part.getSymName() == segment : parts.contains(part)));
  };
  module.walk([&](Operation *op) {
    if (auto count = dyn_cast<SampleCountOp>(op); count && isOfSegment(op))
      batch = count.getBatch();
    else if (auto samples = dyn_cast<MicrobatchSamplesOp>(op);
             samples && samples.getCounted() && isOfSegment(op))
      batch = samples.getBatch();
  });
  std::string got = "--samples: got '" + std::to_string(samples) + "', ";
  if (!batch)
    return got + "but '" + segment.str() + "' uses full batches; leave it out";
  return samples <= *batch ? ""
                           : got + "expected at most " + std::to_string(*batch) +
                                 ", the batch of '" + segment.str() + "'";
}

/// The shape of a parameter in weight files.
static SmallVector<int64_t> fileShape(ParamOp param) {
  if (auto shape = param.getFileShape())
    return SmallVector<int64_t>(*shape);
  return SmallVector<int64_t>(param.getTensorType().getShape());
}

static std::string printShape(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// The error of a tensor of `file` that has a value that is not finite; empty if there is none.
static std::string describeNonFinite(StringRef file, StringRef name, const Tensor &tensor) {
  for (int64_t i = 0; tensor.isFloat() && i < tensor.size(); ++i)
    if (!std::isfinite(tensor.getFloat(i)))
      return ("'" + file + "': tensor '" + name + "' has the value " +
              std::to_string(tensor.getFloat(i)) + " at element " + std::to_string(i) +
              ", expected finite numbers")
          .str();
  return {};
}

/// Replaces the parameters by those of the file; returns an error message or nothing.
static std::string loadParameters(ModuleOp module, Machine &machine, const TensorFile &file) {
  for (ParamOp param : module.getOps<ParamOp>()) {
    std::string name = param.getSymName().str();
    auto it = file.find(name);
    if (it == file.end())
      return "'" + paramsFile + "' has no tensor '" + name + "'";
    RankedTensorType type = it->second.getType();
    if (!it->second.isFloat() || type.getShape() != ArrayRef<int64_t>(fileShape(param)))
      return "'" + paramsFile + "': tensor '" + name + "' has shape " +
             printShape(type.getShape()) + (it->second.isFloat() ? "" : " of integers") +
             ", expected " + printShape(fileShape(param));
    if (std::string message = describeNonFinite(paramsFile, name, it->second); !message.empty())
      return message;
    if (failed(machine.set(name, "parameter", it->second.viewAs(param.getTensorType()))))
      return "parameter '" + name + "' could not be set";
  }
  return {};
}

/// The tensor as it is written: exact numerics keep their doubles.
static Tensor forFile(const Tensor &tensor, ArrayRef<int64_t> shape) {
  Type element = tensor.getType().getElementType();
  if (tensor.isFloat() && numerics == Numerics::exact)
    element = Float64Type::get(element.getContext());
  return tensor.viewAs(RankedTensorType::get(shape, element));
}

static LogicalResult collectParameters(ModuleOp module, Machine &machine, TensorFile &file) {
  SmallVector<std::string> whats{"parameter"};
  llvm::append_range(whats, machine.getStates());
  for (ParamOp param : module.getOps<ParamOp>())
    for (const std::string &what : whats) {
      FailureOr<Tensor> value = machine.get(param.getSymName(), what);
      if (failed(value))
        return failure();
      std::string name = param.getSymName().str();
      file[what == "parameter" ? name : name + "." + what] = forFile(*value, fileShape(param));
    }
  return success();
}

static LogicalResult addData(ModuleOp module, DataSet &data, const TensorFile &file) {
  for (const auto &[name, tensor] : file) {
    if (std::string message = describeNonFinite(inputsFile, name, tensor); !message.empty())
      return failure(fail(message));
    if (failed(data.add(module.getLoc(), name, tensor)))
      return failure();
  }
  return success();
}

/// True if each output is finite. The log shows whether a step was bad, as it has the loss and the
/// norm.
static bool allFinite(const Outputs &outputs) {
  return llvm::all_of(outputs, [](const auto &output) {
    const Tensor &tensor = output.second;
    return !tensor.isFloat() || llvm::all_of(llvm::seq<int64_t>(0, tensor.size()), [&](int64_t i) {
      return std::isfinite(tensor.getFloat(i));
    });
  });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The name of the results of `op` in the output of --print.
static std::string nameOf(Operation *op) {
  if (auto buffer = dyn_cast<BufferOp>(op))
    return buffer.getName().str();
  if (auto input = dyn_cast<InputOp>(op))
    return input.getName().str();
  if (auto read = dyn_cast<ReadOp>(op))
    return read.getParam().str();
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return name.getName().str();
  return op->getName().getStringRef().str();
}

/// The elements by which a value is recognized.
static constexpr int64_t shownElements = 6;

static void printValue(llvm::raw_ostream &out, const std::string &name, const Tensor &value) {
  const Statistics all = Statistics::of(value);
  out << name << " " << value.getType() << ":";
  auto show = [&](const char *what, double number) {
    out << " " << what << " " << llvm::format("%.6g", std::isnan(number) ? NAN : number);
  };
  show("min", all.min);
  show("max", all.max);
  show("mean", all.mean);
  out << " nan " << all.notFinite << ":";
  for (int64_t i = 0; i < std::min(value.size(), shownElements); ++i) {
    const double number = value.getNumber(i);
    out << " " << llvm::format("%.6g", std::isnan(number) ? NAN : number);
  }
  out << (value.size() > shownElements ? " ...\n" : "\n");
}

/// True if a machine reports the results of `op`.
static bool isObserved(Operation *op, Phase phase) {
  if (phase == Phase::scheduled)
    return isa<BufferOp>(op);
  return op->getNumResults() > 0 && !op->getParentOfType<nn::FusedOp>() &&
         op->getParentOfType<ModuleOp>() != op->getParentOp();
}

/// The step or segment that `op` is in, or null.
static Operation *stepOf(Operation *op) {
  if (auto step = op->getParentOfType<StepOp>())
    return step;
  return op->getParentOfType<SegmentOp>();
}

/// The names in the output of --print of all values in `module` that `pattern` matches. Values of
/// one name in one step or segment get the kind of their operation and their index, in the order of
/// the text, as suffix: "fc.matmul (nn.einsum)", "fc.matmul (2 of 3)".
static llvm::DenseMap<Operation *, std::string> labelsOf(ModuleOp module,
                                                         const llvm::GlobPattern &pattern) {
  const Phase phase = getPhase(module);
  std::map<std::pair<Operation *, std::string>, SmallVector<Operation *>> byName;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isObserved(op, phase))
      return;
    if (const std::string name = nameOf(op); pattern.match(name))
      byName[{stepOf(op), name}].push_back(op);
  });
  llvm::DenseMap<Operation *, std::string> labels;
  for (const auto &entry : byName) {
    const std::string &name = entry.first.second;
    const SmallVector<Operation *> &ops = entry.second;
    auto ofKind = [&](Operation *op) {
      return llvm::count_if(ops,
                            [&](Operation *other) { return other->getName() == op->getName(); });
    };
    llvm::DenseMap<OperationName, int64_t> seen;
    for (Operation *op : ops) {
      const int64_t count = ofKind(op), number = ++seen[op->getName()];
      std::string suffix;
      if (count < static_cast<int64_t>(ops.size()))
        suffix = op->getName().getStringRef().str();
      if (count > 1)
        suffix +=
            (suffix.empty() ? "" : " ") + std::to_string(number) + " of " + std::to_string(count);
      labels[op] = suffix.empty() ? name : name + " (" + suffix + ")";
    }
  }
  return labels;
}

/// Why no value of `module` matches `pattern`, and the remedy.
static std::string faultOfPattern(ModuleOp module, const llvm::GlobPattern &pattern) {
  const Phase phase = getPhase(module);
  if (phase == Phase::scheduled)
    return "names are those of buffers";
  bool hasNames = false;
  base::NameList names;
  llvm::StringSet<> listed;
  std::string inside;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    hasNames |= bool(op->getLoc()->findInstanceOf<NameLoc>());
    const std::string name = nameOf(op);
    if (isObserved(op, phase)) {
      if (listed.insert(name).second)
        names.add(name);
    } else if (auto fused = op->getParentOfType<nn::FusedOp>();
               fused && inside.empty() && pattern.match(name)) {
      inside = base::inQuotes(name) + " is computed inside of " + base::inQuotes(nameOf(fused)) +
               ", whose values alone are shown: print that, or take the text of --emit=global, in "
               "which nothing is fused";
    }
  });
  if (!inside.empty())
    return inside;
  return hasNames ? "it has " + names.list()
                  : "write the text with --emit-locations, with which it has names";
}

namespace {
/// Prints the values that match --print.
struct ValuePrinter {
  llvm::DenseMap<Operation *, std::string> labels; ///< of values that match
  llvm::raw_ostream &out;
  int64_t step = 0; ///< from 1
  bool hasRanks = false;

  void operator()(int64_t rank, Operation *op, unsigned result, const Tensor &value) const {
    auto found = labels.find(op);
    if (found == labels.end())
      return;
    std::string name = found->second;
    if (op->getNumResults() > 1)
      name += "#" + std::to_string(result);
    out << "step " << step << " ";
    if (hasRanks)
      out << "rank " << rank << " ";
    printValue(out, base::printableLines(name), value);
  }
};
} // namespace

/// The printer of --print, null without it. Fails with a message for a pattern that no value
/// matches.
static FailureOr<std::unique_ptr<ValuePrinter>> createPrinter(ModuleOp module,
                                                              llvm::raw_ostream &out) {
  if (printPattern.getNumOccurrences() == 0)
    return std::unique_ptr<ValuePrinter>();
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(printPattern);
  if (!pattern)
    return failure(
        fail("--print: got " + base::inQuotes(printPattern) +
             ", expected names with '*', '?' and '[...]': " + llvm::toString(pattern.takeError())));
  const Phase phase = getPhase(module);
  llvm::DenseMap<Operation *, std::string> labels = labelsOf(module, *pattern);
  if (labels.empty())
    return failure(fail("--print: got " + base::inQuotes(printPattern) + ", but no value of '" +
                        inputFile + "' has such a name; " + faultOfPattern(module, *pattern)));
  return std::make_unique<ValuePrinter>(
      ValuePrinter{std::move(labels), out, 0, phase != Phase::global});
}

/// Runs the steps, prints their logs, and adds them to `file`.
static int runSteps(Machine &machine, ArrayRef<std::string> walks, int64_t steps,
                    const DataSet &data, TensorFile &file, ValuePrinter *printer,
                    llvm::raw_ostream &shown) {
  for (int64_t step = 0; step < steps; ++step) {
    if (printer)
      printer->step = step + 1;
    bool finite = true;
    for (const std::string &walk : walks) {
      FailureOr<Outputs> outputs = machine.run(walk, data);
      if (failed(outputs))
        return 1;
      finite &= !outputs->empty() && allFinite(*outputs);
      std::string prefix = walks.size() > 1 ? walk + " " : "";
      for (const auto &[name, tensor] : *outputs) {
        file["output." + name] = forFile(tensor, tensor.getType().getShape());
        if (tensor.size() == 1)
          shown << "step " << step + 1 << " " << prefix << name << " "
                << llvm::format("%.17g", tensor.getNumber(0)) << "\n";
      }
    }
    if (!finite && failed(machine.finish()))
      return 1;
    if (machine.getStepState().badSteps >= 3)
      return fail(
          "loss or gradient norm was not finite in three steps in a row; the last is step " +
          Twine(step + 1));
  }
  return 0;
}

/// Before the work: refuses inputs that are not files, and outputs that cannot be written or would
/// overwrite an input. Returns the destination of --outputs, or an empty one.
static base::OutputPath openFiles() {
  std::vector<base::NamedFile> named;
  for (auto [option, file] :
       {std::pair("MODULE", &inputFile), {"--params", &paramsFile}, {"--inputs", &inputsFile}}) {
    if (file->empty() || *file == "-")
      continue;
    base::requireReadable(*file);
    named.push_back(base::NamedFile::input(option, *file));
  }
  if (outputsFile.empty())
    return {};
  base::OutputPath outputs = fsdpc::openOutput(outputsFile);
  named.push_back(base::NamedFile::output("--outputs", outputs));
  base::requireDistinct(named);
  return outputs;
}

static int run(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv,
                                   "interprets a module of any phase on simulated ranks (slow; the "
                                   "reference of all other components)\n",
                                   &llvm::errs()))
    return 2;
  Numbers numbers;
  if (std::optional<int> status = parseNumbers(numbers))
    return *status;
  const base::OutputPath outputs = openFiles();

  DialectRegistry registry;
  registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
  MLIRContext context(registry);
  // An empty module names no dialect.
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  fsdpc::DiagnosticPrinter handler(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(inputFile, sources, ParserConfig(&context));
  if (!module)
    return 1;

  // Text for people is kept out of a result on standard output.
  bool taken = outputs.identity() == base::identityOfDescriptor(STDOUT_FILENO);
  llvm::raw_ostream &shown = taken ? llvm::errs() : llvm::outs();
  FailureOr<std::unique_ptr<ValuePrinter>> printer = createPrinter(*module, shown);
  if (failed(printer))
    return 2;

  MachineOptions options;
  if (ValuePrinter *prints = printer->get())
    options.observe = [=](int64_t rank, Operation *op, unsigned result, const Tensor &value) {
      (*prints)(rank, op, result, value);
    };
  options.numerics = numerics;
  options.seed = numbers.seed;
  options.totalSteps = numbers.steps;
  options.samples = numbers.samples;
  FailureOr<std::unique_ptr<Machine>> machine = Machine::create(*module, options);
  if (failed(machine))
    return 1;
  if ((*machine)->getWalks().empty())
    return fail("'" + inputFile + "' has no step and no segment to run");

  SmallVector<std::string> walks;
  if (segmentName.empty())
    walks.push_back((*machine)->getWalks().front());
  else
    for (StringRef name : llvm::split(segmentName.getValue(), ','))
      walks.push_back(name.str());
  for (const std::string &walk : walks)
    if (samplesText.getNumOccurrences() && llvm::is_contained((*machine)->getWalks(), walk))
      if (std::string wrong = checkSamples(*module, walk, numbers.samples); !wrong.empty()) {
        fail(wrong);
        return 2;
      }

  if (!paramsFile.empty()) {
    auto file = readSafetensors(paramsFile, &context);
    if (!file)
      return fail(llvm::toString(file.takeError()));
    if (std::string message = loadParameters(*module, **machine, *file); !message.empty())
      return fail(message);
  }
  DataSet data;
  if (!inputsFile.empty()) {
    auto file = readSafetensors(inputsFile, &context);
    if (!file)
      return fail(llvm::toString(file.takeError()));
    if (failed(addData(*module, data, *file)))
      return 1;
  }

  TensorFile results;
  if (int status = runSteps(**machine, walks, numbers.steps, data, results, printer->get(), shown))
    return status;
  if (failed((*machine)->finish()) || failed(collectParameters(*module, **machine, results)))
    return 1;
  if (!outputs.empty())
    fsdpc::writeOutput(outputs, encodeSafetensors(results));
  return 0;
}

static int outOfMemory() { return fail("out of memory; run a smaller model, or fewer ranks"); }

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  // LLVM's containers call this instead of throwing.
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) {
    outOfMemory();
    std::_Exit(1);
  });
  fsdpc::ignoreFileSizeSignal();
  try {
    return run(argc, argv);
  } catch (const base::Error &error) {
    fail(error.what());
    return error.status();
  } catch (const std::bad_alloc &) {
    return outOfMemory();
  }
}
