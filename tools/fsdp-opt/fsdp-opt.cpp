//===- fsdp-opt.cpp - run passes over .mlir files -------------------------===//

#include "base/PrintableText.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "tools/output/FileTool.h"
#include "tools/output/Messages.h"
#include "llvm/Support/InitLLVM.h"
#ifdef FSDP_HAVE_PASSES
#include "passes/Passes.h"
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::nn::NNDialect, mlir::fsdp::FSDPDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect>();
  // Functions hold single ops in tests; no phase has them.
  registry.insert<mlir::func::FuncDialect>();
  mlir::nn::registerElementwiseModels(registry);
  mlir::registerTransformsPasses();
#ifdef FSDP_HAVE_PASSES
  mlir::fsdp::registerPasses();
#endif
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "runs passes on modules of the dialects nn and fsdp\n", registry);
  mlir::MlirOptMainConfig config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, input, output, registry));
  llvm::InitLLVM init(argc, argv);
  const std::string &file = input; // lambdas capture no part of a binding
  return fsdpc::runFileTool(
      "fsdp-opt", input, output,
      [&](std::unique_ptr<llvm::MemoryBuffer> text, llvm::raw_ostream &out) {
        // MLIR's messages show a line of the file.
        if (!fsdpc::isText(text->getBuffer()) && !mlir::isBytecode(text->getMemBufferRef())) {
          llvm::errs() << base::printableLines("fsdp-opt: error: '" + file +
                                               "' is not text, expected a module (.mlir)\n");
          return false;
        }
        return mlir::succeeded(mlir::MlirOptMain(out, std::move(text), registry, config));
      });
}
