//===- fsdp-translate.cpp - from scheduled IR to other languages ----------===//

#include "codegen/EmitProgram.h"
#include "codegen/EmitRecord.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/ToolUtilities.h"
#include "tools/output/FileTool.h"
#include "tools/output/Messages.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {
enum class Language { Cpp, Record, Cuda };
} // namespace

static cl::OptionCategory category("fsdp-translate options");

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("FILE.mlir"), cl::init("-"),
                                      cl::cat(category));
static cl::opt<std::string> outputFile("o", cl::desc("output file"), cl::value_desc("file"),
                                       cl::init("-"), cl::cat(category));
static cl::opt<Language> language(
    cl::desc("output:"), cl::Required,
    cl::values(
        clEnumValN(Language::Cpp, "fsdp-to-cpp",
                   "the C++ program of a scheduled module; where ranks run different programs, its "
                   "files, after lines of '//--- NAME'"),
        clEnumValN(Language::Record, "fsdp-to-record",
                   "the log that the program prints when compiled with -DFSDP_RECORD"),
        clEnumValN(Language::Cuda, "fsdp-to-cuda", "the CUDA program of a scheduled module")),
    cl::cat(category));
static cl::opt<bool>
    splitInput("split-input-file",
               cl::desc("translate the parts between lines of '// -----' separately"),
               cl::cat(category));
static cl::opt<bool> verifyDiagnostics("verify-diagnostics",
                                       cl::desc("compare diagnostics with 'expected-*' comments"),
                                       cl::cat(category));

static LogicalResult translate(ModuleOp module, raw_ostream &out) {
  if (language == Language::Record)
    return fsdp::emitRecord(module, out);
  // The program as one text, kernels included.
  fsdp::EmitOptions options;
  options.target = language == Language::Cpp ? fsdp::TargetKind::Cpu : fsdp::TargetKind::Cuda;
  options.singleFile = true;
  if (StringRef name = module.getName().value_or(""); !name.empty())
    options.name = name.str();
  fsdp::EmittedProgram program;
  if (failed(fsdp::emitProgram(module, options, program)))
    return failure();
  if (program.files.size() == 1) {
    out << program.files.front().second;
    return success();
  }
  // Programs of several roles are several files, which LLVM's split-file separates.
  for (const auto &[name, text] : program.files)
    out << "//--- " << name << "\n" << text;
  return success();
}

/// Parses and translates one module.
static LogicalResult translatePart(std::unique_ptr<llvm::MemoryBuffer> text, raw_ostream &out) {
  DialectRegistry registry;
  registry.insert<nn::NNDialect, fsdp::FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(!verifyDiagnostics);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(text), llvm::SMLoc());
  auto run = [&] {
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
    return module ? translate(*module, out) : failure();
  };
  if (!verifyDiagnostics) {
    fsdpc::DiagnosticPrinter handler(sources, &context);
    return run();
  }
  SourceMgrDiagnosticVerifierHandler handler(sources, &context);
  (void)run();
  return handler.verify();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "generates programs from modules in the scheduled phase\n");
  return fsdpc::runFileTool("fsdp-translate", inputFile, outputFile,
                            [](std::unique_ptr<llvm::MemoryBuffer> text, raw_ostream &out) {
                              return succeeded(
                                  splitAndProcessBuffer(std::move(text), translatePart, out,
                                                        splitInput ? kDefaultSplitMarker : ""));
                            });
}
