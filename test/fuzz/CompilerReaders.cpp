//===- CompilerReaders.cpp - the readers of the compiler ------------------===//

#include "base/Options.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/nn/NNDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "test/fuzz/Readers.h"
#include "test/mutation/TextMutator.h"
#include "tools/fsdpc/Options.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

using namespace mlir;
namespace files = std::filesystem;

namespace fsdp::fuzz {

namespace {

/// A context that counts errors. Types and attributes are never freed: a new one from time to time.
class Context {
public:
  Context() {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, mlir::fsdp::FSDPDialect, arith::ArithDialect, math::MathDialect,
                    func::FuncDialect>();
    nn::registerElementwiseModels(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    handler = std::make_unique<ScopedDiagnosticHandler>(context.get(), [&](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    });
  }
  static Context &current() {
    static std::unique_ptr<Context> kept;
    static int used = 0;
    if (!kept || ++used % 50 == 0)
      kept = std::make_unique<Context>();
    return *kept;
  }
  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  long errors = 0;
};

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

/// Modules of the tests, in every phase.
std::string rightModule(std::mt19937 &random) {
  static const std::vector<std::string> modules = [] {
    std::vector<std::string> names, found;
    for (const auto &entry :
         files::recursive_directory_iterator(std::string(std::getenv("FSDP_SOURCE_DIR")) + "/test"))
      if (entry.path().extension() == ".mlir")
        names.push_back(entry.path().string());
    std::sort(names.begin(), names.end());
    for (const std::string &name : names) {
      std::stringstream text;
      text << std::ifstream(name).rdbuf();
      for (const std::string &part : mutation::splitModules(text.str()))
        if (part.size() < 20000 && part.find("fsdp.") != std::string::npos)
          found.push_back(part);
    }
    return found;
  }();
  return modules[random() % modules.size()];
}

std::string rightCompilerOptions(std::mt19937 &random) {
  const char *const options[] = {"--mesh=data=2,fsdp=4",
                                 "--strategy=hsdp",
                                 "--shard=*.bias:replicated",
                                 "--min-shard-size=100",
                                 "--precision=bf16",
                                 "--reduce-precision=f32",
                                 "--accumulate=4",
                                 "--prefetch=auto",
                                 "--remat=every:2",
                                 "--memory-limit=20GiB",
                                 "--buckets=parameter",
                                 "--emit=local",
                                 "--report=r.json",
                                 "--target=cuda",
                                 "--cuda-arch=80,90",
                                 "--optimizer=sgd",
                                 "--reshard-after-forward=axes:a+b",
                                 "--loss-chunks=4",
                                 "--lr=1e-3",
                                 "--clip=1",
                                 "--warmup=10",
                                 "--defer-updates=on",
                                 "--communicator=tcp",
                                 "--record",
                                 "--batch-axes=data,fsdp"};
  std::string text = "-o\nout";
  for (std::size_t count = random() % 6; count > 0; --count)
    text += std::string("\n") + options[random() % std::size(options)];
  return text;
}

} // namespace

Outcome readModule(const std::string &bytes) {
  Context &context = Context::current();
  context.errors = 0;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(bytes, context.context.get());
  if (!module)
    return {false, context.errors ? "" : "refused without a message"};
  const std::string text = print(*module);
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, context.context.get());
  if (!again)
    return {true, "is refused when it is printed and read again:\n" + text};
  if (const std::string printed = print(*again); printed != text)
    return {true, "reads as another module when it is printed:\n" + text + "\n-- and then --\n" +
                      printed};
  return {true, ""};
}

Outcome readCompilerOptions(const std::string &bytes) {
  std::vector<std::string> words;
  std::istringstream lines(bytes);
  for (std::string line; std::getline(lines, line) && words.size() < 100;)
    words.push_back(line.c_str());
  CLI::App app("reads options", "fsdpc");
  fsdpc::Options options;
  options.declare(app);
  try {
    base::parseArguments<fsdpc::UsageError>(app, words);
    options.check();
    return {true, ""};
  } catch (const CLI::Success &) {
    return {false, ""};
  } catch (const fsdpc::UsageError &error) {
    return {false, *error.what() ? "" : "refused without a message"};
  } catch (const fsdpc::Failure &error) {
    return {false, *error.what() ? "" : "refused without a message"};
  }
}

const std::vector<Reader> compilerReaders = {
    {"module", readModule, rightModule, true},
    {"compiler-options", readCompilerOptions, rightCompilerOptions, true},
};

} // namespace fsdp::fuzz
