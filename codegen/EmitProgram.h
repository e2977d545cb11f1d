//===- EmitProgram.h - scheduled IR to the text of a program ----*- C++ -*-===//

#ifndef CODEGEN_EMITPROGRAM_H
#define CODEGEN_EMITPROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <utility>
#include <vector>

namespace mlir::fsdp {

/// The device of a program.
enum class TargetKind {
  Cpu,  ///< threads and vector loops; train.cpp, kernels.h, kernels.cpp
  Cuda, ///< one GPU per rank; train.cpp, kernels.h, kernels.cu
};

struct EmitOptions {
  TargetKind target = TargetKind::Cpu;
  /// The name of the program in its messages.
  std::string name = "program";
  /// The compiler's memory report, a table that the program prints for `--report`.
  std::string report;
  /// The default communicator of its ranks: auto, shm, tcp or mpi on
  /// CPUs; auto, nccl or loopback with CUDA.
  std::string communicator = "auto";
  /// Options of the compiler, for the program to show: "--precision=bf16 --prefetch=2".
  std::string options;
  /// The compiler and flags of the program, for the records of its runs: a JSON object, or nothing.
  std::string compilation;
  /// One file, with the kernels in it; otherwise they are in separate files.
  bool singleFile = false;
};

/// The files of a program: name and text. train.cpp is the host program with `main`.
struct EmittedProgram {
  std::vector<std::pair<std::string, std::string>> files;
};

/// Writes the program of a scheduled module with offsets: it needs the runtime's headers to compile
/// and its library to link (codegen/Project.h). The same module gives the same text. Fails with a
/// diagnostic where the module is in another phase, lacks offsets, or contains an op that the
/// target does not support.
LogicalResult emitProgram(ModuleOp module, const EmitOptions &options, EmittedProgram &out);

/// One of several programs that a binary holds: the same model for another mesh.
struct PlanSource {
  ModuleOp module;
  std::string report; ///< as in EmitOptions
};

/// Writes one program with several plans, the first of which it uses when started alone: train.cpp,
/// a host file for each plan, plans.h with the parts that do not differ between them, and the
/// kernels of all, each once. Of one plan it is the program of emitProgram. `options.report` is not
/// read. Not in a single file.
LogicalResult emitPlans(ArrayRef<PlanSource> plans, const EmitOptions &options,
                        EmittedProgram &out);

} // namespace mlir::fsdp

#endif // CODEGEN_EMITPROGRAM_H
