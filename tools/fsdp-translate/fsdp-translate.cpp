//===- fsdp-translate.cpp - from scheduled IR to other languages ----------===//

#include "codegen/EmitProgram.h"
#include "codegen/EmitRecord.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;

static void registerDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, fsdp::FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
}

/// The program as one text, kernels included.
static LogicalResult translate(ModuleOp module, raw_ostream &out, fsdp::TargetKind target) {
  fsdp::EmitOptions options;
  options.target = target;
  options.singleFile = true;
  if (StringRef name = module.getName().value_or(""); !name.empty())
    options.name = name.str();
  fsdp::EmittedProgram program;
  if (failed(fsdp::emitProgram(module, options, program)))
    return failure();
  out << program.files.front().second;
  return success();
}

static LogicalResult translateToCpp(ModuleOp module, raw_ostream &out) {
  return translate(module, out, fsdp::TargetKind::Cpu);
}

static LogicalResult translateToCuda(ModuleOp module, raw_ostream &out) {
  return translate(module, out, fsdp::TargetKind::Cuda);
}

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration cpp("fsdp-to-cpp", "write the C++ program of a scheduled module",
                                    translateToCpp, registerDialects);
  TranslateFromMLIRRegistration record(
      "fsdp-to-record", "write the log that the program prints when compiled with -DFSDP_RECORD",
      [](ModuleOp module, raw_ostream &out) { return fsdp::emitRecord(module, out); },
      registerDialects);
  TranslateFromMLIRRegistration cuda("fsdp-to-cuda", "write the CUDA program of a scheduled module",
                                     translateToCuda, registerDialects);
  return failed(mlirTranslateMain(argc, argv, "fully sharded training translator"));
}
