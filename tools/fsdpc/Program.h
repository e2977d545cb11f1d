//===- Program.h - scheduled IR as a program: source or binary --*- C++ -*-===//

#ifndef TOOLS_FSDPC_PROGRAM_H
#define TOOLS_FSDPC_PROGRAM_H

#include "base/OutputPath.h"
#include "codegen/EmitProgram.h"
#include "passes/prediction/Prediction.h"
#include "tools/fsdpc/Options.h"
#include "tools/fsdpc/Output.h"

namespace fsdpc {

/// The command that compiles a model: the program of the DSL, or fsdpc with the model's file.
struct Compiler {
  std::string name, input;
};

/// `module`, which is scheduled, as a plan of a program: `table` is its memory, `work` its
/// products.
mlir::fsdp::PlanSource makeSource(mlir::ModuleOp module, const std::string &table,
                                  const mlir::fsdp::ModelWork &work, const Options &options);

/// The C++ files of a program called `name` that has these plans. Throws Failure after printing the
/// reason.
mlir::fsdp::EmittedProgram emitProgram(llvm::ArrayRef<mlir::fsdp::PlanSource> plans,
                                       const Options &options, const std::string &name,
                                       const Compiler &compiler);

/// Writes to `options.output` the folder that builds `program` on its own: its files, its
/// CMakeLists.txt, and a copy of the runtime.
void writeSource(mlir::fsdp::EmittedProgram program, const Options &options,
                 const std::string &name);

/// Compiles `program`, and writes it to `output`. Throws Failure if there is no compiler, or with
/// its output if it fails. The environment variable CXX names another compiler.
void writeBinary(const mlir::fsdp::EmittedProgram &program, const Options &options,
                 const base::OutputPath &output);

} // namespace fsdpc

#endif // TOOLS_FSDPC_PROGRAM_H
